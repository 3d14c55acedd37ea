//! What an all-clear needs, and what withholds it.

use proptest::prelude::*;

use plumb_model::context::Experiment;
use plumb_model::run::Run;

use super::*;
use crate::diagnose;
use crate::experiment::tests::{carried_up, made, stream};

#[test]
fn what_is_measured_and_healthy_is_cleared() {
    let (findings, verdict) = CHECK.judged();
    assert_eq!(findings, []);
    assert_eq!(verdict.clearance, Some(Clearance::Cleared), "{verdict:?}");
    assert_eq!(verdict.latency_grade, Some(Grade::APlus));
    assert_eq!(
        verdict.headline,
        "No fault found: 50.0 Mbit/s down and 50.0 Mbit/s up, round trips grow by at most 4.0 ms under load, no probe of the idle path was lost (below 1.9 %)."
    );
}

/// A limit of datagrams alone: TCP fills the line, and what goes slower than it does not arrive.
#[test]
fn datagrams_that_are_lost_below_the_rate_of_tcp_clear_nothing() {
    let policer = include_str!("../../../fixtures/home-cable-managed.json");
    let clearance = |lost_ratio: f64| {
        let mut run = Run::from_json(policer).unwrap();
        let pps = carried_up(&run) / (1400.0 * 8.0);
        for (experiment, times, lost) in [
            (Experiment::Paced, 0.8, lost_ratio),
            (Experiment::Overload, 1.4, 0.3),
        ] {
            let sent = (2.0 * times * pps) as u64;
            made(
                &mut run,
                stream(experiment, times * pps, 1400),
                sent,
                lost,
                0.02,
            );
        }
        let (findings, verdict) = diagnose(&Case::of(&run), Scope::Path);
        assert_eq!(findings, []);
        verdict.clearance
    };
    assert_eq!(clearance(0.0), Some(Clearance::Cleared));
    assert_eq!(clearance(0.7), Some(Clearance::NotMeasured));
    assert_eq!(clearance(0.03), Some(Clearance::NotMeasured));
}

#[test]
fn a_part_is_never_cleared() {
    let (findings, verdict) = judged(&CHECK.measurements(), Scope::Part);
    assert_eq!((findings, verdict.clearance), (vec![], None));
    assert!(verdict.headline.is_empty() && verdict.not_measured.is_empty());
}

#[test]
fn a_budget_too_small_for_the_path_is_named_with_what_it_takes() {
    // 2 GB on 10 Gbit/s, with a send buffer that is full meanwhile.
    let short = |bps, seconds| Load {
        bps,
        seconds,
        sndbuf_ratio: 0.9,
        network_ratio: 0.1,
        ..HEALTHY
    };
    let check = Check {
        up: short(3e9, 1.3),
        down: short(3e9, 1.3),
        both: short(3e9, 1.3),
        ..CHECK
    };
    let (findings, verdict) = check.judged();
    assert_eq!(findings, []);
    assert_eq!(verdict.clearance, Some(Clearance::NotMeasured));
    assert_eq!(verdict.latency_grade, None);
    assert_eq!(
        verdict.headline,
        "Not measured: the line's rates and latency under load, because the budget ended the load after 1.30 s of 15.00 s. --budget 32.0GB would measure it."
    );
}

#[test]
fn a_phase_that_was_to_be_short_is_named_too() {
    let short = Load {
        seconds: 10.0,
        ..HEALTHY
    };
    let check = Check {
        up: short,
        down: short,
        both: short,
        asked_s: 10.0,
        ..CHECK
    };
    let verdict = check.judged().1;
    assert_eq!(verdict.clearance, Some(Clearance::NotMeasured));
    assert_eq!(
        verdict.headline,
        "Not measured: latency under load, because 10.00 s are too short for it. --duration 14s would measure it."
    );
}

