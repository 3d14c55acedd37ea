//! A radio like Wi-Fi: it waits for the medium, sends the packets that have gathered as one aggregate, and sends the
//! whole aggregate again when no answer comes. So packets come in bursts, their delay jumps, and the airtime of a
//! packet depends on how many share its aggregate.
//!
//! The timing follows IEEE 802.11 at 5 GHz (OFDM): distributed coordination with binary exponential backoff (IEEE
//! 802.11-2020 section 10.3), A-MPDUs with block acknowledgement (sections 9.7, 10.25).

use std::num::NonZeroU32;
use std::time::Duration;

use plumb_model::framing::{Cells, Framing};
use plumb_model::units::{BitRate, duration_text};
use serde::{Deserialize, Serialize};

use crate::backlog::Backlog;
use crate::cell::departures::Departures;
use crate::cell::shaper::check_rate;
use crate::cell::{Adjust, Cell};
use crate::packet::Packet;
use crate::queue::{AnyQueue, QueueKinds, QueueSpec};
use crate::random::Random;
use crate::ratio::Ratio;
use crate::segment::{self, Crossing};
use crate::settings::Settings;
use crate::stats::{CellStats, DropCause};
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "wifi", rate = "866mbit", failure = "2%" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WifiSpec {
    /// The rate at which the bits of an aggregate are sent (the PHY rate).
    pub rate: BitRate,
    /// The probability that an attempt gets no answer, as by a collision or a fade; 10 % when
    /// absent, the error rate at which receivers are specified and rate control aims.
    #[serde(default = "failure")]
    pub failure: Ratio,
    /// The mean time for which others hold the medium before each attempt, from an exponential
    /// distribution; none when absent.
    #[serde(default, with = "duration_text")]
    pub busy: Duration,
    /// Packets in an aggregate at most; 64 when absent, the window of a block acknowledgement.
    #[serde(default = "frames")]
    pub frames: NonZeroU32,
    /// Time on the air after which nothing more goes into an aggregate; 4 ms when absent, as
    /// drivers choose it.
    #[serde(default = "txop", with = "duration_text")]
    pub txop: Duration,
    /// Attempts before an aggregate is given up; 7 when absent (dot11ShortRetryLimit).
    #[serde(default = "attempts")]
    pub attempts: NonZeroU32,
    /// What waits before the radio; a FIFO when absent.
    #[serde(default)]
    pub queue: QueueSpec,
}

fn failure() -> Ratio {
    Ratio::new(0.1).unwrap_or(Ratio::ZERO)
}

fn frames() -> NonZeroU32 {
    const { NonZeroU32::new(64).unwrap() }
}

fn txop() -> Duration {
    Duration::from_millis(4)
}

fn attempts() -> NonZeroU32 {
    const { NonZeroU32::new(7).unwrap() }
}

impl Settings for WifiSpec {
    fn check(&self) -> Result<(), String> {
        check_rate(self.rate)
    }
}

/// SIFS of OFDM, in microseconds.
const SIFS_US: u64 = 16;
const SLOT_US: u64 = 9;
/// DIFS: how long the medium is quiet before the backoff counts.
const DIFS_US: u64 = SIFS_US + 2 * SLOT_US;
/// The preamble of a VHT transmission with one stream: 20 µs of legacy and 20 µs of VHT fields.
const PREAMBLE_US: u64 = 40;
/// The block acknowledgement: 32 bytes at 24 Mbit/s, in symbols of 4 µs after 20 µs.
const BLOCK_ACK_US: u64 = 32;
/// The contention window in slots, at first and at most (aCWmin, aCWmax).
const CW_MIN: u32 = 15;
const CW_MAX: u32 = 1023;
/// What comes to each packet, in bytes: A-MPDU delimiter 4, MAC header with QoS 26, CCMP 16,
/// LLC and SNAP 8, FCS 4.
const FRAMING: Framing = Framing {
    overhead_bytes: 58,
    mpu_bytes: 0,
    cells: Cells::None,
};
/// Bits in a byte, in units of a nanosecond at 1 bit/s.
const WORK_PER_BYTE: u64 = 8_000_000_000;

