//! Lines that once had an all-clear, or somebody else's fault, in short checks: each is named today.

use crate::common::network::Network;
use crate::common::{check_in, side_by_side, stderr, stdout};
use plumb_model::context::Phase;
use plumb_model::finding::{Cause, Clearance, Place, Severity, Verdict};
use plumb_model::run::Run;

/// Phases of 4 s have a steady rate, and 50 MB are spent at once where a direction has no limit.
const SHORT: [&str; 4] = ["--duration", "4s", "--budget", "50MB"];

/// What is wrong with the line, worst first, and what it comes to. Time that other machines take from this one is rightly found too,
/// and none of the line's (the truth of scenarios leaves it out likewise).
fn wrong(run: Run) -> (Vec<Cause>, Verdict) {
    let worse = run
        .findings
        .iter()
        .filter(|f| f.severity > Severity::Info && f.cause != Cause::VmSteal);
    let causes = worse.map(|finding| finding.cause).collect();
    let verdict = run.verdict.unwrap();
    assert_eq!(verdict.latency_grade, None, "{verdict:?}");
    (causes, verdict)
}

#[test]
fn what_is_wrong_is_not_cleared() {
    side_by_side(&[
        &a_path_that_stops_carrying_is_the_finding,
        &a_policer_is_named,
    ]);
}

/// The one cause of a check in a network of that line, and the finding's sentence.
fn one_cause(up: &str, down: &str) -> (Cause, Place, String) {
    let network = Network::served_line(up, down);
    // Phases long enough for a bound on the loss, and no budget that ends them on lines of 30 Mbit/s.
    let run = network.measured(&["check", "server", "--duration", "5s", "--budget", "200MB"]);
    let first = run.run.findings.first().cloned();
    let (causes, verdict) = wrong(run.run);
    assert_eq!(causes.len(), 1, "{causes:?} {verdict:?}");
    assert_eq!(verdict.clearance, Some(Clearance::Found));
    let first = first.unwrap();
    (first.cause, first.place, first.summary)
}

/// What exceeds 10 Mbit/s is dropped, and nothing waits.
fn a_policer_is_named() {
    let (causes, verdict) = wrong(check_in("policer", &SHORT).run);
    assert_eq!(causes, [Cause::Policer], "{verdict:?}");
    // 1400 of the 1428 bytes that the policer counts.
    assert!(verdict.headline.contains("a policer of 9."), "{verdict:?}");
}

/// Late collisions take most of what meets, and hardly any of what goes alone.
pub(crate) fn a_duplex_mismatch_is_named() {
    let (causes, verdict) = wrong(check_in("duplex-mismatch", &SHORT).run);
    assert_eq!(causes, [Cause::DuplexMismatch], "{verdict:?}");
}

/// Small packets pass, so there are round trips; nothing that fills a packet arrives.
pub(crate) fn a_black_hole_is_named() {
    let (causes, verdict) = wrong(check_in("mtu-black-hole", &SHORT).run);
    assert_eq!(causes, [Cause::PmtudBlackHole], "{verdict:?}");
    assert!(
        verdict.headline.contains("above 1400 bytes vanish"),
        "{verdict:?}"
    );
}

