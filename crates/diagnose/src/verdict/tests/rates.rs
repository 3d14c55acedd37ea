//! Rates that stall, vary and change in steps.

use super::*;

#[test]
fn stalls_unsteady_rates_and_a_collapse_are_signs() {
    let with_rate = |bps: fn(f64) -> f64| {
        let mut all = CHECK.measurements();
        all[2]
            .series
            .insert("bps".to_owned(), constant(Unit::BitsPerSecond, 15.0, bps));
        let (findings, verdict) = judged(&all, Scope::Path);
        assert_eq!(verdict.clearance, Some(Clearance::Unexplained));
        (findings[0].severity, findings[0].summary.clone())
    };
    let stalled = with_rate(|t| if (6.0..8.4).contains(&t) { 0.0 } else { 5e7 });
    assert_eq!(stalled.0, Severity::Warning);
    assert!(
        stalled.1.contains("downloads stall for 2.5"),
        "{}",
        stalled.1
    );
    let restless = with_rate(|t| {
        if (t as u64).is_multiple_of(2) {
            1e8
        } else {
            2e7
        }
    });
    assert_eq!(restless.0, Severity::Info);
    assert!(
        restless
            .1
            .contains("downloads vary between 20.0 Mbit/s and 100 Mbit/s"),
        "{}",
        restless.1
    );
    let both = Load {
        bps: 5e6,
        ..HEALTHY
    };
    let (_, collapsed) = Check { both, ..CHECK }.only_finding();
    assert_eq!(
        collapsed.summary,
        "Unexplained: both directions at once carry 10.0 Mbit/s together, and downloads alone 50.0 Mbit/s."
    );
}

#[test]
fn a_boost_and_steps_of_the_rate_are_named() {
    let found = |bps: fn(f64) -> f64| {
        let mut all = CHECK.measurements();
        all[2]
            .series
            .insert("bps".to_owned(), constant(Unit::BitsPerSecond, 15.0, bps));
        let (findings, verdict) = judged(&all, Scope::Path);
        assert_eq!(verdict.clearance, Some(Clearance::Found), "{verdict:?}");
        findings.iter().map(|f| f.cause).collect::<Vec<_>>()
    };
    assert_eq!(
        found(|t| if t < 5.0 { 1e8 } else { 2e7 }),
        [Cause::TokenBucket]
    );
    // One that is empty after three seconds, of which two pass before slow start ends on most paths: here it was seen to end.
    let mut short = CHECK.measurements();
    let fast = constant(
        Unit::BitsPerSecond,
        15.0,
        |t| if t < 3.0 { 1e8 } else { 2e7 },
    );
    short[2].series.insert("bps".to_owned(), fast);
    let of = |all: &[Measurement]| {
        let (findings, _) = judged(all, Scope::Path);
        findings.iter().map(|f| f.cause).collect::<Vec<_>>()
    };
    assert_ne!(of(&short), [Cause::TokenBucket]);
    if let Outcome::Throughput(result) = &mut short[2].outcome {
        let seen = json!({ "duration_s": 0.1, "bytes": 700_000, "ended_by": "ssthresh", "rate_after_bps": 1e8 });
        result.slow_start = Some(serde_json::from_value(seen).unwrap());
    }
    assert_eq!(of(&short), [Cause::TokenBucket]);
    let steps = |t: f64| {
        if ((t / 4.0) as u64).is_multiple_of(2) {
            2e7
        } else {
            6e7
        }
    };
    assert_eq!(found(steps), [Cause::RateVaries]);
}

/// Rates that vary by half are only worth knowing, and 3 % of the segments retransmitted are worse.
#[test]
fn what_is_worth_knowing_clears_no_path_of_what_is_wrong() {
    let down = Load {
        again: 0.03,
        ..HEALTHY
    };
    let mut all = Check { down, ..CHECK }.measurements();
    let steps = |t: f64| match ((t / 4.0) as u64).is_multiple_of(2) {
        true => 4e7,
        false => 6e7,
    };
    let steps = constant(Unit::BitsPerSecond, 15.0, steps);
    all[2].series.insert("bps".to_owned(), steps);
    let (findings, verdict) = judged(&all, Scope::Path);
    let causes: Vec<_> = findings.iter().map(|f| (f.cause, f.severity)).collect();
    assert!(
        causes.contains(&(Cause::RateVaries, Severity::Info))
            && causes.contains(&(Cause::Unexplained, Severity::Warning)),
        "{causes:?}"
    );
    assert_eq!(verdict.clearance, Some(Clearance::Unexplained));
}