pub(crate) struct Wifi {
    spec: WifiSpec,
    seed: u64,
    random: Random,
    queue: Box<dyn AnyQueue<QueueSpec>>,
    state: State,
    /// The aggregate: empty until its first attempt begins.
    aggregate: Vec<Packet>,
    /// How many packets and bytes it is.
    in_hand: Backlog,
    /// Attempts that were made with it.
    attempts: u32,
    contention_window: u32,
    /// What has arrived and was not yet asked for.
    done: Departures,
    tally: Tally,
}

/// What the radio does.
#[derive(Debug, Clone, Copy)]
enum State {
    /// There is nothing to send.
    Idle,
    /// It waits for the medium until then.
    Contends(Time),
    /// It sends, and knows then whether an answer came.
    Sends(Time),
}

impl Wifi {
    pub(crate) fn new(spec: WifiSpec, seed: u64) -> Self {
        Self {
            queue: spec.queue.build(spec.rate, seed),
            spec,
            seed,
            random: Random::new(seed),
            state: State::Idle,
            aggregate: Vec::new(),
            in_hand: Backlog::default(),
            attempts: 0,
            contention_window: CW_MIN,
            done: Departures::default(),
            tally: Tally::new(),
        }
    }

    /// Does what happens up to `now`.
    fn advance(&mut self, now: Time) {
        loop {
            match self.state {
                State::Contends(until) if until <= now => self.transmit(until),
                State::Sends(until) if until <= now => self.finish(until),
                _ => return,
            }
        }
    }

    /// Begins to wait for the medium, when there is something to send.
    fn contend(&mut self, now: Time) {
        if self.aggregate.is_empty() && self.queue.backlog().packets == 0 {
            self.state = State::Idle;
            return;
        }
        let busy_ns = match self.spec.busy.is_zero() {
            true => 0.0,
            false => self.spec.busy.as_nanos() as f64 * self.random.exponential(),
        };
        let slots = self.random.below(self.contention_window as usize + 1) as u64;
        let wait_us = DIFS_US + slots * SLOT_US;
        let wait = Duration::from_micros(wait_us) + Duration::from_nanos(busy_ns as u64);
        self.state = State::Contends(now + wait);
    }

    /// Sends the aggregate; a new one takes what waits now.
    fn transmit(&mut self, now: Time) {
        if self.aggregate.is_empty() {
            self.gather(now);
        }
        if self.aggregate.is_empty() {
            // The queue dropped all that it had.
            return self.contend(now);
        }
        let overhead_us = PREAMBLE_US + SIFS_US + BLOCK_ACK_US;
        let airtime = self.airtime() + Duration::from_micros(overhead_us);
        self.state = State::Sends(now + airtime);
    }

    fn gather(&mut self, now: Time) {
        let most = self.spec.frames.get() as usize;
        while self.aggregate.len() < most && self.airtime() < self.spec.txop {
            let Some(packet) = self.queue.dequeue(now, &mut self.tally) else {
                return;
            };
            self.in_hand += packet.backlog();
            self.aggregate.push(packet);
        }
    }

    /// How long the bits of the aggregate take.
    fn airtime(&self) -> Duration {
        let work = self.in_hand.wire_bytes.saturating_mul(WORK_PER_BYTE);
        Duration::from_nanos(work.div_ceil(self.spec.rate.bps().max(1)))
    }

    /// The answer came, or did not.
    fn finish(&mut self, now: Time) {
        self.attempts += 1;
        if !self.random.chance(self.spec.failure.value()) {
            for packet in self.aggregate.drain(..) {
                self.done.push(now, packet);
            }
            self.end_aggregate();
        } else if self.attempts >= self.spec.attempts.get() {
            for packet in self.aggregate.drain(..) {
                self.tally.drop(DropCause::Retries, &packet);
            }
            self.end_aggregate();
        } else {
            self.contention_window = (2 * self.contention_window + 1).min(CW_MAX);
        }
        self.contend(now);
    }

    fn end_aggregate(&mut self) {
        self.in_hand = Backlog::default();
        self.attempts = 0;
        self.contention_window = CW_MIN;
    }

    fn admit(&mut self, now: Time, packet: Packet) {
        self.queue
            .enqueue(now, packet, self.in_hand, &mut self.tally);
        if matches!(self.state, State::Idle) {
            self.contend(now);
        }
    }
}

impl Cell for Wifi {
    fn enqueue(&mut self, now: Time, mut packet: Packet) {
        self.advance(now);
        self.tally.offer(&packet);
        packet.entered = now;
        packet.frame(&FRAMING);
        for single in segment::split(packet, 1) {
            self.admit(now, single);
        }
    }

