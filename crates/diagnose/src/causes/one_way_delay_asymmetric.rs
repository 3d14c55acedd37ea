//! One direction takes longer than the other.
//!
//! Routes differ by direction, or one direction has a queue.

use plumb_model::finding::{Cause, Finding, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Outcome;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family, Harm};
use crate::evidence::fact;

/// Share of the round trip by which the ways must differ to be worth telling: what differs less does
/// not change what anybody would do.
const WORTH_TELLING: f64 = 0.2;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    harms: Harm::Delay,
    vanishes: "clocks that are better synchronised show the same delay in both directions",
    needs: &[Need::OneWayDelays],
    resembles: &[(
        Cause::BufferbloatUp,
        "a queue comes and goes with the load, a longer route stays",
    )],
    examine,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Vec<Finding> {
    case.measurements
        .iter()
        .filter_map(|measurement| {
            let Outcome::Owd(owd) = &measurement.outcome else {
                return None;
            };
            let (up, down) = (owd.up.delay?, owd.down.delay?);
            let (up_s, down_s) = (up.delay_s.p50, down.delay_s.p50);
            let difference_s = (up_s - down_s).abs();
            // An error of the clocks moves both, in opposite directions.
            let certain_s = 2.0 * up.uncertainty_s.max(down.uncertainty_s);
            let worth_s = WORTH_TELLING * (up_s + down_s);
            if difference_s <= certain_s.max(worth_s) {
                return None;
            }
            let (longer, field) = if up_s > down_s {
                ("to the far end", "up.delay.delay_s.p50")
            } else {
                ("back", "down.delay.delay_s.p50")
            };
            Some(Finding {
                cause: Cause::OneWayDelayAsymmetric,
                place: Place::Path,
                severity: Severity::Info,
                confidence: 0.9,
                matters_for: Vec::new(),
                summary: format!(
                    "The direction {longer} takes {} longer than the other ({} there, {} back): half of the round trip is wrong for both.",
                    human_seconds(difference_s),
                    human_seconds(up_s),
                    human_seconds(down_s),
                ),
                evidence: vec![fact(
                    measurement,
                    field,
                    up_s.max(down_s),
                    "median of this direction, against the other direction's and what the clocks may be off by",
                    up_s.min(down_s) + certain_s,
                )],
                fixes: Vec::new(),
                kb: "one-way-delay".to_owned(),
            })
        })
        .collect()
}
