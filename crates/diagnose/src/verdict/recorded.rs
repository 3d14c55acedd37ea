//! Checks that were made in the laboratory, whose truth is known.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::finding::Place;
use plumb_model::run::Run;

use super::*;
use crate::diagnose;

/// What a Run of `plumb check` in that scenario comes to today. Of its series those are kept that rules
/// read.
fn judged(run: &str) -> (Vec<Finding>, Verdict) {
    let run = Run::from_json(run).unwrap();
    let case = Case::of(&run);
    diagnose(&case, Scope::Path)
}

/// Nothing else of note, and no grade, was found.
fn only(run: &str) -> (Clearance, Finding) {
    let (mut findings, verdict) = judged(run);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(verdict.latency_grade, None, "{verdict:?}");
    (verdict.clearance.unwrap(), findings.remove(0))
}

/// 10 Mbit/s up by a policer. Downloads have no limit, and used their share of the budget in 1.7 s, in which
/// the sender waited for its buffer 62 % of the time: that was the verdict once.
#[test]
fn a_policer_is_unexplained_and_no_buffer_is_blamed() {
    let run = include_str!("../../fixtures/policer.json");
    let (clearance, finding) = only(run);
    assert_eq!(clearance, Clearance::Unexplained);
    assert_eq!(
        (finding.cause, finding.place, finding.severity),
        (Cause::Unexplained, Place::Uplink, Severity::Warning)
    );
    assert!(
        finding
            .summary
            .contains("6.1 % of the segments of uploads are sent again"),
        "{}",
        finding.summary
    );
}

/// Two thirds of an upload's segments are sent again; 36 kbit/s pass of 10 Mbit/s.
#[test]
fn a_duplex_mismatch_is_not_a_loss_of_two_in_a_hundred() {
    let (findings, verdict) = judged(include_str!("../../fixtures/duplex-mismatch.json"));
    assert_ne!(verdict.clearance, Some(Clearance::Cleared));
    assert_eq!(verdict.latency_grade, None);
    let unexplained = findings.iter().find(|f| f.cause == Cause::Unexplained);
    let unexplained = unexplained.unwrap();
    assert_eq!(unexplained.severity, Severity::Warning);
    assert!(
        unexplained
            .summary
            .contains("67 % of the segments of uploads"),
        "{}",
        unexplained.summary
    );
}

/// Packets above 1400 bytes vanish up the path, and downloads used their share in 1.3 s.
#[test]
fn a_black_hole_carries_nothing() {
    let (clearance, finding) = only(include_str!("../../fixtures/mtu-black-hole.json"));
    assert_eq!(clearance, Clearance::Found);
    assert_eq!(
        (finding.cause, finding.place),
        (Cause::NothingCarried, Place::Uplink)
    );
    assert!(
        finding.summary.contains("small packets pass"),
        "{}",
        finding.summary
    );
}

/// 8 Mbit/s that loses 1.5 % of the packets in bursts of five.
#[test]
fn bursts_of_loss_are_no_health() {
    let (findings, verdict) = judged(include_str!("../../fixtures/bursts.json"));
    assert_eq!(verdict.clearance, Some(Clearance::Found), "{verdict:?}");
    assert_eq!(verdict.latency_grade, None);
    assert_eq!(findings[0].cause, Cause::PathLoss);
}

/// FQ-CoDel loses 0.8 % of an upload's segments, which is its way to say that the line is full.
#[test]
fn a_managed_line_is_cleared() {
    let (findings, verdict) = judged(include_str!("../../fixtures/home-cable-managed.json"));
    assert_eq!(findings, []);
    assert_eq!(verdict.clearance, Some(Clearance::Cleared), "{verdict:?}");
    assert_eq!(verdict.latency_grade, Some(Grade::A));
    assert_eq!(
        verdict.headline,
        "No fault found: 90.5 Mbit/s down and 18.0 Mbit/s up, round trips grow by at most 8.1 ms under load, no probe of the idle path was lost (below 1.9 %)."
    );
}