#[test]
fn whatever_an_all_clear_needs_is_missed() {
    let missing = |verdict: Verdict| {
        assert_eq!(
            verdict.clearance,
            Some(Clearance::NotMeasured),
            "{verdict:?}"
        );
        assert_eq!(verdict.latency_grade, None);
        let what = verdict.not_measured.into_iter().map(|n| n.what);
        what.collect::<Vec<_>>().join(", ")
    };
    let bbr = Load {
        cc: "bbr",
        ..HEALTHY
    };
    let busy = Load {
        network_ratio: 0.4,
        queue_s: 0.0,
        ..HEALTHY
    };
    assert_eq!(
        missing(Check { up: bbr, ..CHECK }.judged().1),
        "latency under upload"
    );
    assert_eq!(
        missing(
            Check {
                down: busy,
                ..CHECK
            }
            .judged()
            .1
        ),
        "the line's download rate"
    );
    assert_eq!(
        missing(
            Check {
                idle: [50, 50],
                ..CHECK
            }
            .judged()
            .1
        ),
        "loss while idle"
    );
    assert_eq!(
        missing(
            Check {
                idle: [250, 0],
                ..CHECK
            }
            .judged()
            .1
        ),
        "idle latency and loss"
    );
    // Without a measurement at all.
    assert!(
        missing(judged(&[], Scope::Path).1)
            .starts_with("idle latency and loss, the line's rates and latency under load")
    );
    for gone in 0..CHECK.measurements().len() {
        let mut rest = CHECK.measurements();
        rest.remove(gone);
        let verdict = judged(&rest, Scope::Path).1;
        // Of both at once either direction says what there is to know.
        if !matches!(gone, 3 | 4) {
            assert_ne!(missing(verdict), "", "{gone}");
        }
    }
    // The sender's record is missing.
    let mute = Load { cc: "", ..HEALTHY };
    assert_eq!(
        missing(
            Check {
                down: mute,
                ..CHECK
            }
            .judged()
            .1
        ),
        "retransmissions and stalls of the download"
    );
}

#[test]
fn nothing_is_worse_than_f() {
    let mut all = CHECK.measurements();
    all.retain(|m| m.id != "latency-down");
    let grade = |grade| {
        let mut all = all.clone();
        for m in &mut all {
            if let Outcome::LoadedLatency(loaded) = &mut m.outcome {
                loaded.grade = Some(grade);
            }
        }
        judged(&all, Scope::Path).1.latency_grade
    };
    assert_eq!(grade(Grade::D), None);
    assert_eq!(grade(Grade::F), Some(Grade::F));
}

fn load() -> impl Strategy<Value = Load> {
    let rare =
        |ordinary: f64, other: std::ops::Range<f64>| prop_oneof![4 => Just(ordinary), 1 => other];
    (
        prop_oneof![6 => 1e4..1e10f64, 1 => Just(0.0)],
        prop_oneof![3 => Just(0.0005), 1 => 0.0..0.9f64],
        prop_oneof![3 => Just(0.008), 1 => 0.0..0.05f64],
        rare(0.0, 0.0..1.0),
        rare(15.0, 0.1..30.0),
        rare(0.95, 0.0..1.0),
    )
        .prop_map(|(bps, again, queue_s, loss, seconds, network_ratio)| Load {
            bps,
            again,
            queue_s,
            loss,
            seconds,
            network_ratio,
            ..HEALTHY
        })
}

proptest! {
    /// Whatever was measured: what is cleared was measured and is healthy, by rules written down once more.
    #[test]
    fn only_health_that_was_measured_is_cleared(
        idle in prop_oneof![4 => Just([250, 250]), 1 => (1u64..300).prop_map(|n| [n, n]), 1 => Just([250, 248])],
        up in load(), down in load(), both in load(), gone in prop_oneof![3 => Just(8usize), 1 => 0usize..8],
    ) {
        let check = Check { idle, up, down, both, ..CHECK };
        let mut all = check.measurements();
        if gone < all.len() {
            all.remove(gone);
        }
        let (findings, verdict) = judged(&all, Scope::Path);
        let cleared = verdict.clearance == Some(Clearance::Cleared);
        let unexplained = |load: Load| load.bps > 0.0 && load.seconds >= 4.0 && load.again > 0.0011 && load.queue_s < 0.001;
        let graded = verdict.latency_grade.is_some_and(|grade| grade != Grade::F);
        if (unexplained(up) && gone != 1) || (unexplained(down) && gone != 2) {
            prop_assert!(!cleared);
        }
        if findings.iter().any(|f| f.cause == Cause::Unexplained) {
            prop_assert!(!cleared && !graded);
        }
        if cleared {
            prop_assert!(idle[0] >= 188 && idle[0] == idle[1] && gone != 0);
            for load in [up, down] {
                prop_assert!(load.bps > 0.0 && load.seconds >= 14.0 && load.loss < 0.06, "{load:?}");
                prop_assert!(load.again <= 0.0011 || load.queue_s >= 0.001, "{load:?}");
            }
            // Each queue was filled for long enough by its direction alone.
            prop_assert!(both.seconds >= 4.0 && both.bps > 0.0);
            prop_assert!(![1, 2, 5, 6, 7].contains(&gone));
            prop_assert!(findings.iter().all(|f| f.severity == Severity::Info));
        }
        prop_assert_eq!(verdict.clearance == Some(Clearance::NotMeasured), !verdict.headline.is_empty() && verdict.headline.starts_with("Not measured"));
    }
}
