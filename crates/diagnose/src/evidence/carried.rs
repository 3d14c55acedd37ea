//! What a load phase shows of one direction: how much was retransmitted, whether a queue of the load's
//! own stood there, how steady the rate was.

use std::collections::BTreeMap;

use plumb_model::context::Experiment;
use plumb_model::distribution::Distribution;
use plumb_model::results::{Direction, Outcome, ThroughputResult, ramp_end_s, ramp_s};
use plumb_model::run::Measurement;

use crate::{Case, lengths, reading};

/// Payload of a segment with timestamps on Ethernet, where the sender reports none, in bytes.
pub(crate) const USUAL_SEGMENT_BYTES: u64 = 1448;

/// A far end that took longer than this to go away fell silent, in seconds: above the first two retransmissions of
/// Linux (200 and 400 ms).
pub(crate) const SILENCE_S: f64 = 1.0;

/// A direction of a load phase; slow start is left out of all that is said of it.
#[derive(Clone, Copy)]
pub(crate) struct Carried<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) result: &'a ThroughputResult,
}

/// Segments after slow start, but for repetitions of what the receiver had already (D-SACK).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Segments {
    /// Sent, those retransmitted included.
    pub(crate) sent: f64,
    pub(crate) again: f64,
}

impl Segments {
    /// Share of those sent that were retransmitted.
    pub(crate) fn ratio(self) -> f64 {
        if self.sent > 0.0 {
            self.again / self.sent
        } else {
            0.0
        }
    }
}

impl<'a> Carried<'a> {
    /// When slow start is over, in seconds from the start of the phase.
    fn ramp_end_s(self) -> f64 {
        ramp_end_s(self.rtt_s(), self.measurement.duration_s)
    }

    /// The smallest round trip, in seconds; 0 where it is not known.
    pub(crate) fn rtt_s(self) -> f64 {
        self.result.tcp.min_rtt_s.unwrap_or(0.0)
    }

    /// How long it must last to show a rate, in seconds.
    pub(crate) fn rate_needs_s(self) -> f64 {
        lengths::steady_s(self.rtt_s())
    }

    /// Whether it lasted that long.
    pub(crate) fn shows_rate(self) -> bool {
        self.measurement.duration_s >= self.rate_needs_s()
    }

