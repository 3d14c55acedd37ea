//! The real flent opens and plots what plumb writes for it.

use std::path::Path;
use std::process::Command;

use crate::common::{need_root, plumb, stderr};
use plumb_model::results::{LoadedLatencyResult, Outcome};
use plumb_model::run::Run;

/// Runs flent on a file and returns all that it said.
fn flent(file: &Path, arguments: &[&str]) -> String {
    let output = Command::new("flent")
        .arg("-i")
        .arg(file)
        .args(arguments)
        // Without a display and without a configuration of its user.
        .env("MPLBACKEND", "Agg")
        .env("HOME", file.parent().unwrap())
        .output()
        .expect("flent is installed (Debian: flent, python3-matplotlib), as `make test` does");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "flent {arguments:?}: {said}");
    assert!(
        !said.contains("Missing data"),
        "flent {arguments:?}: {said}"
    );
    said
}

/// The column `mean` or `median` of flent's summary of a series.
fn summarised(summary: &str, series: &str, column: usize) -> f64 {
    let line = summary
        .lines()
        .find_map(|line| Some(line.split_once(series)?.1.trim_start_matches([' ', ':'])))
        .unwrap_or_else(|| panic!("no '{series}' in:\n{summary}"));
    let number = line.split_whitespace().nth(column).expect("a column");
    number
        .parse()
        .unwrap_or_else(|_| panic!("{series}: {line}"))
}

fn loaded(run: &Run) -> &LoadedLatencyResult {
    let mut results = run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::LoadedLatency(result) => Some(result),
        _ => None,
    });
    results.next().expect("a load")
}

#[test]
fn flent_opens_and_plots_an_rrul_test() {
    need_root();
    let folder = tempfile::tempdir().unwrap();
    let (saved, exported) = (
        folder.path().join("run.json"),
        folder.path().join("r.flent.gz"),
    );
    let (saved_name, exported_name) = (saved.to_str().unwrap(), exported.to_str().unwrap());
    let measured = plumb(&[
        "lab",
        "run",
        "--virtual",
        "home-four-classes",
        "--",
        "plumb",
        "load",
        "server",
        "--shape",
        "rrul",
        "--duration",
        "6s",
        "-o",
        saved_name,
    ]);
    assert!(measured.status.success(), "{}", stderr(&measured));
    let written = plumb(&["report", saved_name, "--flent", exported_name]);
    assert!(written.status.success(), "{}", stderr(&written));

    let run = Run::from_json(&std::fs::read_to_string(&saved).unwrap()).unwrap();
    let load = loaded(&run);
    let summary = flent(&exported, &["-f", "summary"]);
    // flent shows what plumb measured: means of the same seconds, to two digits.
    for (series, rate_bps) in [
        ("TCP upload BK", load.classes["BK"].up_bps),
        ("TCP upload BE", load.classes["BE"].up_bps),
        ("TCP download EF", load.classes["EF"].down_bps),
        ("TCP download sum", load.down_bps),
    ] {
        let (theirs, ours) = (summarised(&summary, series, 0), rate_bps.unwrap() / 1e6);
        // Rates of a tenth of a second each; the last one may be shorter.
        assert!(
            (theirs / ours - 1.0).abs() < 0.03,
            "{series}: {theirs}, {ours}"
        );
    }
    for series in ["Ping (ms) UDP BK", "Ping (ms) UDP EF", "Ping (ms) ICMP"] {
        let median_ms = summarised(&summary, series, 1);
        assert!((20.0..60.0).contains(&median_ms), "{series}: {median_ms}");
    }

    let plot = folder.path().join("plot.png");
    for name in ["all_scaled", "totals", "ping_cdf"] {
        flent(&exported, &["-p", name, "-o", plot.to_str().unwrap()]);
        let drawn = std::fs::read(&plot).unwrap();
        assert!(
            drawn.starts_with(b"\x89PNG") && drawn.len() > 5000,
            "{name}"
        );
        std::fs::remove_file(&plot).unwrap();
    }
}
