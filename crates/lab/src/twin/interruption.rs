//! Times in which nothing passes: lost, or held and then passed at once.

use plumb_model::finding::{Cause, Finding};

use super::draft::{Draft, Order};
use super::measured::Measured;
use super::write;

/// Interruptions that follow each other faster than this, in seconds, are none that the lab makes.
const LEAST_EVERY_S: f64 = 0.05;

/// Silence that is shorter than this, in seconds, is the gap between two packets of a slow path.
const LEAST_LASTS_S: f64 = 0.001;

/// A share of time of which nearly nothing is left is no interruption of a path.
const MOST_RATIO: f64 = 0.9;

pub(super) fn put(measured: &Measured<'_>, draft: &mut Draft) {
    for (cause, hold, why) in [
        (
            Cause::Outage,
            "",
            "Nothing passed, and what was sent was lost.",
        ),
        (
            Cause::Handover,
            ", hold = true",
            "Nothing passed, and what was sent came all at once.",
        ),
    ] {
        let Some((lasts_s, every_s)) = measured.finding(cause).and_then(times) else {
            continue;
        };
        let toml = format!(
            "{{ type = \"outage\", name = \"{}\", at = \"{}\", lasts = \"{}\", every = \"{}\"{hold} }}",
            cause.name(),
            write::time(every_s / 2.0),
            write::time(lasts_s),
            write::time(every_s)
        );
        draft.put_both(Order::Interruption, &toml, why);
        draft.unknown(format!(
            "when the interruptions ({}) come: here at equal times, {} each",
            cause.name(),
            write::time(lasts_s)
        ));
    }
}

/// How long the longest lasts, and how often one comes, from the share of time that all of them take.
fn times(found: &Finding) -> Option<(f64, f64)> {
    let value = |at: usize| found.evidence.get(at)?.value.number();
    let (lasts_s, share) = (value(0)?, value(1)?);
    let every_s = lasts_s / share;
    let is_there = lasts_s >= LEAST_LASTS_S && share > 0.0 && share <= MOST_RATIO;
    let is_time = (LEAST_EVERY_S..=LONGEST_EVERY_S).contains(&every_s);
    (is_there && is_time && lasts_s < every_s).then_some((lasts_s, every_s))
}

/// What comes less often than this, in seconds, no check sees.
const LONGEST_EVERY_S: f64 = 3600.0;
