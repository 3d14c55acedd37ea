//! Round trips of probes beside a load.

use plumb_model::distribution::Distribution;
use plumb_model::protocol::Protocol;
use plumb_model::results::{Direction, LoadedLatencyResult, Outcome, PathPlace, PlaceLatency};
use plumb_model::run::Measurement;

use crate::{Case, lengths};

/// Round trips to a place on the path, of which a quarter and a twentieth are known.
pub(crate) const ENOUGH_OF_PLACE: u64 = 20;

/// Probes beside the load of one direction, or of both.
#[derive(Clone, Copy)]
pub(crate) struct Loaded<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) result: &'a LoadedLatencyResult,
}

impl Loaded<'_> {
    /// How long the load must last, in seconds, for a queue that is not slow start's.
    pub(crate) fn needs_s(self) -> f64 {
        lengths::steady_s(self.result.idle_rtt_s.min)
    }

    /// Whether it lasted that long.
    pub(crate) fn shows_queue(self) -> bool {
        self.measurement.duration_s >= self.needs_s()
    }

    /// Probes sent from so many seconds of the phase on, and answered; those until its end.
    pub(crate) fn answered_since(self, from_s: f64) -> (usize, usize) {
        let all = &self.measurement.series;
        let beside = all.get("rtt_icmp");
        let beside = beside.filter(|_| self.result.protocol == Protocol::Icmp);
        let probes = beside.or_else(|| all.get("rtt")).into_iter();
        let probes = probes.flat_map(|series| series.t_s.iter().zip(&series.values));
        let probes = probes.filter(|(t, _)| **t > from_s);
        probes.fold((0, 0), |(sent, answered), (_, rtt)| {
            (sent + 1, answered + usize::from(rtt.is_some()))
        })
    }

    /// Round trips to the gateway before the load, where it was probed.
    pub(crate) fn idle_to_gateway_s(self) -> Option<Distribution> {
        let nearest = self.result.path.as_ref()?.places.first()?;
        (nearest.place == PathPlace::Gateway).then_some(nearest.idle_rtt_s)
    }

    /// Probes sent and lost.
    pub(crate) fn probes(self) -> (u64, u64) {
        let received = self.result.rtt_s.count;
        let answered_ratio = (1.0 - self.result.loss_ratio).max(f64::MIN_POSITIVE);
        let sent = (received as f64 / answered_ratio).round() as u64;
        (sent, sent.saturating_sub(received))
    }
}

impl<'a> Case<'a> {
    /// Those beside every load of the Run, in order.
    pub(crate) fn every_loaded(&self) -> impl Iterator<Item = Loaded<'a>> + use<'a> {
        self.measurements
            .iter()
            .filter_map(|measurement| match &measurement.outcome {
                Outcome::LoadedLatency(result) => Some(Loaded {
                    measurement,
                    result,
                }),
                _ => None,
            })
    }

    /// Round trips to the gateway before any load, the measurement that has them and in which field.
    pub(crate) fn idle_to_gateway(&self) -> Option<(&'a Measurement, &'static str, Distribution)> {
        if self.asked.is_some_and(|asked| asked.local) {
            let idle = self.idle()?;
            return Some((idle.measurement, "rtt_s", idle.result.rtt_s?));
        }
        self.every_loaded().find_map(|loaded| {
            let nearest = loaded.result.path.as_ref()?.places.first()?;
            let is_gateway = nearest.place == PathPlace::Gateway;
            is_gateway.then_some((
                loaded.measurement,
                "path.places[0].idle_rtt_s",
                nearest.idle_rtt_s,
            ))
        })
    }

    /// The first router beyond the gateway, at the other end of the access line: the measurement that has its round trips before
    /// any load, and its number there.
    pub(crate) fn provider_hop(&self) -> Option<(&'a Measurement, usize, &'a PlaceLatency)> {
        self.every_loaded().find_map(|loaded| {
            let mut places = loaded.result.path.as_ref()?.places.iter().enumerate();
            let (index, hop) = places.find(|(_, at)| at.place == PathPlace::FirstHopBeyond)?;
            Some((loaded.measurement, index, hop))
        })
    }

    /// Those while `direction` was loaded.
    pub(crate) fn loaded(&self, direction: Direction) -> Option<Loaded<'a>> {
        self.every_loaded()
            .find(|loaded| loaded.result.direction == direction)
    }
}
