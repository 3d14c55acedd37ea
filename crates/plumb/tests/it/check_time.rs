//! A check keeps to its time, whatever the path and the far end do, and clears nothing that it cannot know.

use plumb_model::finding::Clearance;
use plumb_model::run::Run;

use crate::common::network::Network;
use crate::common::{side_by_side, stderr, stdout};

const LINE: &str = r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "50ms" } }, { type = "delay", delay = "12ms" }"#;

/// How long a check took, in seconds, and what it printed.
fn timed(up: &str, down: &str, options: &str) -> (f64, String) {
    let network = Network::served_line(up, down);
    let script = format!(
        "began=$(date +%s%3N); plumb check server --json {options} > run.json 2> said; ended=$(date +%s%3N); \
         echo $((ended - began)); cat run.json; cat said >&2"
    );
    let folder = tempfile::tempdir().unwrap();
    let script = format!("cd {} && {script}", folder.path().display());
    let output = network.run(&["sh", "-c", &script]);
    let text = stdout(&output);
    let (ms, run) = text.split_once('\n').unwrap_or((&text, ""));
    let ms: f64 = ms
        .parse()
        .unwrap_or_else(|_| panic!("{text} {}", stderr(&output)));
    (ms / 1000.0, run.to_owned())
}

#[test]
fn the_time_is_kept_whatever_the_path_does() {
    // From the 3000th packet on nothing passes: in the upload's second second.
    let stops =
        format!(r#"{{ type = "index_loss", packets = "3000-10000000", match = "any" }}, {LINE}"#);
    // Its rate says that it fills no processor.
    let dead = &format!(r#"{{ type = "loss", ratio = "100%" }}, {LINE}"#);
    let within = |up: &str, options: &str, most_s: f64| {
        let (took_s, _) = timed(up, LINE, options);
        assert!(took_s <= most_s, "{options} took {took_s} s on {up}");
    };
    side_by_side(&[
        &|| within(&stops, "--quick", 20.0),
        &|| within(&stops, "", 60.0),
        &|| within(dead, "--quick", 20.0),
        &|| within(dead, "", 60.0),
        &a_quick_check_clears_nothing,
    ]);
}

/// A line that hides nothing is examined as long as one may be.
pub(crate) fn a_check_of_a_healthy_line_keeps_its_time() {
    let (took_s, _) = timed(LINE, LINE, "");
    assert!(took_s <= 60.0, "{took_s} s");
}

/// Whatever its 4 s show: longer ones may show more (`corpus::a_recorded_quick_check_settles_nothing` is such a verdict).
fn a_quick_check_clears_nothing() {
    let (took_s, text) = timed(LINE, LINE, "--quick");
    assert!(took_s <= 20.0, "{took_s} s");
    let verdict = Run::from_json(&text).unwrap().verdict.unwrap();
    let cleared = Some(Clearance::Cleared);
    assert_ne!(verdict.clearance, cleared, "{verdict:?}");
}
