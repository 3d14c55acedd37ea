//! The twin of a measured path: scenarios from recorded Runs, and fixes rehearsed in one.

use std::path::Path;
use std::process::Command;

use plumb_lab::twin::{TwinError, twin};
use plumb_model::finding::{Cause, Finding, Place};
use plumb_model::results::Outcome;
use plumb_model::results::rehearsal::{PathFigure, RehearsalResult};
use plumb_model::run::Run;
use plumb_model::units::{BitRate, parse_duration};

use crate::common::slots::{self, Weight};
use crate::common::{PLUMB, need_root, plumb, refused, stderr, stdout};
use crate::corpus::recorded;

/// A cell of the twin's line.
fn cell(text: &str, direction: &str, name: &str) -> Option<toml::Value> {
    let scenario: toml::Value = toml::from_str(text).unwrap();
    let links = scenario["link"].as_array().unwrap();
    let line = links
        .iter()
        .find(|link| link["name"].as_str() == Some("line"));
    let cells = line.unwrap().get(direction)?.as_array().unwrap().clone();
    cells.into_iter().find(|cell| {
        let field = |key: &str| cell.get(key).and_then(toml::Value::as_str);
        field("name").or(field("type")) == Some(name)
    })
}

fn rate(cell: &toml::Value, key: &str) -> f64 {
    let rate: BitRate = cell[key].as_str().unwrap().parse().unwrap();
    rate.bps() as f64
}

fn seconds(text: &str) -> f64 {
    parse_duration(text).unwrap().as_secs_f64()
}

#[test]
fn recorded_paths_have_their_numbers_in_their_twins() {
    let runs = recorded();
    let of = |name: &str| {
        twin(&runs[name].run)
            .unwrap_or_else(|e| panic!("{name}: {e}"))
            .text
    };
    let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.05;

    let cable = of("home-cable");
    // 20 and 100 Mbit/s with 18 bytes of framing a packet, and queues of 700 and 250 ms.
    for (way, bps, queue_s) in [("up", 19.76e6, 0.7), ("down", 98.8e6, 0.25)] {
        let shaper = cell(&cable, way, "shaper").unwrap();
        assert!(near(rate(&shaper, "rate"), bps), "{shaper}");
        let limit = shaper["queue"]["limit"].as_str().unwrap();
        assert!(near(seconds(limit), queue_s), "{shaper}");
        let delay = cell(&cable, way, "delay").unwrap();
        assert!(
            near(seconds(delay["delay"].as_str().unwrap()), 0.009),
            "{delay}"
        );
    }
    let stripped = of("no-window-scale@native");
    assert!(cell(&stripped, "up", "no-wscale").is_some());
    // What held TCP back was no line.
    let carried = 13e6;
    assert!(rate(&cell(&stripped, "up", "shaper").unwrap(), "rate") > 2.0 * carried);

    let lossy = of("home-lossy");
    let lost = |way| cell(&lossy, way, "loss").or(cell(&lossy, way, "gilbert_elliott"));
    assert!(lost("up").is_some() || lost("down").is_some(), "{lossy}");
    let hole = of("mtu-black-hole-down");
    let mtu = cell(&hole, "down", "mtu").unwrap();
    assert_eq!(mtu["bytes"].as_integer(), Some(1400));
    assert_eq!(mtu["icmp"].as_bool(), Some(false));
}

