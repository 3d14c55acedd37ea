//! What a rehearsal in the twin of a path says of the fixes that were tried: what they gain, what they harm, in which order.

use std::cmp::Ordering;

use plumb_model::finding::{Finding, Verdict};
use plumb_model::order::sort_few;
use plumb_model::results::rehearsal::{PathFigure, PathFigures, RehearsalResult, RehearsedChange};
use plumb_model::units::{capital, human_seconds, si};

/// A twin may differ from its original by this share; a fix that changes a figure by less has shown nothing.
pub const TWIN_RATIO: f64 = 0.15;

/// A difference of round trips below this, in seconds, goes unnoticed, and a busy machine causes as much.
const LEAST_S: f64 = 0.005;

/// What got better and what got worse, each the most first.
pub fn changes(
    before: &PathFigures,
    after: &PathFigures,
) -> (Vec<RehearsedChange>, Vec<RehearsedChange>) {
    let all = before.all().into_iter().filter_map(|(figure, before)| {
        let (before, after) = (sound(figure, before)?, sound(figure, after.of(figure))?);
        let change = RehearsedChange {
            figure,
            before,
            after,
        };
        is_seen(&change).then_some(change)
    });
    let (mut gains, mut harms): (Vec<_>, Vec<_>) = all.partition(|change| factor(change) > 1.0);
    sort_few(&mut gains, |a, b| factor(b).total_cmp(&factor(a)));
    sort_few(&mut harms, |a, b| factor(a).total_cmp(&factor(b)));
    (gains, harms)
}

/// What carries less than this, in bit/s, carries nothing that can be used.
const NOTHING_BPS: f64 = 1e3;

fn sound(figure: PathFigure, value: Option<f64>) -> Option<f64> {
    let value = value.filter(|value| value.is_finite())?;
    match figure.is_rate() {
        true => Some(value.max(NOTHING_BPS)),
        false => (value > 0.0).then_some(value),
    }
}

/// How many times as good it is.
fn factor(change: &RehearsedChange) -> f64 {
    match change.figure.is_rate() {
        true => change.after / change.before,
        false => change.before / change.after,
    }
}

fn is_seen(change: &RehearsedChange) -> bool {
    let enough = (factor(change).ln()).abs() > (1.0 + TWIN_RATIO).ln();
    let noticed = (change.after - change.before).abs() >= LEAST_S;
    enough && (change.figure.is_rate() || noticed)
}

/// How much better all of it became, less what became worse: the logarithm of the factors together.
fn effect(result: &RehearsalResult) -> f64 {
    let all = result.gains.iter().chain(&result.harms);
    all.map(|change| factor(change).ln()).sum()
}

/// Ranks what was rehearsed by its effect.
pub fn rank(results: &mut [RehearsalResult]) {
    let mut effects: Vec<(usize, f64)> = results
        .iter()
        .enumerate()
        .filter(|(_, result)| !result.fixes.is_empty() && !result.gains.is_empty())
        .map(|(at, result)| (at, effect(result)))
        .filter(|(_, effect)| *effect > 0.0)
        .collect();
    // What differs by less than twins do keeps the order of the advice.
    sort_few(&mut effects, |a, b| match (a.1 - b.1).abs() {
        near if near <= (1.0 + TWIN_RATIO).ln() => Ordering::Equal,
        _ => b.1.total_cmp(&a.1),
    });
    for (rank, (at, _)) in (1..).zip(effects) {
        if let Some(result) = results.get_mut(at) {
            result.rank = Some(rank);
        }
    }
}

/// Puts what came of each fix beside the advice, the best fix of a finding first.
pub fn settle(findings: &mut [Finding], results: &[RehearsalResult]) {
    for finding in findings {
        let (cause, place) = (finding.cause, finding.place);
        let of = |number: usize| {
            let alone = |result: &&RehearsalResult| match result.fixes.as_slice() {
                [fix] => fix.cause == cause && fix.place == place && fix.fix == number as u64,
                _ => false,
            };
            results.iter().find(alone)
        };
        let fixes = std::mem::take(&mut finding.fixes).into_iter().enumerate();
        let mut ranked: Vec<_> = fixes
            .map(|(number, mut fix)| {
                let result = of(number);
                if let Some(result) = result {
                    fix.summary = format!("{} {}", fix.summary, capital(&said(result)));
                }
                (result.and_then(|result| result.rank), fix)
            })
            .collect();
        sort_few(&mut ranked, |a, b| {
            a.0.unwrap_or(u64::MAX).cmp(&b.0.unwrap_or(u64::MAX))
        });
        finding.fixes = ranked.into_iter().map(|(_, fix)| fix).collect();
    }
}

/// What came of it in a sentence, as "rehearsed: 698 → 21 ms (round trips under upload)".
pub fn said(result: &RehearsalResult) -> String {
    if let Some(why) = &result.why_not {
        return format!("not rehearsed, because {why}.");
    }
    let harms: Vec<String> = result.harms.iter().map(change).collect();
    let harm = match harms.is_empty() {
        true => String::new(),
        false => format!("; it harms: {}", harms.join(", ")),
    };
    match result.gains.first() {
        Some(gain) => format!("rehearsed: {}{harm}.", change(gain)),
        None => format!("rehearsed: nothing gets better{harm}."),
    }
}

/// A change with its figure, as "717 ms → 21 ms (round trips under upload)".
pub fn change(change: &RehearsedChange) -> String {
    format!(
        "{} → {} ({})",
        value(change.figure, change.before),
        value(change.figure, change.after),
        change.figure.shown()
    )
}

/// The value of a figure with its unit.
pub fn value(figure: PathFigure, value: f64) -> String {
    match figure.is_rate() {
        true => si(value, "bit/s"),
        false => human_seconds(value),
    }
}

