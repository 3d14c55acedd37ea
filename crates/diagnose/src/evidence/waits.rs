//! How long packets waited in each direction, by the clocks of both hosts.

use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_model::results::{Direction, OneWayQueueing};
use plumb_model::run::Measurement;

use super::held::not_held;
use super::{Idle, Loaded, Streamed};
use crate::Case;

/// A queue that stands is longer than this in half of the time, in seconds: schedulers of radio and cable hold packets up for
/// less (DOCSIS requests and grants 2 to 8 ms, LTE uplink grants 10 ms).
pub(crate) const STANDS_S: f64 = 0.020;

/// Neighbouring probes 20 ms apart wait alike in a queue, which takes hundreds of milliseconds to fill and to empty: half of
/// the differences between them are below this share of the middle half of all. Of delays that are independent of each other,
/// as on a radio, half are below 0.59 (uniform), 0.63 (exponential) or 0.71 (normal) of it.
const SMOOTH_RATIO: f64 = 0.35;

/// Answers of neighbouring probes come together where they come within this share of the time between the probes. In a queue that
/// others keep filled their packets lie between. Where something holds packets back for a time of its own each, and keeps
/// their order, many wait for the one before: of delays between 0 and 80 ms and more, 30 % and more of probes 20 ms apart.
const TOGETHER: f64 = 0.1;
const TOGETHER_RATIO: f64 = 0.3;

/// Probes a second of a stream in which neighbours meet the same queue: half of what a check sends.
const CLOSE_PPS: f64 = 25.0;

/// Fewer round trips than these do not show how they vary; a quick check has 45 of a radio that is awake.
const ENOUGH_PROBES: u64 = 40;

/// Of the idle path the beginning is left out, in which a radio wakes up: so much of it counts, from its end.
const AWAKE_RATIO: f64 = 0.6;

/// Round trips of the idle path that vary by themselves.
#[derive(Clone, Copy)]
pub(crate) struct Varying<'a> {
    pub(crate) idle: Idle<'a>,
    /// Round trips that nothing held altogether, in seconds.
    pub(crate) rtt_s: Distribution,
    /// By how much the 95th percentile is above the fastest, in seconds: before the loads or after them, whichever is less.
    pub(crate) spread_s: f64,
}

fn of(waits: &OneWayQueueing, direction: Direction) -> Option<Distribution> {
    match direction {
        Direction::Up => Some(waits.up_s),
        Direction::Down => Some(waits.down_s),
        Direction::Both => None,
    }
}

/// The round trip of a path on which nothing waits, as far as these probes and all before them show; what waited in each direction is
/// above it.
fn empty_s(rtt_s: Distribution, waits: Option<&OneWayQueueing>) -> f64 {
    rtt_s.min - waits.map_or(0.0, |waits| waits.up_s.min + waits.down_s.min)
}

impl Idle<'_> {
    fn empty_s(self) -> Option<f64> {
        Some(empty_s(self.result.rtt_s?, self.result.one_way.as_deref()))
    }

    /// What probes waited in a direction, above the fastest; `None` where the clocks could not be compared.
    pub(crate) fn waited_s(self, direction: Direction) -> Option<Distribution> {
        of(self.result.one_way.as_deref()?, direction)
    }

    /// Round trips over time once a radio is awake, without those that something held altogether.
    fn awake(self) -> Vec<(f64, f64)> {
        let from_s = (1.0 - AWAKE_RATIO) * self.measurement.duration_s;
        not_held(self.measurement, from_s)
    }

    /// Those round trips, where they are enough.
    pub(crate) fn awake_s(self) -> Option<Distribution> {
        let awake = Distribution::of(self.awake().into_iter().map(|(_, rtt)| rtt))?;
        (awake.count >= ENOUGH_PROBES).then_some(awake)
    }

    /// Whether probes follow each other closely enough to see a queue fill and empty.
    fn is_close(self) -> bool {
        self.result.sent as f64 >= CLOSE_PPS * self.measurement.duration_s
    }

    /// Whether round trips go up and down as a queue does, and not each by itself.
    pub(crate) fn is_smooth(self) -> bool {
        let late = self.awake();
        let neighbours = || late.iter().zip(late.iter().skip(1));
        let steps = Distribution::of(neighbours().map(|((_, a), (_, b))| (b - a).abs()));
        let all = Distribution::of(late.iter().map(|(_, rtt)| *rtt));
        let together = neighbours()
            .filter(|((t0, a), (t1, b))| (t1 + b) - (t0 + a) < TOGETHER * (t1 - t0))
            .count();
        steps
            .zip(all)
            .is_some_and(|(steps, all)| steps.p50 < SMOOTH_RATIO * (all.p75 - all.p25))
            && (together as f64) < TOGETHER_RATIO * late.len() as f64
    }
}

