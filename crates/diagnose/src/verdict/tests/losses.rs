//! What is lost and retransmitted, and what explains it.

use super::*;
use crate::signs::{Kind, signs};

#[test]
fn segments_sent_again_without_a_queue_are_unexplained() {
    // A policer, bursts of loss, and a duplex mismatch.
    for (bps, again, says) in [
        (9.6e6, 0.037, "3.7 % of the segments of uploads"),
        (5.6e6, 0.02, "2.0 % of the segments of uploads"),
        (149e3, 0.85, "85 % of the segments of uploads"),
    ] {
        let up = Load {
            bps,
            again,
            queue_s: 0.0,
            ..HEALTHY
        };
        let (clearance, finding) = Check { up, ..CHECK }.only_finding();
        assert_eq!(clearance, Clearance::Unexplained);
        assert_eq!(
            (finding.cause, finding.place, finding.severity),
            (Cause::Unexplained, Place::Uplink, Severity::Warning)
        );
        assert!(finding.summary.contains(says), "{}", finding.summary);
    }
}

#[test]
fn a_full_queue_explains_only_what_it_loses() {
    let again = |again| {
        let up = Load { again, ..HEALTHY };
        Check { up, ..CHECK }.judged().1.clearance.unwrap()
    };
    // Windows of 30 segments: 1.5 / 900, twice.
    assert_eq!(again(0.003), Clearance::Cleared);
    assert_eq!(again(0.006), Clearance::Unexplained);
}

/// Windows of 60 segments and round trips of 0.12 s: 0.042 % by Reno's equation, and 0.055 % by CUBIC's.
#[test]
fn cubic_loses_more_on_a_long_path() {
    let again = |cc| {
        let up = Load {
            bps: 23.2e6,
            again: 0.00105,
            queue_s: 0.1,
            cc,
            ..HEALTHY
        };
        let signs = with_case(&Check { up, ..CHECK }.measurements(), signs);
        signs.iter().any(|sign| sign.kind == Kind::Retransmissions)
    };
    assert!(again("reno"));
    assert!(!again("cubic"));
}

#[test]
fn one_lost_probe_is_no_all_clear_and_no_alarm() {
    let (clearance, finding) = Check {
        idle: [250, 249],
        ..CHECK
    }
    .only_finding();
    assert_eq!(clearance, Clearance::Unexplained);
    assert_eq!(finding.severity, Severity::Info);
    assert_eq!(
        finding.summary,
        "Unexplained: 1 of 250 probes are lost while idle."
    );
}

#[test]
fn loss_while_idle_is_found_and_explains_what_is_sent_again() {
    let up = Load {
        again: 0.04,
        queue_s: 0.0,
        ..HEALTHY
    };
    let lossy = Check {
        idle: [250, 243],
        up,
        ..CHECK
    };
    let (findings, verdict) = lossy.judged();
    assert_eq!(findings[0].cause, Cause::PathLoss);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(verdict.clearance, Some(Clearance::Found));
    assert!(verdict.headline.contains("7 of 250 probes"));
    // Far more than that loss is not explained by it.
    let up = Load { again: 0.4, ..up };
    let (findings, verdict) = Check { up, ..lossy }.judged();
    assert_eq!(findings.last().unwrap().cause, Cause::Unexplained);
    assert_eq!(verdict.latency_grade, None);
}

#[test]
fn probes_lost_beside_a_load_need_a_queue_that_overflows() {
    let lossy = |queue_s| {
        let up = Load {
            loss: 0.01,
            again: if queue_s > 0.0 { 0.003 } else { 0.0 },
            queue_s,
            ..HEALTHY
        };
        Check { up, ..CHECK }.judged().1.clearance.unwrap()
    };
    assert_eq!(lossy(0.008), Clearance::Cleared);
    assert_eq!(lossy(0.0), Clearance::Unexplained);
}

#[test]
fn probes_lost_beside_a_load_too_short_to_show_its_queue_are_no_sign() {
    let short = Load {
        loss: 0.1,
        seconds: 3.0,
        ..HEALTHY
    };
    let (findings, verdict) = Check { up: short, ..CHECK }.judged();
    assert_eq!(findings, []);
    assert_eq!(verdict.clearance, Some(Clearance::NotMeasured));
    // Of both directions at once it is not known what fills.
    let both = Load {
        seconds: 15.0,
        ..short
    };
    let (findings, _) = Check {
        up: short,
        both,
        ..CHECK
    }
    .judged();
    assert_eq!(findings, []);
}
