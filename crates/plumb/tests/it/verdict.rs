//! Lines that once had an all-clear, or somebody else's fault, in short checks: none has one today.

use crate::common::network::Network;
use crate::common::{check_in, side_by_side};
use plumb_model::finding::{Cause, Clearance, Severity, Verdict};
use plumb_model::run::Run;

/// Phases of 4 s have a steady rate, and 50 MB are spent at once where a direction has no limit.
const SHORT: [&str; 4] = ["--duration", "4s", "--budget", "50MB"];

/// What is wrong, worst first, and what it comes to.
fn wrong(run: Run) -> (Vec<Cause>, Verdict) {
    let worse = run.findings.iter().filter(|f| f.severity > Severity::Info);
    let causes = worse.map(|finding| finding.cause).collect();
    let verdict = run.verdict.unwrap();
    assert_eq!(verdict.latency_grade, None, "{verdict:?}");
    (causes, verdict)
}

#[test]
fn what_is_wrong_is_not_cleared() {
    side_by_side(&[
        &a_policer_is_unexplained,
        &a_duplex_mismatch_is_wrong,
        &a_black_hole_carries_nothing,
        &bursts_of_loss_are_wrong,
    ]);
}

/// No queue fills, and what is above the contract is lost.
fn a_policer_is_unexplained() {
    let (causes, verdict) = wrong(check_in("policer", &SHORT).run);
    assert_eq!(causes, [Cause::Unexplained], "{verdict:?}");
    assert_eq!(verdict.clearance, Some(Clearance::Unexplained));
    assert!(
        verdict
            .headline
            .contains("segments of uploads are sent again"),
        "{verdict:?}"
    );
}

/// Late collisions take most of an upload: what is left is loss, a stall or nothing at all.
fn a_duplex_mismatch_is_wrong() {
    let (causes, verdict) = wrong(check_in("duplex-mismatch", &SHORT).run);
    let known = [Cause::Unexplained, Cause::PathLoss, Cause::NothingCarried];
    assert!(
        !causes.is_empty() && causes.iter().all(|cause| known.contains(cause)),
        "{causes:?} {verdict:?}"
    );
}

/// Small packets pass, so there are round trips; nothing that fills a packet arrives.
fn a_black_hole_carries_nothing() {
    let (causes, verdict) = wrong(check_in("mtu-black-hole", &SHORT).run);
    assert_eq!(causes, [Cause::NothingCarried], "{verdict:?}");
    assert!(
        verdict.headline.contains("0 bytes arrived")
            && verdict.headline.contains("small packets pass"),
        "{verdict:?}"
    );
}

/// Bursts of 20 packets, 4 % in all, on a line of 8 Mbit/s.
fn bursts_of_loss_are_wrong() {
    let cells = r#"
        { type = "gilbert_elliott", p = "0.2%", r = "5%" },
        { type = "shaper", rate = "8mbit", queue = { type = "fifo", limit = "60ms" } },
        { type = "delay", delay = "20ms" }
    "#;
    let (causes, verdict) = wrong(
        Network::served_line(cells, cells)
            .measured(&[&["check", "server"][..], &SHORT].concat())
            .run,
    );
    assert!(!causes.is_empty(), "{verdict:?}");
    assert_ne!(verdict.clearance, Some(Clearance::Cleared));
}
