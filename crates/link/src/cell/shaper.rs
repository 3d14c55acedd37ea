//! A line of a rate with a queue before it: it takes the next packet when it is free, and the
//! packet leaves when its last bit has.

use std::collections::VecDeque;

use plumb_model::framing::Framing;
use plumb_model::units::BitRate;
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Crossing};
use crate::grid::SampleGrid;
use crate::packet::Packet;
use crate::queue::{self, Backlog, Queue, QueueSpec};
use crate::segment;
use crate::settings::Settings;
use crate::spec::CellSpec;
use crate::stats::CellStats;
use crate::summary::Summary;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "shaper", rate = "20mbit", framing = "docsis", queue = { type = "fifo", limit = "700ms" } }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShaperSpec {
    /// The line's rate.
    pub rate: BitRate,
    /// What the line adds to each packet; nothing when absent.
    #[serde(default)]
    pub framing: Framing,
    /// The queue before the line; a FIFO of 1000 packets when absent.
    #[serde(default)]
    pub queue: QueueSpec,
}

impl Settings for ShaperSpec {
    fn check(&self) -> Result<(), String> {
        check_rate(self.rate)
    }
}

/// The rates that a line can have: up to 1 Tbit/s its arithmetic cannot overflow.
const RATES: std::ops::RangeInclusive<BitRate> =
    BitRate::from_bps(1)..=BitRate::from_bps(1_000_000_000_000);

/// Whether a line can have this rate.
pub(crate) fn check_rate(rate: BitRate) -> Result<(), String> {
    if RATES.contains(&rate) {
        return Ok(());
    }
    Err(format!(
        "a rate of {} bit/s is not possible: a rate is at least 1 bit/s and at most 1 Tbit/s",
        rate.bps()
    ))
}

/// The longest time that a large segment keeps the line, in nanoseconds: the granularity that
/// it adds to the traffic stays below what a measurement of delay tells apart.
const WHOLE_NS: u64 = 250_000;
/// The grid on which the queue's delay is sampled, in nanoseconds.
const DELAY_GRID_NS: u64 = 10_000_000;
/// Work is counted in units of which a line of `rate` bit/s does `rate` in a nanosecond, so
/// that departures are exact without rounding errors that add up.
const WORK_PER_BYTE: u64 = 8_000_000_000;

/// The cell.
pub(crate) struct Shaper {
    spec: ShaperSpec,
    seed: u64,
    queue: Box<dyn Queue>,
    line: Option<OnLine>,
    /// Work that the line has in hand from the last packet: it was done a fraction of a
    /// nanosecond before the departure in whole nanoseconds.
    carry: u64,
    /// What has left and was not yet asked for.
    done: VecDeque<(Time, Packet)>,
    tally: Tally,
    delay_grid: SampleGrid,
    delay: Summary,
}

/// The packet whose bits are leaving.
struct OnLine {
    packet: Packet,
    /// Work in the whole packet.
    work: u64,
    /// Work done at `since`, negative when it starts a fraction of a nanosecond later.
    done: i64,
    since: Time,
    departs: Time,
}

impl OnLine {
    /// Work left at `since`.
    fn left(&self) -> u64 {
        self.work.saturating_add_signed(self.done.saturating_neg())
    }

    /// Sets the departure for a rate; returns the work that the line then has in hand.
    fn schedule(&mut self, rate: u64) -> u64 {
        let left = self.left();
        let ns = left / rate;
        self.departs = Time::from_nanos(self.since.as_nanos().saturating_add(ns));
        left % rate
    }

    /// What of the packet still occupies the buffer at `now`: the segments whose last bit has
    /// not left.
    fn occupies(&self, now: Time, rate: u64) -> Backlog {
        let whole = self.packet.backlog();
        let segments = whole.packets;
        if segments == 1 {
            return whole;
        }
        // A segment has left when its end, rounded down to a nanosecond, is at most `now`.
        let elapsed = now
            .nanos_since(self.since)
            .saturating_add(1)
            .saturating_mul(rate);
        let done = elapsed.saturating_add_signed(self.done);
        let per_segment = self.packet.wire.segment.saturating_mul(WORK_PER_BYTE);
        let gone = done
            .saturating_sub(1)
            .checked_div(per_segment)
            .unwrap_or(0)
            .min(segments - 1);
        whole
            - Backlog {
                packets: gone,
                ip_bytes: gone * self.packet.segment_ip_bytes(),
                wire_bytes: gone * self.packet.wire.segment,
            }
    }
}