/// What all of it comes to.
pub fn verdict(results: &[RehearsalResult]) -> Verdict {
    let best = results.iter().find(|result| result.rank == Some(1));
    let tried = results.iter().filter(|result| !result.fixes.is_empty());
    let headline = match (best, tried.count()) {
        (Some(best), _) => {
            let fixes: Vec<&str> = best.fixes.iter().map(|fix| fix.summary.as_str()).collect();
            format!(
                "The best fix in the twin: {} {}",
                fixes.join(" "),
                capital(&said(best))
            )
        }
        (None, 0) => "No finding of the Run names a fix to rehearse.".to_owned(),
        (None, _) => "No fix that was rehearsed makes the twin better.".to_owned(),
    };
    Verdict::of_a_part(headline)
}

/// By how much the twin differs from the original at most, as a share of the original, and in which figure.
pub fn differs(original: &PathFigures, twin: &PathFigures) -> Option<(PathFigure, f64)> {
    let all = original.all().into_iter().filter_map(|(figure, original)| {
        let (original, twin) = (sound(figure, original)?, sound(figure, twin.of(figure))?);
        Some((figure, (twin / original - 1.0).abs()))
    });
    all.max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use plumb_model::finding::{Actor, Cause, Fix, Place, Severity};
    use plumb_model::results::rehearsal::RehearsedFix;
    use proptest::prelude::*;

    const TWIN: PathFigures = PathFigures {
        idle_rtt_s: Some(0.018),
        up_bps: Some(19e6),
        down_bps: Some(95e6),
        up_loaded_rtt_s: Some(0.7),
        down_loaded_rtt_s: Some(0.25),
        neighbour_rtt_s: Some(0.6),
    };

    fn result(fix: u64, after: PathFigures) -> RehearsalResult {
        let (gains, harms) = changes(&TWIN, &after);
        RehearsalResult {
            fixes: vec![RehearsedFix {
                cause: Cause::BufferbloatUp,
                place: Place::Uplink,
                fix,
                on: Actor::Router,
                summary: "Shape it.".to_owned(),
            }],
            rank: None,
            before: TWIN,
            after: Some(after),
            why_not: None,
            gains,
            harms,
        }
    }

    fn finding(fixes: usize) -> Finding {
        let fix = |number| Fix::advice(Actor::Router, format!("Fix {number}."), "");
        Finding {
            cause: Cause::BufferbloatUp,
            place: Place::Uplink,
            severity: Severity::Critical,
            confidence: 0.9,
            matters_for: Vec::new(),
            summary: String::new(),
            evidence: Vec::new(),
            fixes: (0..fixes).map(fix).collect(),
            kb: String::new(),
        }
    }

    #[test]
    fn the_best_fix_comes_first_with_what_it_did_and_harmed() {
        let shaped = PathFigures {
            up_loaded_rtt_s: Some(0.021),
            up_bps: Some(18e6),
            neighbour_rtt_s: Some(0.02),
            ..TWIN
        };
        let harming = PathFigures {
            up_loaded_rtt_s: Some(0.3),
            down_bps: Some(60e6),
            ..TWIN
        };
        let mut results = vec![result(0, harming), result(1, shaped), result(2, TWIN)];
        rank(&mut results);
        let ranks: Vec<_> = results.iter().map(|result| result.rank).collect();
        assert_eq!(ranks, [Some(2), Some(1), None]);
        // 5 % of the rate is no harm that a twin shows.
        assert!(results[1].harms.is_empty());
        let mut findings = vec![finding(3)];
        settle(&mut findings, &results);
        let said: Vec<&str> = findings[0]
            .fixes
            .iter()
            .map(|fix| fix.summary.as_str())
            .collect();
        assert_eq!(
            said,
            [
                "Fix 1. Rehearsed: 700 ms → 21.0 ms (round trips under upload).",
                "Fix 0. Rehearsed: 700 ms → 300 ms (round trips under upload); it harms: 95.0 Mbit/s → 60.0 Mbit/s (download).",
                "Fix 2. Rehearsed: nothing gets better.",
            ]
        );
        let headline = verdict(&results).headline;
        assert!(
            headline.starts_with("The best fix in the twin: Shape it."),
            "{headline}"
        );
    }

    #[test]
    fn a_path_that_carries_again_is_a_gain() {
        let nothing = PathFigures {
            up_bps: Some(0.0),
            ..TWIN
        };
        let (gains, harms) = changes(&nothing, &TWIN);
        assert_eq!(gains[0].figure, PathFigure::UpRate);
        assert!(harms.is_empty());
    }

    #[test]
    fn a_twin_is_compared_with_its_original() {
        let near = PathFigures {
            up_bps: Some(20e6),
            ..TWIN
        };
        let (figure, ratio) = differs(&TWIN, &near).unwrap();
        assert_eq!(figure, PathFigure::UpRate);
        assert!((ratio - 1.0 / 19.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn what_is_no_gain_is_no_harm_backwards(
            before in prop::array::uniform6(prop::option::of(any::<f64>())),
            after in prop::array::uniform6(prop::option::of(any::<f64>())),
        ) {
            let of = |[a, b, c, d, e, f]: [Option<f64>; 6]| PathFigures {
                idle_rtt_s: a, up_bps: b, down_bps: c, up_loaded_rtt_s: d, down_loaded_rtt_s: e, neighbour_rtt_s: f,
            };
            let (before, after) = (of(before), of(after));
            let (gains, harms) = changes(&before, &after);
            let (harms_back, gains_back) = changes(&after, &before);
            prop_assert_eq!(gains.len(), gains_back.len());
            prop_assert_eq!(harms.len(), harms_back.len());
        }
    }
}
