//! PIE (RFC 8033): drops arriving packets with a probability that a controller adjusts so that
//! the queue's delay stays at a target. Follows the kernel's sch_pie.c in its default mode, where
//! the delay is measured on the packet that left last, by its timestamp (RFC 8033 section 5.2).

use std::time::Duration;

use plumb_model::units::{BitRate, duration_text};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::single::{Algorithm, Bounded, Buffer, Single};
use super::ticks::{self, Ticks};
use crate::backlog::Backlog;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::random::Random;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "pie" }`; the defaults are from RFC 8033 and tc-pie(8).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PieSpec {
    pub limit: Limit,
    /// The delay to hold.
    #[serde(with = "duration_text")]
    pub target: Duration,
    /// How often the probability is adjusted.
    #[serde(with = "duration_text")]
    pub tupdate: Duration,
    /// The weight of the distance from the target, in 1/s.
    pub alpha: f64,
    /// The weight of the change since the last update, in 1/s.
    pub beta: f64,
    /// Mark packets of ECN-capable transports while the probability is at most 10 %.
    pub ecn: bool,
    /// Drop small packets less often, in proportion to their size.
    pub bytemode: bool,
}

impl Default for PieSpec {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1000),
            target: Duration::from_millis(15),
            tupdate: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            ecn: false,
            bytemode: false,
        }
    }
}

impl Settings for PieSpec {
    fn check(&self) -> Result<(), String> {
        ticks::check(self.tupdate)?;
        check_gains(self.alpha, self.beta)
    }
}

impl Bounded for PieSpec {
    fn limit(&self) -> Limit {
        self.limit
    }
}

/// Whether a controller can have these gains; tc-pie(8) takes 0 to 32 sixteenths, tc-dualpi2(8)
/// more.
pub(crate) fn check_gains(alpha: f64, beta: f64) -> Result<(), String> {
    if (0.0..=1e6).contains(&alpha) && (0.0..=1e6).contains(&beta) {
        return Ok(());
    }
    Err("alpha and beta are from 0 to 1000000 a second".to_owned())
}

/// How long bursts pass after the queue was idle (RFC 8033 section 4.4).
const MAX_BURST: Duration = Duration::from_millis(150);
/// Below two packets of this many IP bytes nothing is dropped: the kernel's psched_mtu() of an
/// Ethernet.
const MTU: u64 = 1514;
/// Drops are not closer than this many expected ones, nor further apart than that (RFC 8033
/// section 5.4).
const ACCUMULATED: std::ops::Range<f64> = 0.85..8.5;
/// Up to this probability packets are marked (RFC 8033 section 5.1).
const MARK_UP_TO: f64 = 0.1;
/// Steps are at most this from 10 % on (section 5.5); and the step beyond
/// [`VERY_LATE`], in the kernel's words "derived through experiments".
const STEP: f64 = 0.02;
const VERY_LATE: f64 = 0.25;
/// Each update without delay leaves 63/64 of the probability.
const DECAY: f64 = 1.0 / 64.0;

pub(crate) type Pie = Single<PieAlgorithm>;

pub(crate) struct PieAlgorithm {
    ticks: Ticks,
    control: Control,
    random: Random,
}

/// The controller's variables, as in the kernel; delays in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Control {
    probability: f64,
    accumulated: f64,
    delay: f64,
    delay_before: f64,
    burst: Duration,
    last_departure: Option<Time>,
}

impl Control {
    const START: Self = Self {
        probability: 0.0,
        accumulated: 0.0,
        delay: 0.0,
        delay_before: 0.0,
        burst: MAX_BURST,
        last_departure: None,
    };

    /// `pie_calculate_probability()`.
    fn update(&mut self, spec: &PieSpec, backlog: u64) {
        let target = spec.target.as_secs_f64();
        let (delay, before) = (self.delay, self.delay_before);
        let scale = gain_scale(self.probability);
        let mut step = scale * (spec.alpha * (delay - target) + spec.beta * (delay - before));
        if step > STEP && self.probability >= 0.1 {
            step = STEP;
        }
        if delay > VERY_LATE {
            step += STEP;
        }
        self.probability = (self.probability + step).clamp(0.0, 1.0);
        if delay == 0.0 && before == 0.0 && backlog == 0 {
            self.probability *= 1.0 - DECAY;
        }
        if delay < target / 2.0 && before < target / 2.0 && self.probability == 0.0 {
            self.burst = MAX_BURST;
            self.last_departure = None;
            self.accumulated = 0.0;
        }
        self.delay_before = delay;
    }

    /// `pie_drop_early()`: whether a packet of `size` IP bytes that comes to a queue of `backlog`
    /// is to be dropped.
    fn drops(&mut self, spec: &PieSpec, backlog: u64, size: u64, random: &mut Random) -> bool {
        let calm = self.delay < spec.target.as_secs_f64() / 2.0 && self.probability < 0.2;
        if !self.burst.is_zero() || calm || backlog < 2 * MTU {
            return false;
        }
        let mut probability = self.probability;
        if spec.bytemode && size <= MTU {
            probability *= size as f64 / MTU as f64;
        }
        if probability == 0.0 {
            self.accumulated = 0.0;
        } else {
            self.accumulated += probability;
        }
        if self.accumulated < ACCUMULATED.start {
            return false;
        }
        if self.accumulated >= ACCUMULATED.end {
            return true;
        }
        let drop = random.generator().random::<f64>() < probability;
        if drop {
            self.accumulated = 0.0;
        }
        drop
    }

    /// `pie_process_dequeue()`: a packet leaves that waited for `sojourn`.
    fn departed(&mut self, now: Time, sojourn: Duration, backlog: u64) {
        self.delay = if backlog == 0 {
            0.0
        } else {
            sojourn.as_secs_f64()
        };
        if let Some(last) = self.last_departure.replace(now) {
            self.burst = self.burst.saturating_sub(now - last);
        }
    }
}

/// Small probabilities are adjusted in small steps (RFC 8033 section 5.3).
pub(super) fn gain_scale(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 1.0 / 2048.0,
        p if p < 0.000_01 => 1.0 / 512.0,
        p if p < 0.000_1 => 1.0 / 128.0,
        p if p < 0.001 => 1.0 / 32.0,
        p if p < 0.01 => 1.0 / 8.0,
        p if p < 0.1 => 1.0 / 2.0,
        _ => 1.0,
    }
}

impl Pie {
    pub(crate) fn new(spec: PieSpec, rate: BitRate, seed: u64) -> Self {
        let algorithm = PieAlgorithm {
            ticks: Ticks::default(),
            control: Control::START,
            random: Random::new(seed),
        };
        Self::with(algorithm, spec, rate)
    }
}

impl PieAlgorithm {
    fn advance(&mut self, buffer: &Buffer<PieSpec>, now: Time) {
        let (spec, backlog) = (&buffer.spec, buffer.list.backlog().ip_bytes);
        let Self { ticks, control, .. } = self;
        ticks.advance(now, spec.tupdate, |_| {
            let before = *control;
            control.update(spec, backlog);
            *control != before
        });
    }
}

impl Algorithm for PieAlgorithm {
    type Spec = PieSpec;

    fn enqueue(
        &mut self,
        buffer: &mut Buffer<PieSpec>,
        now: Time,
        mut packet: Packet,
        _: Backlog,
        tally: &mut Tally,
    ) {
        self.advance(buffer, now);
        let backlog = buffer.list.backlog();
        if !buffer.fits(&packet) {
            self.control.accumulated = 0.0;
            tally.drop(DropCause::Overflow, &packet);
            return;
        }
        let size = packet.ip_bytes();
        let control = &mut self.control;
        if control.drops(&buffer.spec, backlog.ip_bytes, size, &mut self.random) {
            let may_mark = buffer.spec.ecn && control.probability <= MARK_UP_TO;
            if !(may_mark && packet.mark()) {
                control.accumulated = 0.0;
                tally.drop(DropCause::Pie, &packet);
                return;
            }
            tally.marked += 1;
        }
        buffer.list.push(packet);
    }

    fn dequeue(
        &mut self,
        buffer: &mut Buffer<PieSpec>,
        now: Time,
        _: &mut Tally,
    ) -> Option<Packet> {
        self.advance(buffer, now);
        let packet = buffer.list.pop()?;
        let backlog = buffer.list.backlog().ip_bytes;
        self.control.departed(now, now - packet.entered, backlog);
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::queue::sim::{Flow, reno, run, sparse};

    fn control(probability: f64, delay_ms: f64, before_ms: f64) -> Control {
        Control {
            probability,
            delay: delay_ms / 1e3,
            delay_before: before_ms / 1e3,
            burst: Duration::ZERO,
            ..Control::START
        }
    }

    #[test]
    fn the_probability_moves_as_computed_by_hand() {
        for (probability, delay, before, expected) in [
            // 0.125 × 15 ms + 1.25 × 10 ms = 0.014375, over 2048 from nothing, halved from 5 %.
            (0.0, 30.0, 20.0, 0.014375 / 2048.0),
            (0.05, 30.0, 20.0, 0.05 + 0.014375 / 2.0),
            (0.2, 30.0, 20.0, 0.214375),
            // 0.125 × 85 ms + 1.25 × 80 ms = 0.110625, at most 2 %; below 10 %, half of it.
            (0.2, 100.0, 20.0, 0.22),
            (0.09, 100.0, 20.0, 0.09 + 0.110625 / 2.0),
            // 0.125 × 285 ms = 0.0356; at most 2 %, and 2 % more beyond 250 ms.
            (0.2, 300.0, 300.0, 0.24),
            // Down by 0.125 × 15 ms, then by a 64th.
            (0.5, 0.0, 0.0, (0.5 - 0.001875) * 63.0 / 64.0),
            (0.0005, 0.0, 15.0, 0.0),
            (0.999, 300.0, 300.0, 1.0),
        ] {
            let mut control = control(probability, delay, before);
            control.update(&PieSpec::default(), 0);
            let error = (control.probability - expected).abs();
            assert!(
                error < 1e-12,
                "{probability} {delay} {before}: {}",
                control.probability
            );
            assert_eq!(control.delay_before, delay / 1e3);
        }
    }

    #[test]
    fn small_delays_with_packets_waiting_do_not_let_the_probability_decay() {
        let mut control = control(0.5, 0.0, 0.0);
        control.update(&PieSpec::default(), 1);
        assert!((control.probability - (0.5 - 0.001875)).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_dropped_in_a_burst_or_a_calm_or_a_short_queue() {
        let (spec, mut random) = (PieSpec::default(), Random::new(1));
        let late = Control {
            accumulated: 9.0,
            ..control(0.1, 30.0, 30.0)
        };
        let mut drops =
            |mut control: Control, backlog| control.drops(&spec, backlog, 1000, &mut random);
        assert!(drops(late, 10_000));
        assert!(!drops(
            Control {
                burst: Duration::from_nanos(1),
                ..late
            },
            10_000
        ));
        assert!(!drops(
            Control {
                delay: 0.0074,
                ..late
            },
            10_000
        ));
        assert!(drops(
            Control {
                delay: 0.0074,
                probability: 0.2,
                ..late
            },
            10_000
        ));
        assert!(!drops(late, 3027) && drops(late, 3028));
    }

    #[test]
    fn drops_keep_their_distance() {
        // At 10 %, the ninth packet after a drop is the first that may go (0.9 ≥ 0.85), and
        // from the 86th on every one does.
        let (spec, mut random) = (PieSpec::default(), Random::new(3));
        let mut control = control(0.1, 30.0, 30.0);
        let dropped: Vec<i32> = (0..10_000)
            .filter(|_| {
                let drop = control.drops(&spec, 10_000, 1000, &mut random);
                if drop {
                    control.accumulated = 0.0; // as a drop does
                }
                drop
            })
            .collect();
        let gaps: Vec<i32> = dropped.windows(2).map(|w| w[1] - w[0]).collect();
        assert_eq!(gaps.iter().min(), Some(&9));
        // 8 + a geometric number of mean 10: 18 with a standard deviation of 9.5 / √550; five.
        let mean = gaps.iter().sum::<i32>() as f64 / gaps.len() as f64;
        assert!((mean - 18.0).abs() < 2.1, "{mean}");
        let spec = PieSpec {
            bytemode: true,
            ..spec
        };
        let mut control = Control {
            accumulated: 0.84,
            ..control
        };
        assert!(!control.drops(&spec, 10_000, 151, &mut random));
        let by_hand = 0.84 + 0.1 * 151.0 / 1514.0;
        assert!((control.accumulated - by_hand).abs() < 1e-12);
    }

    #[test]
    fn the_burst_allowance_is_used_up_by_150_ms_of_departures() {
        let mut control = Control::START;
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        control.departed(ms(1000), Duration::from_millis(30), 5000);
        control.departed(ms(1149), Duration::from_millis(30), 5000);
        assert_eq!(
            (control.burst, control.delay),
            (Duration::from_millis(1), 0.030)
        );
        control.departed(ms(1151), Duration::from_millis(30), 0);
        assert_eq!((control.burst, control.delay), (Duration::ZERO, 0.0));
        // Calm for two updates with no probability left: bursts may pass again.
        control.update(&PieSpec::default(), 0);
        assert_eq!(control.burst, MAX_BURST);
    }

    #[test]
    fn holds_its_target() {
        let mut flows: Vec<Flow> = (0..5).map(|i| reno(i, 50)).collect();
        flows.push(sparse(9));
        for (pairs, ecn) in [
            (&[("rate", "20mbit"), ("queue", "pie")][..], 0),
            (
                &[("rate", "20mbit"), ("queue", "pie"), ("ecn", "true")][..],
                2,
            ),
        ] {
            flows.iter_mut().for_each(|flow| flow.ecn = ecn);
            for seed in 1..4 {
                let outcomes = run(pairs, &flows, 90, seed);
                let call = outcomes.last().unwrap().mean_wait_ms();
                assert!((12.0..18.0).contains(&call), "{call} ms");
                let bytes: u64 = outcomes.iter().map(|o| o.bytes).sum();
                assert!(bytes as f64 * 8.0 / 60.0 > 0.93 * 20e6, "{bytes} bytes");
                let (lost, marked) = outcomes
                    .iter()
                    .fold((0, 0), |s, o| (s.0 + o.lost, s.1 + o.marked));
                assert_eq!(
                    (lost > 0, marked > 0),
                    (ecn == 0, ecn == 2),
                    "{lost} {marked}"
                );
            }
        }
    }
}