impl Shaper {
    /// A shaper that exists from `now` on; `seed` is that of the queue's hash.
    pub(crate) fn new(spec: ShaperSpec, seed: u64, now: Time) -> Self {
        Self {
            queue: queue::build(&spec.queue, spec.rate, seed),
            spec,
            seed,
            line: None,
            carry: 0,
            done: VecDeque::new(),
            tally: Tally::new(),
            delay_grid: SampleGrid::new(DELAY_GRID_NS, now),
            delay: Summary::new(),
        }
    }

    /// Never zero: [`ShaperSpec`] does not allow it.
    fn rate(&self) -> u64 {
        self.spec.rate.bps().max(1)
    }

    /// Does what happens up to `now`.
    fn advance(&mut self, now: Time) {
        while let Some(line) = self.line.take_if(|line| line.departs <= now) {
            self.sample_delay(Some(line.departs), line.departs);
            self.done.push_back((line.departs, line.packet));
            self.start(line.departs);
        }
        self.sample_delay(self.line.as_ref().map(|line| line.departs), now);
    }

    /// Starts the next packet on the free line.
    fn start(&mut self, now: Time) {
        let Some(packet) = self.queue.dequeue(now, &mut self.tally) else {
            self.carry = 0;
            return;
        };
        let mut line = OnLine {
            work: packet.wire.total.saturating_mul(WORK_PER_BYTE),
            packet,
            done: -(self.carry as i64),
            since: now,
            departs: now,
        };
        self.carry = line.schedule(self.rate());
        self.line = Some(line);
    }

    /// Samples the queue's delay on the grid points before `end`; nothing has changed since the
    /// last time but the clock.
    fn sample_delay(&mut self, line_departs: Option<Time>, end: Time) {
        if !self.delay_grid.due(end) {
            return;
        }
        let wire_bytes = self.queue.backlog().wire_bytes;
        let waiting = u128::from(wire_bytes) * u128::from(WORK_PER_BYTE) / u128::from(self.rate());
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        let delay = |at: Time| {
            line_departs
                .map_or(0, |departs| departs.nanos_since(at))
                .saturating_add(waiting)
        };
        let summary = &mut self.delay;
        self.delay_grid
            .sample(end, delay, |ns, weight| summary.record(ns, weight));
    }

    /// How many segments of this size pass as one.
    fn whole_segments(&self, segment_wire_bytes: u64) -> u32 {
        if !self.queue.takes_large_segments() {
            return 1;
        }
        let work = WHOLE_NS.saturating_mul(self.rate());
        let segments = work
            .checked_div(segment_wire_bytes * WORK_PER_BYTE)
            .unwrap_or(1);
        u32::try_from(segments).unwrap_or(u32::MAX).max(1)
    }

    fn admit(&mut self, now: Time, packet: Packet) {
        let rate = self.rate();
        let on_line = self
            .line
            .as_ref()
            .map(|line| line.occupies(now, rate))
            .unwrap_or_default();
        self.queue.enqueue(now, packet, on_line, &mut self.tally);
        if self.line.is_none() {
            self.start(now);
        }
    }

    /// The line goes on with the rest of its packet at the new rate.
    fn change_rate(&mut self, now: Time, old: u64) {
        let new = self.rate();
        if let Some(line) = &mut self.line {
            let done = now.nanos_since(line.since).saturating_mul(old);
            line.done = line.done.saturating_add_unsigned(done);
            line.since = now;
            self.carry = line.schedule(new);
        }
    }
}

impl Cell for Shaper {
    fn enqueue(&mut self, now: Time, mut packet: Packet) {
        self.advance(now);
        self.tally.offer(&packet);
        packet.entered = now;
        packet.frame(&self.spec.framing);
        if packet.segments() == 1 {
            return self.admit(now, packet);
        }
        let most = self.whole_segments(packet.wire.segment);
        for piece in segment::split(packet, most) {
            self.admit(now, piece);
        }
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Packet)> {
        if self.done.is_empty() {
            self.advance(now);
        }
        let (at, packet) = self.done.pop_front_if(|(at, _)| *at <= now)?;
        self.tally.deliver(&packet, packet.entered, at);
        Some((at, packet))
    }