/// The worst finding, and that there is none besides of note.
fn worst(run: &str) -> Finding {
    let (mut findings, verdict) = judged(run);
    assert_eq!(verdict.clearance, Some(Clearance::Found));
    let of_note = findings.iter().filter(|f| f.severity > Severity::Info);
    assert_eq!(of_note.count(), 1, "{findings:#?}");
    findings.remove(0)
}

/// The line is down for 2 s of every 12.
#[test]
fn an_outage_explains_what_is_lost_and_stalls_meanwhile() {
    let found = worst(include_str!("../../fixtures/outage.json"));
    assert_eq!(
        (found.cause, found.severity),
        (Cause::Outage, Severity::Critical)
    );
    let longest = found.evidence[0].value.number().unwrap();
    assert!((longest - 2.0).abs() < 0.15, "{longest}");
}

/// 30 MB pass at 80 Mbit/s, and then 20 Mbit/s.
#[test]
fn a_boost_is_named_with_both_rates() {
    let found = worst(include_str!("../../fixtures/boost.json"));
    assert_eq!(
        (found.cause, found.place),
        (Cause::TokenBucket, Place::Uplink)
    );
    // 1448 of 1500 bytes of each.
    for rate in ["77.2 Mbit/s", "19.3 Mbit/s"] {
        assert!(found.summary.contains(rate), "{}", found.summary);
    }
}

/// 30 and 10 Mbit/s by turns, for 6 s each.
#[test]
fn steps_of_the_rate_are_no_loss() {
    let found = worst(include_str!("../../fixtures/rate-steps.json"));
    assert_eq!(
        (found.cause, found.place),
        (Cause::RateVaries, Place::Uplink)
    );
    assert!(
        found.summary.contains("9.6") && found.summary.contains("28.9"),
        "{}",
        found.summary
    );
}

/// One bit in one of 200 packets down is wrong.
#[test]
fn corruption_is_told_from_loss() {
    let found = worst(include_str!("../../fixtures/corruption.json"));
    assert_eq!(
        (found.cause, found.place),
        (Cause::Corruption, Place::Downlink)
    );
}

/// 40 Mbit/s with a burst of 250 kB, over 90 ms: TCP sends 0.2 % again. Downloads have a queue of 90 ms.
#[test]
fn a_policer_on_a_long_path_is_named() {
    let (findings, _) = judged(include_str!("../../fixtures/policer-long-path.json"));
    let first = &findings[0];
    assert_eq!((first.cause, first.place), (Cause::Policer, Place::Uplink));
    assert!(first.summary.contains("40.1 Mbit/s"), "{}", first.summary);
}

/// 12 kB before 60 Mbit/s: 1.6 ms, over 50 ms.
#[test]
fn a_queue_too_short_for_the_path_is_named_with_its_length() {
    let found = worst(include_str!("../../fixtures/shallow-queue.json"));
    assert_eq!(
        (found.cause, found.place),
        (Cause::ShallowQueue, Place::Downlink)
    );
    assert!(found.summary.contains("holds 1.5 ms"), "{}", found.summary);
}

/// Bursts of five packets on the path down, 1.5 % in all. Uploads have a queue of 80 ms.
#[test]
fn bursts_of_loss_are_told_from_single_losses() {
    let (findings, _) = judged(include_str!("../../fixtures/bursts-paced.json"));
    let bursts = findings
        .iter()
        .find(|f| f.cause == Cause::PathLoss)
        .unwrap();
    assert_eq!(bursts.place, Place::Downlink);
    assert!(
        bursts.summary.contains("in bursts of"),
        "{}",
        bursts.summary
    );
    let single = worst(include_str!("../../fixtures/loss-at-random.json"));
    assert_eq!(
        (single.cause, single.place),
        (Cause::PathLoss, Place::Uplink)
    );
    assert!(
        single.summary.contains("one here and one there"),
        "{}",
        single.summary
    );
}