#[test]
fn every_recorded_run_gives_a_scenario_or_says_what_it_lacks() {
    let mut made = 0;
    for (name, record) in recorded() {
        match twin(&record.run) {
            Ok(_) => made += 1,
            Err(TwinError::TooLittle { lacks, .. }) => assert!(!lacks.is_empty(), "{name}"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
    assert!(made >= 15, "{made}");
}

/// Saves a Run in a folder.
fn kept(folder: &Path, run: &Run) -> String {
    let file = folder.join("run.json");
    std::fs::write(&file, serde_json::to_string(run).unwrap()).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_scenario_is_written_and_what_is_no_path_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cable = &recorded()["home-cable"].run;
    let run = kept(folder.path(), cable);
    let file = folder.path().join("twin.toml");
    let file = file.to_str().unwrap();
    let printed = plumb(&["lab", "from", &run]);
    assert!(printed.status.success(), "{}", stderr(&printed));
    let saved = plumb(&["lab", "from", &run, "-o", file]);
    assert!(saved.status.success(), "{}", stderr(&saved));
    assert!(stderr(&saved).contains("not known:"), "{}", stderr(&saved));
    assert!(
        stdout(&saved).contains("plumb lab run"),
        "{}",
        stdout(&saved)
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), stdout(&printed));

    let mut little = cable.clone();
    little.measurements.truncate(2);
    let little = kept(folder.path(), &little);
    for verb in [&["lab", "from"][..], &["rehearse"]] {
        let output = refused(&[verb, &[&little]].concat());
        assert!(!output.status.success());
        let said = stderr(&output);
        assert!(
            said.contains("lacks what uploads carry, what downloads carry"),
            "{said}"
        );
        assert!(said.contains("plumb check server -o run.json"), "{said}");
        let output = refused(&[verb, &["/dev/null"]].concat());
        assert!(!output.status.success());
        assert!(stderr(&output).contains("not a Run"), "{}", stderr(&output));
    }
    // What was there stays where nothing is written.
    assert!(
        !refused(&["lab", "from", &little, "-o", file])
            .status
            .success()
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), stdout(&printed));
}

/// What came of each rehearsal of a Run.
pub(crate) fn rehearsed(run: &str, options: &[&str]) -> (Run, Vec<RehearsalResult>) {
    need_root();
    let _slot = slots::take(Weight::Medium);
    let output = Command::new(PLUMB)
        .args(["rehearse", run, "--json"])
        .args(options)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let run = Run::from_json(&stdout(&output)).unwrap();
    let results = run
        .measurements
        .iter()
        .map(|measurement| match &measurement.outcome {
            Outcome::Rehearsal(result) => (**result).clone(),
            other => panic!("{:?}", other.kind()),
        });
    let results = results.collect();
    (run, results)
}

#[test]
fn a_shaper_is_rehearsed() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = recorded()["home-cable"].run.clone();
    // One fix: each takes a lab of its own.
    let is_it = |finding: &Finding| finding.cause == Cause::BufferbloatUp;
    run.findings.retain(is_it);
    run.findings[0].fixes.truncate(1);
    let file = kept(folder.path(), &run);
    let (made, results) = rehearsed(&file, &["-t", "4s"]);
    let [twin, shaped] = results.as_slice() else {
        panic!("{results:?}");
    };
    assert!(twin.fixes.is_empty() && twin.rank.is_none());
    let (original, twin) = (twin.before, twin.after.unwrap());
    for figure in [
        PathFigure::IdleRtt,
        PathFigure::UpRate,
        PathFigure::DownRate,
    ] {
        let (original, twin) = (original.of(figure).unwrap(), twin.of(figure).unwrap());
        assert!(
            (twin / original - 1.0).abs() < 0.15,
            "{figure:?}: {original} {twin}"
        );
    }
    assert_eq!(shaped.rank, Some(1), "{shaped:?}");
    let better: Vec<PathFigure> = shaped.gains.iter().map(|gain| gain.figure).collect();
    assert!(better.contains(&PathFigure::UpLoadedRtt), "{shaped:?}");
    // Another host was probed meanwhile.
    assert!(
        shaped.after.unwrap().neighbour_rtt_s.is_some(),
        "{shaped:?}"
    );
    let [finding] = made.findings.as_slice() else {
        panic!("{:?}", made.findings);
    };
    assert_eq!(finding.place, Place::Uplink);
    let said = &finding.fixes[0].summary;
    assert!(said.contains("Rehearsed: ") && said.contains("→"), "{said}");
}
