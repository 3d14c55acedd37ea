//! DualPI2 (RFC 9332, appendix A): a queue for scalable (L4S) and one for classic traffic, coupled
//! so that their flows get equal rates. Follows the kernel's sch_dualpi2.c: a step instead of a
//! ramp in the low-latency queue, and weighted round robin instead of a time-shifted FIFO.

use std::time::Duration;

use plumb_model::units::{BitRate, duration_text};
use plumb_wire::ip::{Ecn, IpPacket};
use serde::{Deserialize, Serialize};

use super::list::{PacketList, in_order_of_arrival};
use super::pie::check_gains;
use super::ticks::{self, Ticks};
use super::{Adjust, Queue};
use crate::backlog::Backlog;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::random::Random;
use crate::ratio::Ratio;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "dualpi2" }`; the defaults are from the kernel and tc-dualpi2(8).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DualPi2Spec {
    /// What may wait in both queues together.
    pub limit: Limit,
    /// The delay of the classic queue to hold.
    #[serde(with = "duration_text")]
    pub target: Duration,
    /// How often the probability is adjusted.
    #[serde(with = "duration_text")]
    pub tupdate: Duration,
    /// The weight of the distance from the target, in 1/s.
    pub alpha: f64,
    /// The weight of the change since the last update, in 1/s.
    pub beta: f64,
    /// The delay in the low-latency queue from which on every packet is marked.
    #[serde(with = "duration_text")]
    pub step: Duration,
    /// How many times the classic probability's square root the low-latency queue's is.
    pub coupling: u8,
    /// The share of the line that the classic queue gets at least.
    pub c_protection: Ratio,
    /// Drop also in the low-latency queue when marking every packet is not enough.
    pub drop_overload: bool,
}

impl Default for DualPi2Spec {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(10_000),
            target: Duration::from_millis(15),
            tupdate: Duration::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            step: Duration::from_millis(1),
            coupling: 2,
            c_protection: Ratio::new(0.1).unwrap_or_default(),
            drop_overload: true,
        }
    }
}

impl Settings for DualPi2Spec {
    fn check(&self) -> Result<(), String> {
        ticks::check(self.tupdate)?;
        check_gains(self.alpha, self.beta)?;
        if self.coupling == 0 {
            return Err("the coupling is at least 1".to_owned());
        }
        Ok(())
    }
}

/// Below two packets of this many IP bytes nothing is dropped, nor marked but by the step: the
/// kernel's psched_mtu() of an Ethernet.
const MTU: u64 = 1514;

pub(crate) struct DualPi2 {
    low_latency: PacketList,
    classic: PacketList,
    spec: DualPi2Spec,
    rate: BitRate,
    ticks: Ticks,
    control: Control,
    /// The low-latency queue is served while this is not above zero: bytes on the line, weighted.
    credit: f64,
    random: Random,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Control {
    /// The base probability; classic packets are signalled with its square.
    probability: f64,
    /// The larger delay of the two queues at the last update, in seconds.
    delay: f64,
}

impl Control {
    /// `calculate_probability()`.
    fn update(&mut self, spec: &DualPi2Spec, delay: f64) {
        let step =
            spec.alpha * (delay - spec.target.as_secs_f64()) + spec.beta * (delay - self.delay);
        // Without drops on overload the low-latency queue's probability ends at one.
        let most = if spec.drop_overload {
            1.0
        } else {
            1.0 / f64::from(spec.coupling)
        };
        self.probability = (self.probability + step).clamp(0.0, most);
        self.delay = delay;
    }
}

/// What becomes of a packet that is about to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Send,
    Mark,
    Drop,
}

impl DualPi2 {
    pub(crate) fn new(spec: DualPi2Spec, rate: BitRate, seed: u64) -> Self {
        Self {
            low_latency: PacketList::default(),
            classic: PacketList::default(),
            credit: initial_credit(&spec),
            spec,
            rate,
            ticks: Ticks::default(),
            control: Control::default(),
            random: Random::new(seed),
        }
    }

    fn advance(&mut self, now: Time) {
        let head = |list: &PacketList| list.front().map_or(Time::MAX, |packet| packet.entered);
        let oldest = head(&self.low_latency).min(head(&self.classic));
        let Self {
            ticks,
            control,
            spec,
            ..
        } = self;
        ticks.advance(now, spec.tupdate, |at| {
            let before = *control;
            control.update(spec, (at - oldest).as_secs_f64());
            *control != before
        });
    }

    /// `must_drop()` and `do_step_aqm()`.
    fn verdict(&mut self, packet: &Packet, low_latency: bool, sojourn: Duration) -> Verdict {
        let base = self.control.probability;
        let coupled = base * f64::from(self.spec.coupling);
        let overload = coupled > 1.0;
        let short = self.backlog().ip_bytes < 2 * MTU;
        if !low_latency {
            let signal = !short && self.squared(base);
            return match (signal, overload || ecn(packet) == Ecn::NotEct) {
                (false, _) => Verdict::Send,
                (true, true) => Verdict::Drop,
                (true, false) => Verdict::Mark,
            };
        }
        if !short && overload && self.spec.drop_overload && self.squared(base) {
            return Verdict::Drop;
        }
        let mark = !short && (overload || self.random.chance(coupled));
        if mark || sojourn > self.spec.step {
            Verdict::Mark
        } else {
            Verdict::Send
        }
    }

    /// True with the square of the probability: twice in a row with itself.
    fn squared(&mut self, probability: f64) -> bool {
        self.random.chance(probability) && self.random.chance(probability)
    }

    /// `dequeue_packet()`: the next packet, whether it is of the low-latency queue, and what
    /// sending it does to the credit.
    fn pop(&mut self) -> Option<(Packet, bool, f64)> {
        let weight = self.spec.c_protection.value();
        let classic_waits = self.classic.backlog().packets > 0;
        let low_latency_waits = self.low_latency.backlog().packets > 0;
        if low_latency_waits && (!classic_waits || self.credit <= 0.0) {
            let packet = self.low_latency.pop()?;
            let change = if classic_waits { weight } else { 0.0 };
            let bytes = packet.wire.total as f64;
            return Some((packet, true, change * bytes));
        }
        let packet = self.classic.pop()?;
        let change = if low_latency_waits { weight - 1.0 } else { 0.0 };
        let bytes = packet.wire.total as f64;
        Some((packet, false, change * bytes))
    }
}

/// The credit of empty queues: the more favoured one goes first.
fn initial_credit(spec: &DualPi2Spec) -> f64 {
    MTU as f64 * (2.0 * spec.c_protection.value() - 1.0)
}

fn ecn(packet: &Packet) -> Ecn {
    IpPacket::parse(&packet.data).map_or(Ecn::NotEct, |ip| ip.ecn())
}

impl Queue for DualPi2 {
    fn enqueue(&mut self, now: Time, packet: Packet, _: Backlog, tally: &mut Tally) {
        self.advance(now);
        if !self
            .spec
            .limit
            .allows(self.backlog() + packet.backlog(), self.rate)
        {
            tally.drop(DropCause::Overflow, &packet);
            return;
        }
        // RFC 9331 section 5.1: both may come from a scalable sender.
        match ecn(&packet) {
            Ecn::Ect1 | Ecn::Ce => self.low_latency.push(packet),
            Ecn::NotEct | Ecn::Ect0 => self.classic.push(packet),
        }
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        self.advance(now);
        while let Some((mut packet, low_latency, credit)) = self.pop() {
            match self.verdict(&packet, low_latency, now - packet.entered) {
                Verdict::Drop => {
                    tally.drop(DropCause::DualPi2, &packet);
                    continue;
                }
                Verdict::Mark if packet.mark() => tally.marked += 1,
                Verdict::Mark | Verdict::Send => {}
            }
            self.credit += credit;
            return Some(packet);
        }
        self.credit = initial_credit(&self.spec);
        None
    }

    fn backlog(&self) -> Backlog {
        self.low_latency.backlog() + self.classic.backlog()
    }

    fn drain(&mut self) -> Vec<Packet> {
        let low_latency = self.low_latency.drain();
        in_order_of_arrival(low_latency.chain(self.classic.drain()))
    }
}

impl Adjust for DualPi2 {
    type Spec = DualPi2Spec;

    fn reconfigure(&mut self, spec: DualPi2Spec, rate: BitRate) -> bool {
        (self.spec, self.rate) = (spec, rate);
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::udp;
    use crate::queue::sim::{Outcome, dctcp, reno, run};
    use plumb_model::framing::Framing;

    const RATE: BitRate = BitRate::from_bps(8_000_000);

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn offer(queue: &mut DualPi2, tally: &mut Tally, at: Time, ecn: u8) {
        let mut packet = udp(1000, 1, ecn);
        packet.entered = at;
        packet.frame(&Framing::default());
        queue.enqueue(at, packet, Backlog::default(), tally);
    }

    fn queue(spec: DualPi2Spec) -> (DualPi2, Tally) {
        (DualPi2::new(spec, RATE, 1), Tally::new())
    }

    #[test]
    fn the_probability_moves_as_computed_by_hand() {
        let spec = DualPi2Spec::default();
        let mut control = Control::default();
        for (delay, expected) in [
            // 0.16 × 10 ms + 3.2 × 25 ms, then 0.16 × 10 ms, then − 0.16 × 10 ms − 3.2 × 20 ms,
            // then down to nothing.
            (0.025, 0.0816),
            (0.025, 0.0832),
            (0.005, 0.0176),
            (0.0, 0.0),
        ] {
            control.update(&spec, delay);
            assert!(
                (control.probability - expected).abs() < 1e-12,
                "{control:?}"
            );
        }
        control.update(&spec, 1.0);
        assert_eq!(control.probability, 1.0);
        let drop_overload = false;
        control.update(
            &DualPi2Spec {
                drop_overload,
                ..spec
            },
            2.0,
        );
        assert_eq!(control.probability, 0.5);
    }

    #[test]
    fn updates_see_the_delay_of_the_oldest_packet_when_they_are_due() {
        let (mut q, mut tally) = queue(DualPi2Spec::default());
        offer(&mut q, &mut tally, ms(100), 0);
        offer(&mut q, &mut tally, ms(105), 1);
        // Due at 116 and 132 ms: delays of 16 and 32 ms.
        offer(&mut q, &mut tally, ms(140), 1);
        let by_hand = (0.16 * 0.001 + 3.2 * 0.016) + (0.16 * 0.017 + 3.2 * 0.016);
        assert!(
            (q.control.probability - by_hand).abs() < 1e-12,
            "{:?}",
            q.control
        );
    }

    #[test]
    fn the_low_latency_queue_goes_first_and_the_classic_one_gets_its_tenth() {
        let (mut q, mut tally) = queue(DualPi2Spec::default());
        for _ in 0..200 {
            offer(&mut q, &mut tally, ms(0), 0);
            offer(&mut q, &mut tally, ms(0), 1);
        }
        // The credit begins at −1211.2 and grows by 100 with each packet: 13 of them.
        let order: Vec<bool> = (0..113)
            .map(|_| ecn(&q.dequeue(ms(0), &mut tally).unwrap()) == Ecn::NotEct)
            .collect();
        assert_eq!(order.iter().position(|classic| *classic), Some(13));
        assert_eq!(order[13..].iter().filter(|classic| **classic).count(), 10);
    }

    #[test]
    fn the_step_marks_what_waited_longer_even_in_a_short_queue() {
        let (mut q, mut tally) = queue(DualPi2Spec::default());
        for (at, marked) in [(1_000_000, 0), (1_000_001, 1)] {
            let (now, mut t) = (Time::from_nanos(at), Tally::new());
            offer(&mut q, &mut tally, Time::ZERO, 1);
            let packet = q.dequeue(now, &mut t).unwrap();
            assert_eq!(
                (t.marked, u64::from(ecn(&packet) == Ecn::Ce)),
                (marked, marked)
            );
        }
    }

    /// Of 4000 packets each; the bounds are five standard deviations of a binomial number.
    #[test]
    fn classic_packets_are_signalled_with_the_square_and_scalable_ones_with_the_double() {
        let spec = DualPi2Spec {
            limit: Limit::Packets(1 << 20),
            ..DualPi2Spec::default()
        };
        let signals = |probability, field| {
            let (mut q, mut tally) = queue(spec);
            for _ in 0..4004 {
                offer(&mut q, &mut tally, ms(0), field);
            }
            q.control.probability = probability;
            // The last four are too short a queue.
            while q.backlog().packets > 4 {
                let _ = q.dequeue(ms(0), &mut tally);
            }
            (tally.marked, tally.losses.len() as u64)
        };
        let near = |count: u64, share: f64| {
            let bound = 5.0 * (4000.0 * share * (1.0 - share)).sqrt();
            (count as f64 - 4000.0 * share).abs() <= bound
        };
        let (marked, lost) = signals(0.3, 1);
        assert!(near(marked, 0.6) && lost == 0, "{marked} {lost}");
        let (marked, lost) = signals(0.3, 2);
        assert!(near(marked, 0.09) && lost == 0, "{marked} {lost}");
        let (marked, lost) = signals(0.3, 0);
        assert!(near(lost, 0.09) && marked == 0, "{marked} {lost}");
        // Overload: scalable packets are dropped like classic ones, and all others marked.
        let (marked, lost) = signals(0.6, 1);
        assert!(near(lost, 0.36) && marked + lost == 4000, "{marked} {lost}");
        let (marked, lost) = signals(0.6, 2);
        assert!(near(lost, 0.36) && marked == 0, "{marked} {lost}");
    }

    #[test]
    fn the_limit_holds_for_both_queues_together() {
        let limit = Limit::Packets(3);
        let (mut q, mut tally) = queue(DualPi2Spec {
            limit,
            ..DualPi2Spec::default()
        });
        for field in [0, 1, 2, 3, 0] {
            offer(&mut q, &mut tally, ms(0), field);
        }
        assert_eq!(tally.stats("", q.backlog()).dropped["overflow"], 2);
        assert_eq!(q.low_latency.backlog().packets, 1);
    }

    #[test]
    fn holds_both_targets_and_shares_the_line() {
        let pairs = [("rate", "50mbit"), ("queue", "dualpi2")];
        for seed in 1..4 {
            let outcomes = run(
                &pairs,
                &[dctcp(1, 15), dctcp(2, 15), reno(3, 15), reno(4, 15)],
                60,
                seed,
            );
            let (scalable, classic) = outcomes.split_at(2);
            for flow in scalable {
                let p99 = flow.quantile_wait_ms(0.99);
                assert!(p99 <= 2.0 && flow.lost == 0, "{p99} ms");
            }
            for flow in classic {
                let wait = flow.mean_wait_ms();
                assert!((12.0..18.0).contains(&wait), "{wait} ms");
            }
            let bytes = |flows: &[Outcome]| flows.iter().map(|f| f.bytes).sum::<u64>() as f64;
            let used = (bytes(scalable) + bytes(classic)) * 8.0 / 40.0 / 50e6;
            assert!(used > 0.95, "{used}");
            // Equal windows, and the classic round trip is about twice as long.
            let ratio = bytes(scalable) / bytes(classic);
            assert!((1.0..4.0).contains(&ratio), "{ratio}");
        }
    }

    #[test]
    fn scalable_flows_alone_wait_a_millisecond_at_most() {
        let pairs = [("rate", "50mbit"), ("queue", "dualpi2")];
        for flow in run(&pairs, &[dctcp(1, 20), dctcp(2, 20)], 60, 1) {
            let p99 = flow.quantile_wait_ms(0.99);
            assert!(p99 <= 2.0 && flow.lost == 0, "{p99} ms");
        }
    }
}
