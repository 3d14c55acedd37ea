//! How long packets waited in each direction, by the clocks of both hosts.

use plumb_model::distribution::Distribution;
use plumb_model::results::{Direction, OneWayQueueing};

use super::{Idle, Loaded, Streamed};
use crate::Case;

/// A queue that stands is longer than this in half of the time, in seconds: schedulers of radio and cable hold packets up for
/// less (DOCSIS requests and grants 2 to 8 ms, LTE uplink grants 10 ms).
pub(crate) const STANDS_S: f64 = 0.020;

/// Neighbouring probes 20 ms apart wait alike in a queue, which takes hundreds of milliseconds to fill and to empty: half of
/// the differences between them are below this share of the middle half of all. Of delays that are independent of each other,
/// as on a radio, half are below 0.59 (uniform), 0.63 (exponential) or 0.71 (normal) of it.
const SMOOTH_RATIO: f64 = 0.35;

/// Of the idle path the beginning is left out, in which a radio wakes up: so much of it counts, from its end.
const AWAKE_RATIO: f64 = 0.6;

fn of(waits: &OneWayQueueing, direction: Direction) -> Option<Distribution> {
    match direction {
        Direction::Up => Some(waits.up_s),
        Direction::Down => Some(waits.down_s),
        Direction::Both => None,
    }
}

impl Idle<'_> {
    /// What probes waited in a direction, above the fastest; `None` where the clocks could not be compared.
    pub(crate) fn waited_s(self, direction: Direction) -> Option<Distribution> {
        of(self.result.one_way.as_deref()?, direction)
    }

    /// Whether round trips go up and down as a queue does, and not each by itself.
    pub(crate) fn is_smooth(self) -> bool {
        let Some(series) = self.measurement.series.get("rtt") else {
            return false;
        };
        let from_s = (1.0 - AWAKE_RATIO) * self.measurement.duration_s;
        let late: Vec<f64> = series
            .points()
            .filter(|(t_s, _)| *t_s >= from_s)
            .map(|(_, rtt)| rtt)
            .collect();
        let steps = late.iter().zip(late.iter().skip(1));
        let steps = Distribution::of(steps.map(|(a, b)| (b - a).abs()));
        let all = Distribution::of(late.iter().copied());
        steps
            .zip(all)
            .is_some_and(|(steps, all)| steps.p50 < SMOOTH_RATIO * (all.p75 - all.p25))
    }
}

impl Case<'_> {
    /// What the fastest datagram waited of a stream that left the line room, where that is a queue which others keep filled:
    /// longer than nearly all probes of the idle path waited, unless these waited in that queue as well.
    pub(crate) fn others_wait_s(&self, stream: Streamed<'_>, direction: Direction) -> Option<f64> {
        let waits_s = stream.standing_s()? - stream.packet_s()?;
        let idle = self.idle();
        let by_itself = idle.filter(|idle| !idle.is_smooth());
        let by_itself = by_itself.and_then(|idle| idle.waited_s(direction));
        let by_itself_s = by_itself.map_or(0.0, |waited| waited.p95);
        (waits_s >= STANDS_S + by_itself_s).then_some(waits_s)
    }

    /// Whether packets waited in a queue of either direction before any load of ours.
    pub(crate) fn is_used_by_others(&self) -> bool {
        let idle = self.idle();
        let waits = |direction| idle.and_then(|idle| idle.waited_s(direction));
        let stands = |waited: Distribution| waited.p50 >= STANDS_S;
        [Direction::Up, Direction::Down]
            .into_iter()
            .filter_map(waits)
            .any(stands)
    }
}

impl Loaded<'_> {
    /// What probes waited in a direction, above the fastest; `None` where the clocks could not be compared.
    pub(crate) fn waited_s(self, direction: Direction) -> Option<Distribution> {
        of(self.result.one_way.as_deref()?, direction)
    }

    /// By how much the 95th percentile of that is above the median of the idle path.
    pub(crate) fn increase_s(self, direction: Direction, idle: Option<Idle<'_>>) -> Option<f64> {
        let before = idle.and_then(|idle| idle.waited_s(direction));
        let before = before.map_or(0.0, |before| before.p50);
        Some(self.waited_s(direction)?.p95 - before)
    }
}