impl<'a> Case<'a> {
    /// Idle round trips where they do not go up and down as a queue does. Where the path was not looked at again after the
    /// loads, half of them must be late: a radio that looks for other channels holds a few packets up, once.
    pub(crate) fn varying(&self) -> Option<Varying<'a>> {
        let idle = self.idle().filter(|idle| idle.is_close())?;
        let rtt_s = idle.awake_s().filter(|_| !idle.is_smooth())?;
        let above_fastest_s = |rtt_s: Distribution| rtt_s.p95 - rtt_s.min;
        let mut later = self.probes_by(idle.result.protocol);
        let after = later.find(|probes| probes.measurement.context.phase == Some(Phase::After));
        let after_s = after.and_then(Idle::awake_s).map(above_fastest_s);
        let half_are_late = rtt_s.p50 - rtt_s.min >= STANDS_S;
        (after_s.is_some() || half_are_late).then(|| Varying {
            idle,
            rtt_s,
            spread_s: above_fastest_s(rtt_s).min(after_s.unwrap_or(f64::INFINITY)),
        })
    }

    /// The fastest round trip to the far end that is known of, before the loads, beside them and after them, in seconds.
    pub(crate) fn empty_s(&self) -> Option<f64> {
        let idle = self.idle()?;
        let (protocol, address) = (idle.result.protocol, &idle.result.address);
        let unloaded = self.probes_by(protocol);
        let unloaded = unloaded.filter(|probes| probes.result.address == *address);
        let unloaded = unloaded.filter_map(Idle::empty_s);
        let loaded = self.every_loaded();
        let same_run = |other: &Measurement| other.context.run == idle.measurement.context.run;
        let loaded = loaded
            .filter(|loaded| loaded.result.protocol == protocol && same_run(loaded.measurement));
        unloaded.chain(loaded.map(Loaded::empty_s)).reduce(f64::min)
    }

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
    /// Round trips beside the load that nothing held altogether, in seconds.
    pub(crate) fn not_held_s(self) -> Option<Distribution> {
        let round_trips = not_held(self.measurement, 0.0).into_iter();
        Distribution::of(round_trips.map(|(_, rtt)| rtt))
    }

    /// What probes waited in a direction, above the fastest; `None` where the clocks could not be compared.
    pub(crate) fn waited_s(self, direction: Direction) -> Option<Distribution> {
        of(self.result.one_way.as_deref()?, direction)
    }

    fn empty_s(self) -> f64 {
        empty_s(self.result.rtt_s, self.result.one_way.as_deref())
    }

    /// By how much the 95th percentile of that is at least above the median of the idle path. Where a faster round trip came after
    /// the idle path was looked at, its probes waited too, in whichever direction.
    pub(crate) fn increase_s(self, direction: Direction, idle: Option<Idle<'_>>) -> Option<f64> {
        let before = idle.and_then(|idle| idle.waited_s(direction));
        let before = before.map_or(0.0, |before| before.p50);
        let empty_s = idle.and_then(Idle::empty_s);
        let more_s = empty_s.map_or(0.0, |idle_s| (idle_s - self.empty_s()).max(0.0));
        Some(self.waited_s(direction)?.p95 - before - more_s)
    }
}
