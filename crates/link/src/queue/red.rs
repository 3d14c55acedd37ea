//! RED (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993): an
//! average of the queue decides how likely an arriving packet is dropped or marked. The decisions
//! follow the kernel's red.h and sch_red.c, in exact arithmetic instead of fixed point and tables. Adaptive and gentle
//! RED are left out.

use plumb_model::units::{BitRate, ByteCount};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::single::{Algorithm, Bounded, Buffer, Single};
use crate::backlog::Backlog;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::random::Random;
use crate::ratio::Ratio;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "red", limit = "400kB", min = "30kB", max = "90kB" }`; the defaults are from the example in tc-red(8),
/// which suits 10 Mbit/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedSpec {
    /// IP bytes that may wait.
    pub limit: ByteCount,
    /// The average, in IP bytes, from which on packets are marked.
    pub min: ByteCount,
    /// The average from which on every packet is marked.
    pub max: ByteCount,
    /// The share of packets marked when the average is just below `max`.
    pub probability: Ratio,
    /// The size of an average packet.
    pub avpkt: ByteCount,
    /// Average packets that may come at once without a mark: more makes the average slower.
    pub burst: u32,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
    /// Drop them nevertheless while the average is at `max` or above.
    pub harddrop: bool,
}

impl Default for RedSpec {
    fn default() -> Self {
        Self {
            limit: ByteCount::from_bytes(400_000),
            min: ByteCount::from_bytes(30_000),
            max: ByteCount::from_bytes(90_000),
            // The default of tc-red(8).
            probability: Ratio::new(0.02).unwrap_or_default(),
            avpkt: ByteCount::from_bytes(1000),
            burst: 55,
            ecn: false,
            harddrop: false,
        }
    }
}

impl Settings for RedSpec {
    fn check(&self) -> Result<(), String> {
        if self.min >= self.max || self.max > self.limit {
            return Err("min must be less than max, and max at most limit".to_owned());
        }
        if self.avpkt.bytes() == 0 {
            return Err("avpkt must be at least 1 byte".to_owned());
        }
        if weight(self).is_none() {
            return Err(format!(
                "a burst of {} is not possible: it is at least min / avpkt, and well below 2^31",
                self.burst
            ));
        }
        Ok(())
    }
}

impl Bounded for RedSpec {
    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit.bytes())
    }
}

/// The weight of the present queue in the average: the power of two that allows the burst, as
/// tc_red_eval_ewma() in iproute2 finds it.
fn weight(spec: &RedSpec) -> Option<f64> {
    let burst = f64::from(spec.burst);
    let beyond = burst + 1.0 - spec.min.bytes() as f64 / spec.avpkt.bytes() as f64;
    if beyond < 1.0 {
        return None;
    }
    (1..32)
        .map(|log| 0.5f64.powi(log))
        .find(|weight| beyond <= (1.0 - (1.0 - weight).powf(burst)) / weight)
}

pub(crate) type Red = Single<RedAlgorithm>;

pub(crate) struct RedAlgorithm {
    weight: f64,
    /// The average of the queue, in IP bytes.
    average: f64,
    /// Packets since the last mark; `None` while the average is not between the thresholds.
    count: Option<u32>,
    /// Marks when this number from 0 to 1 is reached (Method 2 of section 7 of the paper: the gaps between
    /// marks are uniform).
    threshold: f64,
    /// Since when the line has found nothing to send.
    idle_since: Option<Time>,
    random: Random,
}

/// What to do with a packet that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Take,
    Mark,
    HardMark,
}

impl Red {
    pub(crate) fn new(spec: RedSpec, rate: BitRate, seed: u64) -> Self {
        let algorithm = RedAlgorithm {
            weight: weight(&spec).unwrap_or(1.0),
            average: 0.0,
            count: None,
            threshold: 0.0,
            idle_since: None,
            random: Random::new(seed),
        };
        Self::with(algorithm, spec, rate)
    }
}

impl RedAlgorithm {
    /// Moves the average on: towards the queue, or as if average packets had come to an empty
    /// queue for as long as it was idle.
    fn update_average(&mut self, buffer: &Buffer<RedSpec>, now: Time) {
        match self.idle_since.take() {
            Some(since) => {
                let sending =
                    buffer.spec.avpkt.bytes() as f64 * 8.0 / buffer.rate.bps().max(1) as f64;
                let packets = (now - since).as_secs_f64() / sending;
                self.average *= (1.0 - self.weight).powf(packets);
            }
            None => {
                let queue = buffer.list.backlog().ip_bytes as f64;
                self.average += self.weight * (queue - self.average);
            }
        }
    }

    fn action(&mut self, spec: &RedSpec) -> Action {
        let (min, max) = (spec.min.bytes() as f64, spec.max.bytes() as f64);
        if self.average < min {
            self.count = None;
            return Action::Take;
        }
        if self.average >= max {
            self.count = None;
            return Action::HardMark;
        }
        let Some(count) = self.count else {
            self.count = Some(0);
            self.threshold = self.random.generator().random();
            return Action::Take;
        };
        let count = count.saturating_add(1);
        self.count = Some(count);
        let probability = spec.probability.value() * (self.average - min) / (max - min);
        if probability * f64::from(count) < self.threshold {
            return Action::Take;
        }
        self.count = Some(0);
        self.threshold = self.random.generator().random();
        Action::Mark
    }
}

impl Algorithm for RedAlgorithm {
    type Spec = RedSpec;

    fn enqueue(
        &mut self,
        buffer: &mut Buffer<RedSpec>,
        now: Time,
        mut packet: Packet,
        _: Backlog,
        tally: &mut Tally,
    ) {
        self.update_average(buffer, now);
        let action = self.action(&buffer.spec);
        if action != Action::Take {
            let hard = action == Action::HardMark && buffer.spec.harddrop;
            let may_mark = buffer.spec.ecn && !hard;
            if !(may_mark && packet.mark()) {
                tally.drop(DropCause::Red, &packet);
                return;
            }
            tally.marked += 1;
        }
        if buffer.fits(&packet) {
            buffer.list.push(packet);
        } else {
            tally.drop(DropCause::Overflow, &packet);
        }
    }

    fn dequeue(
        &mut self,
        buffer: &mut Buffer<RedSpec>,
        now: Time,
        _: &mut Tally,
    ) -> Option<Packet> {
        let packet = buffer.list.pop();
        if packet.is_none() {
            self.idle_since.get_or_insert(now);
        }
        packet
    }

    fn adjust(&mut self, spec: &RedSpec) {
        self.weight = weight(spec).unwrap_or(1.0);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::udp;
    use crate::queue::Queue;
    use crate::queue::sim::{Flow, reno, run};
    use plumb_model::framing::Framing;

    const RATE: BitRate = BitRate::from_bps(8_000_000);

    fn offer(red: &mut Red, tally: &mut Tally, at: Time, ecn: u8) {
        let mut packet = udp(1000, 1, ecn);
        packet.entered = at;
        packet.frame(&Framing::default());
        red.enqueue(at, packet, Backlog::default(), tally);
    }

    #[test]
    fn the_weight_is_that_of_tc() {
        // burst + 1 − min/avpkt = 26 ≤ (1 − (1 − W)^55)/W: 15.5 for 1/16, 26.4 for 1/32.
        assert_eq!(weight(&RedSpec::default()), Some(1.0 / 32.0));
        let burst = 29;
        let spec = RedSpec {
            burst,
            ..RedSpec::default()
        };
        assert!(spec.check().unwrap_err().contains("min / avpkt"));
        let max = ByteCount::from_bytes(30_000);
        let spec = RedSpec {
            max,
            ..RedSpec::default()
        };
        assert!(spec.check().unwrap_err().contains("less than max"));
    }

    #[test]
    fn the_average_follows_the_queue_and_decays_while_idle() {
        let (mut red, mut tally) = (Red::new(RedSpec::default(), RATE, 1), Tally::new());
        // Queues of 0, 1000, 2000 bytes seen by the arrivals, a 32nd of each.
        for _ in 0..3 {
            offer(&mut red, &mut tally, Time::ZERO, 0);
        }
        let by_hand = (1000.0 / 32.0) * (31.0 / 32.0) + 2000.0 / 32.0;
        assert!(
            (red.algorithm.average - by_hand).abs() < 1e-9,
            "{}",
            red.algorithm.average
        );
        while red
            .dequeue(Time::from_nanos(5_000_000), &mut tally)
            .is_some()
        {}
        // 10 ms at 8 Mbit/s are ten average packets.
        offer(&mut red, &mut tally, Time::from_nanos(15_000_000), 0);
        let decayed = by_hand * (31.0f64 / 32.0).powi(10);
        assert!(
            (red.algorithm.average - decayed).abs() < 1e-9,
            "{}",
            red.algorithm.average
        );
    }

    /// Packets between marks while the queue stands at 60 kB, the middle: with half of the
    /// probability of 2 %, a mark comes at the first count with count / 100 ≥ a number drawn
    /// from 0 to 1.
    #[test]
    fn marks_come_where_the_seed_puts_them() {
        let spec = RedSpec {
            ecn: true,
            ..RedSpec::default()
        };
        let (mut red, mut tally) = (Red::new(spec, RATE, 5), Tally::new());
        let mut marks = Vec::new();
        red.algorithm.average = 60_000.0;
        for _ in 0..60 {
            red.buffer.list.push(udp(1000, 1, 0));
        }
        for n in 0..2000u32 {
            let before = tally.marked;
            offer(&mut red, &mut tally, Time::ZERO, 2);
            red.dequeue(Time::ZERO, &mut tally);
            if tally.marked > before {
                marks.push(n);
            }
        }
        let mut random = Random::new(5);
        let (mut by_hand, mut at) = (Vec::new(), 0u32);
        loop {
            let drawn: f64 = random.generator().random();
            at += ((drawn * 100.0).ceil() as u32).max(1);
            if at >= 2000 {
                break;
            }
            by_hand.push(at);
        }
        assert_eq!(marks, by_hand);
        // The gaps are uniform up to 100, not geometric: about 40 marks of 2000.
        assert!(marks.windows(2).all(|w| w[1] - w[0] <= 100) && marks.len() > 30);
        assert_eq!(tally.losses.len(), 0);
    }

    #[test]
    fn above_the_maximum_every_packet_goes() {
        for (ecn, harddrop, field, dropped) in [
            (false, false, 2, 10),
            (true, false, 2, 0),
            (true, false, 0, 10),
            (true, true, 2, 10),
        ] {
            let spec = RedSpec {
                ecn,
                harddrop,
                ..RedSpec::default()
            };
            let (mut red, mut tally) = (Red::new(spec, RATE, 1), Tally::new());
            red.algorithm.average = 1e6;
            for _ in 0..10 {
                offer(&mut red, &mut tally, Time::ZERO, field);
            }
            assert_eq!(tally.losses.len(), dropped, "{ecn} {harddrop} {field}");
            assert_eq!(tally.marked, 10 - dropped as u64);
        }
    }

    #[test]
    fn the_limit_is_hard() {
        let (mut red, mut tally) = (Red::new(RedSpec::default(), RATE, 1), Tally::new());
        // So fast that the average has not yet followed.
        red.algorithm.weight = 1e-9;
        for _ in 0..401 {
            offer(&mut red, &mut tally, Time::ZERO, 0);
        }
        assert_eq!(tally.stats("", red.backlog()).dropped["overflow"], 1);
        assert_eq!(red.backlog().ip_bytes, 400_000);
    }

    #[test]
    fn holds_the_average_between_the_thresholds() {
        let flows: Vec<Flow> = (0..8).map(|i| reno(i, 40)).collect();
        let pairs = [("rate", "10mbit"), ("queue", "red")];
        for seed in 1..4 {
            for flow in run(&pairs, &flows, 90, seed) {
                // 30 and 90 kB are 24 and 72 ms at 10 Mbit/s.
                let wait = flow.mean_wait_ms();
                assert!((24.0..72.0).contains(&wait), "{wait}");
            }
        }
    }
}
