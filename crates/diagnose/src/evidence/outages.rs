//! Times in which a path carried nothing at all.

use plumb_model::results::{Direction, Outcome};
use plumb_model::run::Measurement;

use crate::{Case, reading};

/// Shorter gaps may be a burst of loss, in seconds: radio sends again for a tenth of that.
pub(crate) const OUTAGE_S: f64 = 0.5;

/// So many probes in a row, at the least.
const LEAST_PROBES: usize = 10;

/// Payload may arrive in so much of an outage, as a share: samples of the rate lie across its ends.
const STILL_ARRIVES_RATIO: f64 = 0.4;

/// A time in which no probe was answered, with answers before and after.
#[derive(Clone, Copy)]
pub(crate) struct Outage<'a> {
    pub(crate) measurement: &'a Measurement,
    /// From the start of its measurement, in seconds.
    from_s: f64,
    pub(crate) lasts_s: f64,
}

impl<'a> Case<'a> {
    /// Those of every stream of probes to the far end, one after the other. Beside a load it carried nothing either.
    pub(crate) fn outages(&self) -> impl Iterator<Item = Outage<'a>> + use<'a> {
        let loads = self.loads();
        let of_each = self.probed().flat_map(outages);
        of_each.filter(move |outage| {
            let time = (outage.from_s, outage.lasts_s);
            let mut loads = loads.iter();
            !loads.any(|load| carries_meanwhile(load, outage.measurement, time))
        })
    }

    /// Those of every load.
    pub(super) fn loads(&self) -> Vec<&'a Measurement> {
        let loads = [Direction::Up, Direction::Down, Direction::Both];
        let loads = loads
            .into_iter()
            .flat_map(|direction| self.carried(direction));
        loads.map(|carried| carried.measurement).collect()
    }

    /// How long the path was watched by probes, in seconds.
    pub(crate) fn watched_s(&self) -> f64 {
        self.probed().map(|m| m.duration_s).sum()
    }

    /// One measurement of round trips for each phase: several streams of probes see the same outage.
    pub(super) fn probed(&self) -> impl Iterator<Item = &'a Measurement> + use<'a> {
        let mut last_s = f64::NEG_INFINITY;
        self.measurements.iter().filter(move |measurement| {
            let probes = matches!(
                measurement.outcome,
                Outcome::Ping(_) | Outcome::LoadedLatency(_)
            );
            // Single probes far apart watch no path.
            let watches = probes && !reading::follows_silence(measurement);
            let is_next = watches && measurement.at_s >= last_s;
            if is_next {
                last_s = measurement.at_s + measurement.duration_s;
            }
            is_next
        })
    }
}

fn outages(measurement: &Measurement) -> Vec<Outage<'_>> {
    let mut found = Vec::new();
    let Some(series) = measurement.series.get("rtt") else {
        return found;
    };
    let mut answered_s = None;
    let mut lost = 0;
    for (t_s, value) in series.t_s.iter().zip(&series.values) {
        if value.is_none() {
            lost += 1;
            continue;
        }
        if let Some(from_s) = answered_s
            && lost >= LEAST_PROBES
            && t_s - from_s >= OUTAGE_S
        {
            found.push(Outage {
                measurement,
                from_s,
                lasts_s: t_s - from_s,
            });
        }
        (answered_s, lost) = (Some(*t_s), 0);
    }
    found
}

/// Whether a load carried payload in much of a time of another measurement, from and for so many seconds.
pub(super) fn carries_meanwhile(
    load: &Measurement,
    other: &Measurement,
    (from_s, lasts_s): (f64, f64),
) -> bool {
    let Some(series) = load.series.get("bps") else {
        return false;
    };
    // Both began in one Run; their starts may differ by a connection's set-up.
    let from_s = other.at_s + from_s - load.at_s;
    let within = series
        .points()
        .filter(|(t_s, _)| (from_s..from_s + lasts_s).contains(t_s));
    let (mut all, mut with_payload) = (0u32, 0u32);
    for (_, bps) in within {
        all += 1;
        with_payload += u32::from(bps > 0.0);
    }
    all > 0 && f64::from(with_payload) > STILL_ARRIVES_RATIO * f64::from(all)
}