    fn dequeue(&mut self, now: Time) -> Option<(Time, Packet)> {
        if self.done.next().is_none() {
            self.advance(now);
        }
        self.done.pop(now, &mut self.tally)
    }

    fn next_event(&self) -> Option<Time> {
        match (self.done.next(), self.state) {
            (Some(at), _) => Some(at),
            (None, State::Idle) => None,
            (None, State::Contends(until) | State::Sends(until)) => Some(until),
        }
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog() + self.in_hand + self.done.backlog()
    }

    fn stats(&mut self, now: Time, kind: &str) -> CellStats {
        self.advance(now);
        self.tally.stats(kind, self.backlog())
    }

    fn crossing(&self) -> Crossing {
        Crossing::Split
    }
}

impl Adjust for Wifi {
    type Spec = WifiSpec;

    fn reconfigure(&mut self, now: Time, spec: WifiSpec) {
        self.advance(now);
        self.spec = spec;
        if !self.queue.set(&self.spec.queue, self.spec.rate) {
            let waiting = self.queue.drain();
            self.queue = self.spec.queue.build(self.spec.rate, self.seed);
            for packet in waiting {
                self.admit(now, packet);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::{ACK, tcp, udp};
    use crate::spec::AnyCell;
    use crate::spec::CellSpec;

    fn wifi(pairs: &[(&str, &str)]) -> CellSpec {
        CellSpec::from_pairs("wifi", pairs).unwrap()
    }

    fn us(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    /// When what is inside leaves, in microseconds, and how much at each time.
    fn bursts(cell: &mut Box<dyn AnyCell>) -> Vec<(u64, usize)> {
        let out: Vec<u64> = std::iter::from_fn(|| cell.dequeue(Time::from_nanos(1 << 60)))
            .map(|(at, _)| at.as_nanos() / 1000)
            .collect();
        out.chunk_by(|a, b| a == b)
            .map(|burst| (burst[0], burst.len()))
            .collect()
    }

    /// Slots of backoff drawn with a seed when nothing else is.
    fn slots(seed: u64, windows: &[usize]) -> Vec<u64> {
        let mut random = Random::new(seed);
        let draw = |window: &usize| {
            let slots = random.below(window + 1) as u64;
            random.chance(0.0); // whether the attempt fails
            slots
        };
        windows.iter().map(draw).collect()
    }

    #[test]
    fn what_gathers_goes_together() {
        // 942 bytes and 58 are 10 µs at 800 Mbit/s; around the aggregate go 40 + 16 + 32 µs.
        let mut cell = wifi(&[("rate", "800mbit"), ("failure", "0")])
            .build(5, us(0))
            .own();
        let backoff = slots(5, &[15, 15, 15]);
        let first = 34 + 9 * backoff[0];
        cell.enqueue(us(0), udp(942, 1, 0));
        cell.enqueue(us(first - 1), udp(942, 1, 0));
        // This one comes when the first two are on the air, and another 200 ms later.
        cell.enqueue(us(first + 1), udp(942, 1, 0));
        let there = first + 20 + 88;
        let second = there + 34 + 9 * backoff[1] + 10 + 88;
        assert_eq!(bursts(&mut cell), [(there, 2), (second, 1)]);
        cell.enqueue(us(200_000), udp(942, 1, 0));
        let third = 200_000 + 34 + 9 * backoff[2] + 10 + 88;
        assert_eq!(bursts(&mut cell), [(third, 1)]);
    }

    #[test]
    fn an_aggregate_is_bounded_in_packets_and_in_time() {
        let sizes = |pairs: &[(&str, &str)], count: usize| -> Vec<usize> {
            let mut pairs = pairs.to_vec();
            pairs.push(("failure", "0"));
            let mut cell = wifi(&pairs).build(5, us(0)).own();
            for _ in 0..count {
                cell.enqueue(us(0), udp(942, 1, 0));
            }
            bursts(&mut cell).iter().map(|(_, size)| *size).collect()
        };
        assert_eq!(sizes(&[("rate", "800mbit")], 150), [64, 64, 22]);
        assert_eq!(sizes(&[("rate", "800mbit"), ("frames", "1")], 3), [1, 1, 1]);
        // A millisecond each at 8 Mbit/s: four reach the 4 ms.
        assert_eq!(sizes(&[("rate", "8mbit")], 10), [4, 4, 2]);
        assert_eq!(sizes(&[("rate", "80kbit")], 2), [1, 1]);
        // Large segments are single packets on the air.
        let mut cell = wifi(&[("rate", "800mbit"), ("failure", "0")])
            .build(5, us(0))
            .own();
        cell.enqueue(us(0), tcp(false, 5 * 1448, 1448, ACK));
        assert_eq!(
            bursts(&mut cell).iter().map(|b| b.1).collect::<Vec<_>>(),
            [5]
        );
    }

    #[test]
    fn attempts_back_off_and_end() {
        let pairs = [("rate", "800mbit"), ("failure", "100%"), ("attempts", "3")];
        let mut cell = wifi(&pairs).build(5, us(0)).own();
        cell.enqueue(us(0), udp(942, 1, 0));
        cell.enqueue(us(0), udp(942, 2, 0));
        // Each attempt: DIFS, backoff in a window that doubles, two packets and what is around.
        let backoff: u64 = slots(5, &[15, 31, 63]).iter().sum();
        let end = 3 * (34 + 20 + 88) + 9 * backoff;
        assert_eq!(cell.stats(us(end - 1), "wifi").backlog.packets, 2);
        let stats = cell.stats(us(end), "wifi");
        assert_eq!((stats.dropped["retries"], stats.backlog.packets), (2, 0));
        assert_eq!(
            (cell.next_event(), cell.dequeue(us(1 << 40)).is_none()),
            (None, true)
        );
        // Then the window is the first again.
        cell.set(us(end), &wifi(&[("rate", "800mbit"), ("failure", "0")]));
        cell.enqueue(us(end), udp(942, 3, 0));
        let next = slots(5, &[15, 31, 63, 15])[3];
        assert_eq!(bursts(&mut cell), [(end + 34 + 9 * next + 10 + 88, 1)]);
    }

    /// 1500 packets one by one, each of which meets an idle radio: an attempt takes 34 µs, 7.5
    /// slots of 9 µs on average (their deviation is √(255/12) = 4.6 slots, 41 µs), 1 ms of
    /// others with the same deviation, 10 µs and 88 µs. The mean of 1500 has the deviation
    /// 1001 µs / √1500 = 26 µs, and the bound is five of them.
    #[test]
    fn others_hold_the_medium() {
        let pairs = [("rate", "800mbit"), ("failure", "0"), ("busy", "1ms")];
        let mut cell = wifi(&pairs).build(5, us(0)).own();
        for i in 0..1500 {
            cell.enqueue(us(i * 100_000), udp(942, 1, 0));
            assert_eq!(bursts(&mut cell).len(), 1);
        }
        let mean = cell.stats(us(1 << 40), "wifi").sojourn_s.unwrap().mean;
        assert!((mean - 1.1995e-3).abs() <= 130e-6, "{mean}");
    }

    #[test]
    fn the_queue_bounds_what_waits_and_can_be_another() {
        let pairs = [("rate", "8mbit"), ("failure", "0"), ("limit", "6p")];
        let mut cell = wifi(&pairs).build(5, us(0)).own();
        for _ in 0..10 {
            cell.enqueue(us(0), udp(942, 1, 0));
        }
        assert_eq!(cell.stats(us(0), "wifi").dropped["overflow"], 4);
        // Four are on the air and still in the buffer after 200 µs.
        cell.enqueue(us(200), udp(942, 1, 0));
        assert_eq!(cell.stats(us(200), "wifi").dropped["overflow"], 5);
        let pairs = [("rate", "8mbit"), ("failure", "0"), ("queue", "fq_codel")];
        cell.set(us(300), &wifi(&pairs));
        let sizes: Vec<_> = bursts(&mut cell).iter().map(|b| b.1).collect();
        assert_eq!(sizes, [4, 2]);
    }

    #[test]
    fn mistakes_are_named() {
        for (key, value, says) in [
            ("rate", "0", "at least 1 bit/s"),
            ("failure", "120%", "is not a ratio"),
            ("frames", "0", "nonzero"),
            ("queue", "fifi", "did you mean 'fifo'?"),
            ("retries", "3", "expected one of"),
        ] {
            let spec = wifi(&[("rate", "8mbit")]);
            let error = spec.with(&[(key, value)]).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
