//! DOCSIS-PIE (RFC 8034, appendix A): the PIE of cable modems. The modem knows the line's rate and
//! takes the delay from it; small packets are dropped less often; it stays off until a third of
//! the buffer was used; no ECN. The RFC's second, higher rate of a modem's token bucket
//! (PEAK_RATE) is not modelled: the line has one rate.

use std::time::Duration;

use plumb_model::units::{BitRate, duration_text};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::single::{Algorithm, Bounded, Buffer, Single};
use super::ticks::Ticks;
use crate::backlog::Backlog;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::random::Random;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "docsis_pie", limit = "250ms" }`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DocsisPieSpec {
    /// What may wait: the modem's buffer, BUFFER_SIZE.
    pub limit: Limit,
    /// The delay to hold, LATENCY_TARGET.
    #[serde(with = "duration_text")]
    pub target: Duration,
}

impl Default for DocsisPieSpec {
    fn default() -> Self {
        Self {
            // RFC 8034 leaves the buffer to the operator; this is ours.
            limit: Limit::Time(Duration::from_millis(250)),
            target: Duration::from_millis(10),
        }
    }
}

impl Settings for DocsisPieSpec {}

impl Bounded for DocsisPieSpec {
    fn limit(&self) -> Limit {
        self.limit
    }
}

/// The constants of RFC 8034 appendix A.1, by its names; times in seconds, sizes in bytes.
const A: f64 = 0.25;
const B: f64 = 2.5;
const INTERVAL: Duration = Duration::from_millis(16);
const BURST_RESET_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_BURST: Duration = Duration::from_millis(142);
const MEAN_PKTSIZE: u64 = 1024;
const MIN_PKTSIZE: u64 = 64;
const PROB_LOW: f64 = 0.85;
const PROB_HIGH: f64 = 8.5;
const LATENCY_LOW: f64 = 0.005;
const LATENCY_HIGH: f64 = 0.200;

pub(crate) type DocsisPie = Single<DocsisPieAlgorithm>;

pub(crate) struct DocsisPieAlgorithm {
    ticks: Ticks,
    control: Control,
    random: Random,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Until a third of the buffer is used.
    Inactive,
    /// Drops may come, and the first ends it.
    Quiescent,
    Active,
}

/// The controller's variables; delays in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Control {
    state: State,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: f64,
    burst_allowance: Duration,
    burst_reset: Duration,
}

impl Control {
    const START: Self = Self {
        state: State::Inactive,
        drop_prob: 0.0,
        accu_prob: 0.0,
        qdelay_old: 0.0,
        burst_allowance: Duration::ZERO,
        burst_reset: Duration::ZERO,
    };

    /// `calculate_drop_prob()` of appendix A.2.2.
    fn update(&mut self, target: f64, qdelay: f64) {
        if !self.burst_allowance.is_zero() {
            self.drop_prob = 0.0;
            self.burst_allowance = self.burst_allowance.saturating_sub(INTERVAL);
        } else {
            let mut p = A * (qdelay - target) + B * (qdelay - self.qdelay_old);
            p *= gain_scale(self.drop_prob);
            if self.drop_prob >= 0.1 && p > 0.02 {
                p = 0.02;
            }
            self.drop_prob += p;
            if qdelay < LATENCY_LOW && self.qdelay_old < LATENCY_LOW {
                self.drop_prob *= 0.98;
            } else if qdelay > LATENCY_HIGH {
                self.drop_prob += 0.02;
            }
            let most = PROB_LOW * MEAN_PKTSIZE as f64 / MIN_PKTSIZE as f64;
            self.drop_prob = self.drop_prob.clamp(0.0, most);
        }
        let calm = qdelay < 0.5 * target
            && self.qdelay_old < 0.5 * target
            && self.drop_prob == 0.0
            && self.burst_allowance.is_zero();
        match self.state {
            State::Active if calm => {
                self.state = State::Quiescent;
                self.burst_reset = Duration::ZERO;
            }
            State::Quiescent if calm => {
                self.burst_reset += INTERVAL;
                if self.burst_reset > BURST_RESET_TIMEOUT {
                    self.burst_reset = Duration::ZERO;
                    self.state = State::Inactive;
                }
            }
            State::Quiescent => self.burst_reset = Duration::ZERO,
            State::Active | State::Inactive => {}
        }
        self.qdelay_old = qdelay;
    }

    /// `drop_early()` of appendix A.2.1, for a packet of `size` IP bytes that comes to a queue of
    /// `backlog`; `roomy` while less than a third of the buffer is used.
    fn drop_early(
        &mut self,
        target: f64,
        size: u64,
        backlog: u64,
        roomy: bool,
        random: &mut Random,
    ) -> bool {
        if !self.burst_allowance.is_zero() {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        if self.state == State::Inactive {
            if roomy {
                return false;
            }
            self.state = State::Quiescent;
        }
        let p1 = (self.drop_prob * size as f64 / MEAN_PKTSIZE as f64).min(PROB_LOW);
        self.accu_prob += p1;
        let calm = self.qdelay_old < 0.5 * target && self.drop_prob < 0.2;
        if calm || backlog <= 2 * MEAN_PKTSIZE || self.accu_prob < PROB_LOW {
            return false;
        }
        if self.accu_prob < PROB_HIGH && random.generator().random::<f64>() > p1 {
            return false;
        }
        self.accu_prob = 0.0;
        if self.state == State::Quiescent {
            self.state = State::Active;
            self.burst_allowance = MAX_BURST;
        }
        true
    }
}

/// Small probabilities are adjusted in small steps, and those above one, which small packets
/// need, in large ones.
fn gain_scale(probability: f64) -> f64 {
    match probability {
        p if p < 1.0 => super::pie::gain_scale(p) * if p < 0.1 { 1.0 } else { 2.0 },
        p if p < 10.0 => 8.0,
        _ => 32.0,
    }
}

impl DocsisPie {
    pub(crate) fn new(spec: DocsisPieSpec, rate: BitRate, seed: u64) -> Self {
        let algorithm = DocsisPieAlgorithm {
            ticks: Ticks::default(),
            control: Control::START,
            random: Random::new(seed),
        };
        Self::with(algorithm, spec, rate)
    }
}

impl DocsisPieAlgorithm {
    fn advance(&mut self, buffer: &Buffer<DocsisPieSpec>, now: Time) {
        let bits = buffer.list.backlog().wire_bytes as f64 * 8.0;
        let qdelay = bits / buffer.rate.bps().max(1) as f64;
        let Self { ticks, control, .. } = self;
        ticks.advance(now, INTERVAL, |_| {
            let before = *control;
            control.update(buffer.spec.target.as_secs_f64(), qdelay);
            *control != before
        });
    }
}

impl Algorithm for DocsisPieAlgorithm {
    type Spec = DocsisPieSpec;

    fn enqueue(
        &mut self,
        buffer: &mut Buffer<DocsisPieSpec>,
        now: Time,
        packet: Packet,
        _: Backlog,
        tally: &mut Tally,
    ) {
        self.advance(buffer, now);
        let backlog = buffer.list.backlog();
        if !buffer.fits(&packet) {
            self.control.accu_prob = 0.0;
            tally.drop(DropCause::Overflow, &packet);
            return;
        }
        let roomy = buffer.allows(backlog + backlog + backlog);
        let drop = self.control.drop_early(
            buffer.spec.target.as_secs_f64(),
            packet.ip_bytes(),
            backlog.ip_bytes,
            roomy,
            &mut self.random,
        );
        if drop {
            tally.drop(DropCause::Pie, &packet);
        } else {
            buffer.list.push(packet);
        }
    }

    fn dequeue(
        &mut self,
        buffer: &mut Buffer<DocsisPieSpec>,
        now: Time,
        _: &mut Tally,
    ) -> Option<Packet> {
        self.advance(buffer, now);
        buffer.list.pop()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::queue::sim::{Flow, reno, run, sparse};

    const TARGET: f64 = 0.010;

    fn control(state: State, drop_prob: f64, qdelay_old: f64) -> Control {
        Control {
            state,
            drop_prob,
            qdelay_old,
            ..Control::START
        }
    }

    #[test]
    fn the_probability_moves_as_computed_by_hand() {
        for (drop_prob, old, qdelay, expected) in [
            // 0.25 × 10 ms + 2.5 × 10 ms = 0.0275.
            (0.0, 0.010, 0.020, 0.0275 / 2048.0),
            (0.05, 0.010, 0.020, 0.05 + 0.0275 / 2.0),
            (0.2, 0.010, 0.020, 0.22),
            // Down by 0.25 × 10 ms, doubled, and 2 % of the rest.
            (0.5, 0.0, 0.0, (0.5 - 0.005) * 0.98),
            // 0.25 × 5 ms: below 5 ms twice is calm, 5 ms is not.
            (0.05, 0.005, 0.005, 0.05 - 0.00125 / 2.0),
            (0.2, 0.3, 0.3, 0.24),
            (13.6, 0.3, 0.3, 13.6),
        ] {
            let mut control = control(State::Active, drop_prob, old);
            control.update(TARGET, qdelay);
            let error = (control.drop_prob - expected).abs();
            assert!(
                error < 1e-12,
                "{drop_prob} {old} {qdelay}: {}",
                control.drop_prob
            );
        }
    }

    #[test]
    fn is_off_until_a_third_of_the_buffer_was_used_and_again_after_a_second_of_calm() {
        let mut random = Random::new(1);
        let mut control = Control {
            accu_prob: 9.0,
            ..control(State::Inactive, 0.3, 0.020)
        };
        let mut drop = |control: &mut Control, roomy| {
            control.drop_early(TARGET, 1024, 9000, roomy, &mut random)
        };
        assert!(!drop(&mut control, true));
        assert_eq!(control.state, State::Inactive);
        // The first drop begins the burst: 142 ms without drops, nine updates.
        assert!(drop(&mut control, false));
        assert_eq!(
            (control.state, control.burst_allowance),
            (State::Active, MAX_BURST)
        );
        assert!(!drop(&mut control, false));
        for _ in 0..9 {
            assert!(!control.burst_allowance.is_zero());
            control.update(TARGET, 0.0);
        }
        assert_eq!(
            (control.burst_allowance, control.drop_prob),
            (Duration::ZERO, 0.0)
        );
        assert_eq!(control.state, State::Quiescent);
        // 63 updates of 16 ms are the first that exceed a second.
        for _ in 0..62 {
            control.update(TARGET, 0.0);
        }
        assert_eq!(control.state, State::Quiescent);
        control.update(TARGET, 0.0);
        assert_eq!(control.state, State::Inactive);
    }

    #[test]
    fn small_packets_are_spared_in_proportion() {
        let mut random = Random::new(1);
        let mut count = |size| {
            let mut control = control(State::Active, 0.2, 0.020);
            (0..10_000)
                .filter(|_| control.drop_early(TARGET, size, 9000, false, &mut random))
                .count() as f64
        };
        // A gap of n ≥ 0.85 / p1 packets, then a geometric number: 4 + 5 for 1024 bytes (the
        // fifth is the first that may go), 67 + 80 for 64 bytes. Five standard deviations.
        let (large, small) = (count(1024), count(64));
        assert!(
            (large - 10_000.0 / 9.0).abs() < 5.0 * 4.5 / 9.0 * (10_000.0f64 / 9.0).sqrt(),
            "{large}"
        );
        assert!(
            (small - 10_000.0 / 147.0).abs() < 5.0 * 80.0 / 147.0 * (10_000.0f64 / 147.0).sqrt(),
            "{small}"
        );
    }

    #[test]
    fn holds_its_target() {
        let mut flows: Vec<Flow> = (0..5).map(|i| reno(i, 50)).collect();
        flows.push(sparse(9));
        let pairs = [
            ("rate", "20mbit"),
            ("framing", "docsis"),
            ("queue", "docsis_pie"),
        ];
        for seed in 1..4 {
            let outcomes = run(&pairs, &flows, 90, seed);
            let call = outcomes.last().unwrap().mean_wait_ms();
            assert!((8.0..13.0).contains(&call), "{call} ms");
            let bytes: u64 = outcomes.iter().map(|o| o.bytes).sum();
            assert!(bytes as f64 * 8.0 / 60.0 > 0.9 * 20e6, "{bytes} bytes");
        }
    }
}
