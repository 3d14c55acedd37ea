//! The numbers of a Run that a comparison speaks of.

use plumb_model::context::Phase;
use plumb_model::order::sort_few;
use plumb_model::results::Direction;
use plumb_model::run::{Measurement, Run};

use super::quantity::{ChangeUnit, Quantities, Quantity, RTT};
use crate::registry::{phase, shown};
use crate::show::RoundTrips;

/// All of them, round trips and rates first; those that are not finite are not there. An experiment is not among them: a check
/// makes it where something asks for it, so that another Run of the same path may lack it.
pub(crate) fn numbers(run: &Run) -> Vec<Quantity> {
    let plain = run.measurements.iter();
    let mut measurements: Vec<&Measurement> =
        plain.filter(|m| m.context.experiment.is_none()).collect();
    let place = |measurement: &Measurement| {
        let (result, phase) = (shown(measurement), phase(measurement));
        match (result.round_trips(), result.rate()) {
            (Some(_), _) => (0, phase, false),
            (None, Some((direction, _))) => (1, phase, direction == Direction::Down),
            (None, None) => (2, Phase::Idle, false),
        }
    };
    sort_few(&mut measurements, |a, b| place(a).cmp(&place(b)));
    let mut found: Vec<_> = measurements.into_iter().flat_map(of_measurement).collect();
    found.retain(|(_, value)| value.is_finite());
    found
}

/// The numbers of one measurement of any kind.
pub(crate) fn of_measurement(measurement: &Measurement) -> Vec<Quantity> {
    let (result, phase) = (shown(measurement), phase(measurement));
    let round_trips = result.round_trips().map(|row| round_trips(phase, &row));
    let mut found = round_trips.unwrap_or_default();
    found.extend(result.quantities(phase));
    found
}

fn round_trips(phase: Phase, row: &RoundTrips<'_>) -> Vec<Quantity> {
    let increase = row.increase_s.map(|d| d.p95);
    Quantities::of(phase, None)
        .by(row.protocol)
        .time(RTT, row.rtt_s)
        .number("rtt_s.max", ChangeUnit::S, row.rtt_s.map(|d| d.max))
        .number("increase_s.p95", ChangeUnit::S, increase)
        .number("loss_ratio", ChangeUnit::Ratio, row.loss_ratio)
        .found
}
