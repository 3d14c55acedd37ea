//! The round trips of a phase, of whatever kind of measurement they were.

use plumb_model::context::Phase;
use plumb_model::results::RAMP_S;
use plumb_model::run::{Measurement, Run};

use crate::latency::leading_protocol;
use crate::registry::{phase, shown};
use crate::show::Trace;

/// The round trips of the leading probes, in seconds, `None` where one was lost.
pub(crate) fn round_trips(run: &Run, of: Phase) -> Vec<Option<f64>> {
    let leading = leading_protocol(run);
    let counts = |measurement: &Measurement, loaded: bool, t_s: f64| {
        !loaded || (RAMP_S..=measurement.duration_s).contains(&t_s)
    };
    let measurements = run.measurements.iter().filter(|m| phase(m) == of);
    let series =
        measurements.flat_map(|m| m.series.iter().map(move |(name, series)| (m, name, series)));
    series
        .filter_map(|(m, name, series)| match shown(m).trace(name) {
            Some(Trace::RoundTrip { protocol, loaded }) if protocol == leading => {
                Some((m, loaded, series))
            }
            _ => None,
        })
        .flat_map(|(m, loaded, series)| {
            let samples = series.t_s.iter().zip(&series.values);
            samples
                .filter(move |(t, _)| counts(m, loaded, **t))
                .map(|(_, value)| *value)
        })
        .collect()
}