/// The one cause of a check that lost its responder in the phase, and the finding's sentence.
fn cause_of_a_lost_responder(up: &str, down: &str, options: &[&str]) -> (Run, String) {
    let network = Network::served_line(up, down);
    let command = ["plumb", "check", "server", "--duration", "5s", "--json"];
    let output = network.run(&[&command, options].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let run = Run::from_json(&stdout(&output)).unwrap();
    let summary = run.findings.first().unwrap().summary.clone();
    let (causes, verdict) = wrong(run.clone());
    assert_eq!(causes, [Cause::NothingCarried], "{verdict:?}");
    assert_eq!(verdict.clearance, Some(Clearance::Found));
    assert_eq!(verdict.headline, summary);
    (run, summary)
}

pub(crate) fn a_black_hole_down_is_the_finding_and_loses_no_responder() {
    black_hole_down(SHAPED, "200MB");
}

/// As fast as the machine is.
pub(crate) fn a_black_hole_down_without_a_line_is_named() {
    black_hole_down(r#"{ type = "delay", delay = "5ms" }"#, "50MB");
}

/// The responder's own reports are above 1400 bytes, too; the loads go on with segments that fit.
fn black_hole_down(line: &str, budget: &str) {
    const HOLE: &str = r#"{ type = "mtu", bytes = 1400, icmp = false, fragment = false }"#;
    let network = Network::served_line(line, &format!("{HOLE}, {line}"));
    let command = ["check", "server", "--duration", "5s", "--budget", budget];
    let run = network.measured(&command).run;
    let first = run.findings.first().unwrap();
    assert_eq!(
        (first.cause, first.place),
        (Cause::PmtudBlackHole, Place::Downlink),
        "{first:?}"
    );
    assert!(first.summary.contains("1400 bytes"), "{first:?}");
    assert_eq!(run.verdict.unwrap().clearance, Some(Clearance::Found));
    let both = |context: Option<Phase>| context == Some(Phase::Both);
    assert!(
        run.measurements.iter().any(|m| both(m.context.phase)),
        "every load was measured"
    );
}

/// At 30 Mbit/s packets of 1500 bytes are 2500 in a second.
fn a_path_that_stops_carrying_is_the_finding() {
    let stops = |which: &str| {
        let lost = format!(
            r#"{{ type = "index_loss", packets = "4000-10000000", match = "{which}" }}, {SHAPED}"#
        );
        let (_, summary) = cause_of_a_lost_responder(&lost, SHAPED, &[]);
        let begins = "The path stopped carrying our packets in the up phase";
        assert!(summary.starts_with(begins), "{summary}");
        summary
    };
    let all = stops("any");
    assert!(all.contains("the path or the far end is down"), "{all}");
    let data = stops("tcp_data");
    assert!(data.contains("while small packets still pass"), "{data}");
}

const SHAPED: &str = r#"{ type = "shaper", rate = "30mbit", queue = { type = "fifo", limit = "50ms" } }, { type = "delay", delay = "12ms" }"#;

/// Bursts of ten packets, 1 % in all, on the path up.
pub(crate) fn bursts_of_loss_are_named_with_their_direction() {
    let lossy = format!(r#"{{ type = "gilbert_elliott", p = "0.1%", r = "10%" }}, {SHAPED}"#);
    let (cause, place, summary) = one_cause(&lossy, SHAPED);
    assert_eq!(
        (cause, place),
        (Cause::PathLoss, Place::Uplink),
        "{summary}"
    );
    assert!(summary.contains("in bursts of"), "{summary}");
}

/// 1 % on the path down.
pub(crate) fn loss_at_random_is_told_from_a_full_queue() {
    let lossy = format!(r#"{{ type = "loss", ratio = "1%" }}, {SHAPED}"#);
    let (cause, place, summary) = one_cause(SHAPED, &lossy);
    assert_eq!(
        (cause, place),
        (Cause::PathLoss, Place::Downlink),
        "{summary}"
    );
    assert!(summary.contains("one here and one there"), "{summary}");
}

/// Three packets before a line of 20 Mbit/s: they take 2 ms.
pub(crate) fn a_short_queue_is_named_with_its_length() {
    let short = r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "5kB" } }, { type = "delay", delay = "15ms" }"#;
    let (cause, place, summary) = one_cause(short, SHAPED);
    assert_eq!(
        (cause, place),
        (Cause::ShallowQueue, Place::Uplink),
        "{summary}"
    );
    let holds = ["holds 1.", "holds 2."];
    assert!(
        holds.iter().any(|holds| summary.contains(holds)),
        "{summary}"
    );
}

/// 64 KiB over 64 ms are 8 Mbit/s of the line's 30.
pub(crate) fn an_option_that_the_path_strips_is_named() {
    let strips = format!(
        r#"{{ type = "strip_tcp_options", options = ["wscale"] }}, {{ type = "delay", name = "far", delay = "20ms" }}, {SHAPED}"#
    );
    let (cause, place, summary) = one_cause(
        &strips,
        &format!(r#"{{ type = "delay", name = "far", delay = "20ms" }}, {SHAPED}"#),
    );
    assert_eq!(
        (cause, place),
        (Cause::WindowScalingStripped, Place::Path),
        "{summary}"
    );
    assert!(summary.contains("is 8."), "{summary}");
}