    fn next_event(&self) -> Option<Time> {
        match self.done.front() {
            Some((at, _)) => Some(*at),
            None => self.line.as_ref().map(|line| line.departs),
        }
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn backlog(&self) -> Backlog {
        let waiting = self.done.iter().map(|(_, packet)| packet.backlog());
        let on_line = self.line.as_ref().map(|line| line.packet.backlog());
        waiting
            .chain(on_line)
            .fold(self.queue.backlog(), |sum, more| sum + more)
    }

    fn stats(&mut self, now: Time, kind: &str) -> CellStats {
        self.advance(now);
        let mut stats = self.tally.stats(kind, self.backlog());
        stats.queue_delay_s = self.delay.distribution();
        stats.queue_delay = Some(self.delay_grid.series());
        stats
    }

    fn reconfigure(&mut self, now: Time, spec: &CellSpec) {
        let CellSpec::Shaper(spec) = spec else {
            return;
        };
        self.advance(now);
        let old = std::mem::replace(&mut self.spec, spec.clone());
        if old.rate != self.spec.rate {
            self.change_rate(now, old.rate.bps().max(1));
        }
        if !self.queue.reconfigure(&self.spec.queue, self.spec.rate) {
            let waiting = self.queue.drain();
            self.queue = queue::build(&self.spec.queue, self.spec.rate, self.seed);
            for packet in waiting {
                let most = self.whole_segments(packet.wire.segment);
                for piece in segment::split(packet, most) {
                    self.admit(now, piece);
                }
            }
        }
    }

    fn drain(&mut self, now: Time) -> Vec<(Time, Packet)> {
        self.advance(now);
        self.carry = 0;
        let done = self.done.drain(..);
        let line = self.line.take().map(|line| (now, line.packet));
        let waiting = self.queue.drain().into_iter().map(|packet| (now, packet));
        let out: Vec<_> = done.chain(line).chain(waiting).collect();
        for (at, packet) in &out {
            self.tally.deliver(packet, packet.entered, *at);
        }
        out
    }

    fn crossing(&self) -> Crossing {
        // Two full packets of an Ethernet are the smallest segment worth building.
        let full = u64::from(self.spec.framing.wire_bytes(1500));
        if self.whole_segments(full) >= 2 {
            Crossing::Whole
        } else {
            Crossing::Split
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::{ACK, tcp, udp};

    fn shaper(pairs: &[(&str, &str)]) -> Shaper {
        Shaper::new(spec(pairs), 1, Time::ZERO)
    }

    fn spec(pairs: &[(&str, &str)]) -> ShaperSpec {
        match CellSpec::from_pairs("shaper", pairs).unwrap() {
            CellSpec::Shaper(spec) => spec,
            other => panic!("{other:?}"),
        }
    }

    fn set(shaper: &mut Shaper, now: Time, key: &str, value: &str) {
        let changed = CellSpec::Shaper(shaper.spec.clone()).with(&[(key, value)]);
        shaper.reconfigure(now, &changed.unwrap());
    }

    fn ns(ns: u64) -> Time {
        Time::from_nanos(ns)
    }

    fn departures(shaper: &mut Shaper) -> Vec<u64> {
        std::iter::from_fn(|| shaper.dequeue(ns(1 << 60)))
            .map(|(at, _)| at.as_nanos())
            .collect()
    }

    #[test]
    fn serialises_to_the_nanosecond() {
        let mut s = shaper(&[("rate", "20mbit"), ("framing", "docsis")]);
        s.enqueue(ns(1_000), udp(1500, 1, 0));
        s.enqueue(ns(1_000), udp(1500, 1, 0));
        s.enqueue(ns(2_000_000), udp(40, 1, 0));
        // 1518 bytes take 607.2 µs, 64 bytes 25.6 µs.
        assert_eq!(departures(&mut s), [608_200, 1_215_400, 2_025_600]);
    }

    #[test]
    fn fractions_of_a_nanosecond_add_up_exactly() {
        // 100 bytes at 3 Gbit/s are 266 2/3 ns.
        let mut s = shaper(&[("rate", "3gbit")]);
        for _ in 0..6 {
            s.enqueue(ns(0), udp(100, 1, 0));
        }
        assert_eq!(departures(&mut s), [266, 533, 800, 1066, 1333, 1600]);
    }

    #[test]
    fn a_packet_on_the_line_goes_on_at_the_new_rate() {
        let mut s = shaper(&[("rate", "8mbit")]);
        s.enqueue(ns(0), udp(1000, 1, 0)); // 1 ms
        s.enqueue(ns(0), udp(1000, 1, 0));
        set(&mut s, ns(250_000), "rate", "4mbit");
        assert_eq!(departures(&mut s), [1_750_000, 3_750_000]);
        // No fraction of a nanosecond of the old rate is left over as time of the new one.
        let mut s = shaper(&[("rate", "3gbit")]);
        s.enqueue(ns(0), udp(100, 1, 0));
        s.enqueue(ns(0), udp(100, 1, 0));
        set(&mut s, ns(100), "rate", "8kbit");
        assert_eq!(departures(&mut s), [62_500_100, 162_500_100]);
    }

    #[test]
    fn large_segments_keep_the_line_for_250_us_at_most() {
        // 2 segments of 1518 bytes take 242.88 µs at 100 Mbit/s.
        let mut s = shaper(&[("rate", "100mbit"), ("framing", "docsis")]);
        assert_eq!(s.crossing(), Crossing::Whole);
        s.enqueue(ns(0), tcp(false, 5 * 1448, 1448, ACK));
        assert_eq!(departures(&mut s), [242_880, 485_760, 607_200]);
        // At 20 Mbit/s one takes longer already.
        let mut s = shaper(&[("rate", "20mbit"), ("framing", "docsis")]);
        assert_eq!(s.crossing(), Crossing::Split);
        s.enqueue(ns(0), tcp(false, 2 * 1448, 1448, ACK));
        assert_eq!(departures(&mut s), [607_200, 1_214_400]);
        // At 10 Gbit/s all pass as one; an AQM wants each by itself.
        let mut s = shaper(&[("rate", "10gbit"), ("framing", "docsis")]);
        s.enqueue(ns(0), tcp(false, 20 * 1448, 1448, ACK));
        assert_eq!(departures(&mut s), [24_288]);
        let mut s = shaper(&[
            ("rate", "10gbit"),
            ("framing", "docsis"),
            ("queue", "fq_codel"),
        ]);
        assert_eq!(s.crossing(), Crossing::Split);
        s.enqueue(ns(0), tcp(false, 20 * 1448, 1448, ACK));
        assert_eq!(departures(&mut s).len(), 20);
    }

    #[test]
    fn a_segment_makes_room_in_the_nanosecond_of_its_last_bit() {
        // 1500 bytes at 7 Gbit/s are 1714.29 ns: by itself the first of the two would leave at
        // 1714, and a packet that comes then finds its room free.
        for (at, dropped) in [(1713, 1), (1714, 0)] {
            let mut s = shaper(&[("rate", "7gbit"), ("limit", "2p")]);
            s.enqueue(ns(0), tcp(false, 2 * 1448, 1448, ACK));
            s.enqueue(ns(at), udp(100, 1, 0));
            assert_eq!(s.stats(ns(at), "shaper").dropped_packets(), dropped, "{at}");
        }
    }

    #[test]
    fn a_full_buffer_of_time_delays_for_that_time() {
        let mut s = shaper(&[
            ("rate", "20mbit"),
            ("framing", "docsis"),
            ("limit", "700ms"),
        ]);
        for _ in 0..1300 {
            s.enqueue(ns(0), udp(1500, 1, 0));
        }
        let out = departures(&mut s);
        // 1152 frames are 699.5 ms; one more would exceed the limit.
        assert_eq!(
            (out.len(), out.last().copied()),
            (1152, Some(1152 * 607_200))
        );
        let stats = s.stats(ns(1 << 40), "shaper");
        assert_eq!(stats.dropped["overflow"], 148);
        assert_eq!(stats.sojourn_s.unwrap().max, 0.699_494_4);
    }

    #[test]
    fn the_queues_delay_is_sampled_on_a_grid() {
        let mut s = shaper(&[("rate", "8mbit")]);
        for _ in 0..25 {
            s.enqueue(ns(5_000_000), udp(1000, 1, 0)); // 1 ms each, 25 ms from 5 ms on
        }
        let stats = s.stats(ns(40_000_001), "shaper");
        let series = stats.queue_delay.unwrap();
        let points: Vec<_> = series
            .points()
            .map(|(t, v)| ((t * 1e3) as u64, (v * 1e6).round() as u64))
            .collect();
        assert_eq!(
            points,
            [(0, 0), (10, 20_000), (20, 10_000), (30, 0), (40, 0)]
        );
        assert_eq!(stats.queue_delay_s.unwrap().max, 0.020);
    }

    #[test]
    fn another_queue_takes_over_what_waits() {
        let mut s = shaper(&[("rate", "8mbit"), ("limit", "1000p")]);
        for port in 0..20 {
            s.enqueue(ns(0), udp(1000, port, 0));
        }
        set(&mut s, ns(2_500_000), "queue", "fq_codel");
        set(&mut s, ns(2_600_000), "queue", "codel");
        set(&mut s, ns(2_700_000), "queue", "fifo");
        let out = departures(&mut s);
        assert_eq!(out, (1..=20).map(|i| i * 1_000_000).collect::<Vec<_>>());
    }

    #[test]
    fn mistakes_are_named() {
        let cell = CellSpec::Shaper(spec(&[("rate", "8mbit")]));
        for (key, value, says) in [
            ("rate", "fast", "20mbit"),
            ("rate", "0", "at least 1 bit/s"),
            ("queue", "fq_codl", "did you mean 'fq_codel'?"),
            (
                "target",
                "5ms",
                "expected one of `rate`, `framing`, `queue`",
            ),
            ("framing", "docis", "docsis"),
            ("framing", "overhead 300", "-64 to 256"),
            ("limit", "0", "more than none"),
        ] {
            let error = cell.with(&[(key, value)]).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