    fn points(self, name: &str) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        self.points_from(name, self.ramp_end_s())
    }

    fn points_from(self, name: &str, from_s: f64) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        let series = self.measurement.series.get(name);
        series
            .into_iter()
            .flat_map(|series| series.points())
            .filter(move |(t, _)| *t >= from_s)
    }

    /// The rate after slow start, or of the whole phase where that was too short, in bit/s.
    pub(crate) fn bps(self) -> f64 {
        self.result.steady_bps.unwrap_or(self.result.bps)
    }

    /// Whether it carried nothing in a time in which any path would have carried something.
    pub(crate) fn is_nothing(self, case: &Case<'_>) -> bool {
        let rtt_s = case.idle().and_then(|idle| Some(idle.result.rtt_s?.p50));
        let needs_s = lengths::nothing_s(rtt_s.unwrap_or(0.0));
        self.result.bytes == 0 && self.measurement.duration_s >= needs_s
    }

    /// When the last payload came where the far end fell silent after it, in seconds from the start of the phase.
    /// Streams of a responder that ends close at once.
    pub(crate) fn stopped_at_s(self) -> Option<f64> {
        let bps = self.measurement.series.get("bps")?;
        let last = bps.points().filter(|(_, bps)| *bps > 0.0).last()?.0;
        let silent = self.measurement.duration_s - last > SILENCE_S;
        (silent && reading::lost_far_end(self.measurement)).then_some(last)
    }

    /// How many streams there were; at least one.
    pub(crate) fn streams(self) -> f64 {
        self.result.streams.len().max(1) as f64
    }

    fn segment_bytes(self) -> f64 {
        match self.result.tcp.mss_bytes {
            0 => USUAL_SEGMENT_BYTES as f64,
            bytes => bytes as f64,
        }
    }

    /// How long a full segment takes at the rate carried, in seconds; infinite where that is nothing.
    pub(crate) fn packet_s(self) -> f64 {
        self.segment_bytes() * 8.0 / self.result.bps
    }

    /// Share of the segments that was retransmitted, where the sender reported nothing else, as an iperf3 server does.
    pub(crate) fn again_as_reported(self) -> Option<f64> {
        let again = self.result.tcp.retransmits;
        let sent = self.result.bytes as f64 / self.segment_bytes();
        let is_all = self.result.cc.is_empty() && again > 0;
        is_all.then(|| again as f64 / sent.max(1.0))
    }

    /// Segments after slow start; of the whole phase where the Run has no series. `None` where the
    /// sender's record is missing.
    pub(crate) fn segments(self) -> Option<Segments> {
        if self.result.cc.is_empty() {
            return None;
        }
        let counted = |name| {
            let counts = self.points(name).map(|(_, count)| count);
            counts.fold(None, |seen: Option<(f64, f64)>, count| {
                Some(seen.map_or((count, count), |(first, _)| (first, count)))
            })
        };
        let again = counted("retransmits");
        let spurious = counted("spurious_retransmits").map_or(0.0, |(first, last)| last - first);
        let rate = Distribution::of(self.points("bps").map(|(_, bps)| bps));
        let (again, payload) = match (again, rate) {
            (Some((first, last)), Some(rate)) => {
                let seconds = self.measurement.duration_s - self.ramp_end_s();
                let again = last - first - spurious;
                (again.max(0.0), rate.mean * seconds / 8.0)
            }
            _ => {
                let spurious = self.result.tcp.spurious_retransmits.unwrap_or(0);
                let again = self.result.tcp.retransmits.saturating_sub(spurious);
                (again as f64, self.result.bytes as f64)
            }
        };
        Some(Segments {
            sent: payload / self.segment_bytes() + again,
            again,
        })
    }

    /// Share of all segments that were retransmitted though the receiver had them; `None` where it was not reported.
    pub(crate) fn spurious_ratio(self) -> Option<f64> {
        let spurious = self.result.tcp.spurious_retransmits? as f64;
        let sent =
            self.result.bytes as f64 / self.segment_bytes() + self.result.tcp.retransmits as f64;
        (sent > 0.0).then(|| spurious / sent)
    }

    /// Packets that the end of slow start may lose after it is left out: those that the queue holds, where its filling makes
    /// the round trips so long that slow start takes longer than the beginning of the phase.
    pub(crate) fn overshoot_segments(self) -> f64 {
        let queue_s = self.queue_s().map_or(0.0, |queue| queue.p50);
        let takes_s = ramp_s(self.rtt_s() + queue_s);
        match takes_s > self.ramp_end_s() {
            true => queue_s / self.packet_s(),
            false => 0.0,
        }
    }

    /// Share of the segments that were retransmitted from so many whole seconds after slow start on.
    pub(crate) fn again_after_second(self, second: usize) -> Option<f64> {
        let from_s = self.ramp_seen_s() + second as f64;
        let later = |name| self.points(name).filter(move |(t, _)| *t >= from_s);
        let again: Vec<f64> = later("retransmits").map(|(_, count)| count).collect();
        let again = again.last()? - again.first()?;
        let rate = Distribution::of(later("bps").map(|(_, bps)| bps))?;
        let payload = rate.mean * (self.measurement.duration_s - from_s).max(0.0) / 8.0;
        let segments = payload / self.segment_bytes() + again;
        (segments > 0.0).then(|| again / segments)
    }

    /// What the load's own packets waited: TCP's smoothed round trip above its smallest, in seconds.
    pub(crate) fn queue_s(self) -> Option<Distribution> {
        let least = self.result.tcp.min_rtt_s?;
        Distribution::of(self.points("srtt_s").map(|(_, rtt)| (rtt - least).max(0.0)))
    }

    /// Segments that one stream had under way, in the mean.
    pub(crate) fn window_segments(self) -> Option<f64> {
        let flight = Distribution::of(self.points("in_flight_bytes").map(|(_, bytes)| bytes))?;
        Some(flight.mean / self.streams() / self.segment_bytes())
    }

    /// The longest time without any payload, in seconds, and since when; `None` without a series.
    pub(crate) fn longest_gap_s(self) -> Option<f64> {
        let mut last = self.ramp_end_s();
        let mut longest = 0.0f64;
        let mut any = false;
        for (t, bps) in self.points("bps") {
            any = true;
            if bps > 0.0 {
                longest = longest.max(t - last);
                last = t;
            }
        }
        any.then(|| longest.max(self.measurement.duration_s - last))
    }

    /// The rates of the whole seconds after slow start, in order, in bit/s.
    pub(crate) fn each_second_bps(self) -> Vec<f64> {
        self.each_second_from(self.ramp_end_s())
    }

    /// The same from where slow start was seen to end.
    pub(crate) fn each_second_after_ramp_bps(self) -> Vec<f64> {
        self.each_second_from(self.ramp_seen_s())
    }

    /// When slow start was seen to end, in seconds, which may be long before it ends on most paths.
    fn ramp_seen_s(self) -> f64 {
        let ramp_end_s = self.ramp_end_s();
        let seen = self.result.slow_start.as_ref();
        seen.map_or(ramp_end_s, |seen| seen.duration_s.min(ramp_end_s))
    }

    fn each_second_from(self, from_s: f64) -> Vec<f64> {
        let mut sums: BTreeMap<u64, (f64, u32)> = BTreeMap::new();
        for (t, bps) in self.points_from("bps", from_s) {
            let (sum, count) = sums.entry((t - from_s) as u64).or_default();
            *sum += bps;
            *count += 1;
        }
        let whole = (self.measurement.duration_s - from_s) as u64;
        let rates = sums.into_iter().filter(|(second, _)| *second < whole);
        rates
            .map(|(_, (sum, count))| sum / f64::from(count))
            .collect()
    }

    /// How they are spread.
    pub(crate) fn seconds_bps(self) -> Option<Distribution> {
        Distribution::of(self.each_second_bps())
    }
}

