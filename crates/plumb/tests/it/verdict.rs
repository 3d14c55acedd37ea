//! Lines that once had an all-clear, or somebody else's fault, in short checks: each is named today.

use crate::common::network::Network;
use crate::common::{check_in, side_by_side, stderr, stdout};
use plumb_lab::truth::is_about_the_machine;
use plumb_model::context::Phase;
use plumb_model::finding::{Cause, Clearance, Finding, Place, Severity};
use plumb_model::run::Run;

/// Phases of 4 s have a steady rate, and 50 MB are spent at once where a direction has no limit.
const SHORT: [&str; 4] = ["--duration", "4s", "--budget", "50MB"];

/// What is wrong with the line. What its machine lacks is rightly found too, and is none of the line's.
fn wrong(run: &Run) -> Vec<&Finding> {
    let worse = run
        .findings
        .iter()
        .filter(|f| f.severity > Severity::Info && !is_about_the_machine(f));
    worse.collect()
}

/// The finding of a Run that names this cause, blames nothing else on the path, and clears nothing.
fn names(run: &Run, cause: Cause) -> &Finding {
    let verdict = run.verdict.as_ref().unwrap();
    assert_eq!(verdict.latency_grade, None, "{verdict:?}");
    assert_eq!(verdict.clearance, Some(Clearance::Found), "{verdict:?}");
    match wrong(run)[..] {
        [one] if one.cause == cause => one,
        ref found => panic!("not {} alone: {found:?} {verdict:?}", cause.name()),
    }
}

#[test]
fn what_is_wrong_is_not_cleared() {
    side_by_side(&[
        &a_path_that_stops_carrying_is_the_finding,
        &a_policer_is_named,
    ]);
}

/// The finding of a check in a network of that line, which names this cause alone at that place: its sentence.
fn one_cause(up: &str, down: &str, cause: Cause, place: Place) -> String {
    let network = Network::served_line(up, down);
    // Phases long enough for a bound on the loss, and no budget that ends them on lines of 30 Mbit/s.
    let run = network.measured(&["check", "server", "--duration", "5s", "--budget", "200MB"]);
    let found = names(&run.run, cause);
    assert_eq!(found.place, place, "{found:?}");
    found.summary.clone()
}

/// What exceeds 10 Mbit/s is dropped, and nothing waits.
fn a_policer_is_named() {
    let run = check_in("policer", &SHORT).run;
    let summary = &names(&run, Cause::Policer).summary;
    // 1400 of the 1428 bytes that the policer counts.
    assert!(summary.contains("a policer of 9."), "{summary}");
}

/// Late collisions take most of what meets, and hardly any of what goes alone.
pub(crate) fn a_duplex_mismatch_is_named() {
    names(
        &check_in("duplex-mismatch", &SHORT).run,
        Cause::DuplexMismatch,
    );
}

/// Small packets pass, so there are round trips; nothing that fills a packet arrives.
pub(crate) fn a_black_hole_is_named() {
    let run = check_in("mtu-black-hole", &SHORT).run;
    let summary = &names(&run, Cause::PmtudBlackHole).summary;
    assert!(summary.contains("above 1400 bytes vanish"), "{summary}");
}

/// The Run of a check that lost its responder in a phase, which is the one cause, and the finding's sentence.
fn cause_of_a_lost_responder(up: &str, down: &str, options: &[&str]) -> (Run, String) {
    let network = Network::served_line(up, down);
    let command = ["plumb", "check", "server", "--duration", "5s", "--json"];
    let output = network.run(&[&command, options].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let run = Run::from_json(&stdout(&output)).unwrap();
    // What carries nothing comes before what its machine lacks.
    let summary = names(&run, Cause::NothingCarried).summary.clone();
    assert_eq!(run.verdict.as_ref().unwrap().headline, summary);
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
    let first = run.findings.iter().find(|f| !is_about_the_machine(f));
    let first = first.unwrap();
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
    let summary = one_cause(&lossy, SHAPED, Cause::PathLoss, Place::Uplink);
    assert!(summary.contains("in bursts of"), "{summary}");
}

/// 1 % on the path down.
pub(crate) fn loss_at_random_is_told_from_a_full_queue() {
    let lossy = format!(r#"{{ type = "loss", ratio = "1%" }}, {SHAPED}"#);
    let summary = one_cause(SHAPED, &lossy, Cause::PathLoss, Place::Downlink);
    assert!(summary.contains("lost singly, not in bursts"), "{summary}");
}

/// Three packets before a line of 20 Mbit/s: they take 2 ms.
pub(crate) fn a_short_queue_is_named_with_its_length() {
    let short = r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "5kB" } }, { type = "delay", delay = "15ms" }"#;
    let summary = one_cause(short, SHAPED, Cause::ShallowQueue, Place::Uplink);
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
    let summary = one_cause(
        &strips,
        &format!(r#"{{ type = "delay", name = "far", delay = "20ms" }}, {SHAPED}"#),
        Cause::WindowScalingStripped,
        Place::Path,
    );
    assert!(summary.contains("is 8."), "{summary}");
}
