//! The budget that would let every load phase last as long as it was to.

use plumb_model::results::Direction;
use plumb_model::units::si;

use crate::{Case, reading};

/// A phase that was largely slow start hides a part of the rate, and a tenth of the budget is kept for experiments.
const MARGIN: f64 = 1.4;

/// What a second of a phase weighs for the budget: both directions at once carry as much as each alone.
const WEIGHTS: [(Direction, f64); 3] = [
    (Direction::Up, 1.0),
    (Direction::Down, 1.0),
    (Direction::Both, 2.0),
];

/// Payload of all streams of a phase.
fn bytes(case: &Case<'_>, direction: Direction) -> f64 {
    case.carried(direction)
        .map(|carried| carried.result.bytes as f64)
        .sum()
}

/// The budget in the form of an argument of `--budget`, with two digits, rounded up; `None` where no phase carried
/// anything.
pub(crate) fn needed(case: &Case<'_>) -> Option<String> {
    let phases = || {
        WEIGHTS.iter().filter_map(|(direction, weight)| {
            let carried = case.carried_alone(*direction)?;
            let asked_s = reading::asked_s(carried.measurement)?;
            let bytes = bytes(case, *direction) / carried.measurement.duration_s * asked_s;
            Some((weight * asked_s, bytes))
        })
    };
    let weights: f64 = phases().map(|(weight, _)| weight).sum();
    let whole = phases().map(|(weight, bytes)| bytes * weights / weight * MARGIN);
    let most = whole
        .filter(|b| b.is_finite() && *b > 0.0)
        .reduce(f64::max)?;
    let digits = 10f64.powf(most.log10().floor() - 1.0);
    Some(si((most / digits).ceil() * digits, "B").replace(' ', ""))
}