impl<'a> Case<'a> {
    /// What was carried while `direction` was loaded: of both, each by itself.
    pub(crate) fn carried(
        &self,
        direction: Direction,
    ) -> impl Iterator<Item = Carried<'a>> + use<'a> {
        self.measurements.iter().filter_map(move |measurement| {
            let Outcome::Throughput(result) = &measurement.outcome else {
                return None;
            };
            let loaded = match reading::loads_both(measurement) {
                true => Direction::Both,
                false => result.direction,
            };
            // An experiment is to show something else than what the path carries.
            let of_plan = reading::experiment(measurement).is_none();
            (of_plan && loaded == direction).then_some(Carried {
                measurement,
                result,
            })
        })
    }

    /// What one connection alone carried in a direction, as an experiment that was long enough to show its rate.
    pub(crate) fn single_stream(&self, direction: Direction) -> Option<Carried<'a>> {
        let mut all = self.measurements.iter();
        all.find_map(|measurement| {
            let Outcome::Throughput(result) = &measurement.outcome else {
                return None;
            };
            let carried = Carried {
                measurement,
                result,
            };
            let is_it = reading::experiment(measurement) == Some(Experiment::SingleStream)
                && result.direction == direction
                && result.streams.len() == 1;
            (is_it && carried.shows_rate()).then_some(carried)
        })
    }

    /// What one connection of small packets carried in a direction, where it carried anything.
    pub(crate) fn small_segments(&self, direction: Direction) -> Option<Carried<'a>> {
        self.measurements.iter().find_map(|measurement| {
            let Outcome::Throughput(result) = &measurement.outcome else {
                return None;
            };
            let is_it = reading::experiment(measurement) == Some(Experiment::SmallSegments)
                && result.direction == direction
                && result.bytes > 0;
            is_it.then_some(Carried {
                measurement,
                result,
            })
        })
    }

    /// Whether any direction was loaded with TCP.
    pub(crate) fn carried_any(&self) -> bool {
        let loads = [Direction::Up, Direction::Down, Direction::Both];
        loads
            .into_iter()
            .any(|direction| self.carried(direction).next().is_some())
    }

    /// What was carried in `direction` while the other was idle.
    pub(crate) fn carried_alone(&self, direction: Direction) -> Option<Carried<'a>> {
        self.carried(direction).next()
    }

    /// The same where the phase was long enough to show a rate, and was to carry what it could.
    pub(crate) fn full_load(&self, direction: Direction) -> Option<Carried<'a>> {
        let carried = self.carried_alone(direction)?;
        let telling = carried.shows_rate()
            && !reading::is_held_on_purpose(carried.measurement)
            && !carried.is_nothing(self);
        telling.then_some(carried)
    }
}
