//! A line as a fluid with one queue a direction, reflectors behind it and the controller before it, in virtual time.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::VecDeque;
use std::ops::Range;

use plumb_model::direction::OneDirection;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use crate::shaping::follow::{CLEAR_S, Follow, Limits, PROBE_LOADED_S};

pub(super) const STEP_S: f64 = 0.01;
const TICK_S: f64 = 0.05;

#[derive(Clone, Copy)]
pub(super) struct Reflector {
    pub(super) base_s: f64,
    /// Mean of what comes to each answer's delay, with an exponential distribution.
    pub(super) jitter_s: f64,
    /// Share of the probes that are not answered.
    pub(super) loss: f64,
    /// What it adds by itself at a time; it does not answer where that is infinite.
    pub(super) trouble: fn(f64) -> f64,
}

/// A reflector that reports its own times, by a clock that is off.
#[derive(Clone, Copy)]
pub(super) struct Witness {
    pub(super) base_s: f64,
    /// Jitter as of a reflector, in each direction.
    pub(super) jitter_s: f64,
    pub(super) clock_off_s: f64,
    /// Seconds of its clock in a second, beyond one.
    pub(super) drift: f64,
    /// What it adds by itself to the forward direction.
    pub(super) trouble: fn(f64) -> f64,
}

/// A direction of a line that carries `line` and of which `demand` is wanted, both in bit/s over time.
#[derive(Clone, Copy)]
pub(super) struct Traffic<'a> {
    pub(super) line: &'a dyn Fn(f64) -> f64,
    pub(super) demand: &'a dyn Fn(f64) -> f64,
    pub(super) base_bps: f64,
    /// How long the line's own queue is at the most.
    pub(super) queue_s: f64,
    /// How long senders take to yield to the shaper: nothing where it stands before the line, a round trip where it stands behind.
    pub(super) lag_s: f64,
}

/// All of it.
pub(super) struct World<'a> {
    pub(super) up: Traffic<'a>,
    pub(super) down: Traffic<'a>,
    pub(super) reflectors: &'a [Reflector],
    pub(super) witness: Option<Witness>,
    pub(super) seconds: f64,
    pub(super) seed: u64,
}

/// What came of it.
pub(super) struct Came {
    /// What was queued in the line, in seconds, and the shaper's rate, at every step.
    pub(super) queued_s: Vec<f64>,
    pub(super) rates_bps: Vec<f64>,
    carried_bits: Vec<f64>,
    line_bits: Vec<f64>,
}

impl Came {
    /// 95th percentile of what was queued, from a time on.
    pub(super) fn p95(&self, from_s: f64) -> f64 {
        let mut queued = self.queued_s[(from_s / STEP_S) as usize..].to_vec();
        queued.sort_by(f64::total_cmp);
        queued[(queued.len() as f64 * 0.95) as usize]
    }

    /// Share of what the line could carry, from a time on.
    pub(super) fn used(&self, from_s: f64) -> f64 {
        self.used_in(from_s..self.rates_bps.len() as f64 * STEP_S)
    }

    /// The same of a time.
    pub(super) fn used_in(&self, times_s: Range<f64>) -> f64 {
        let sum = |bits: &[f64]| bits[steps(&times_s)].iter().sum::<f64>();
        sum(&self.carried_bits) / sum(&self.line_bits)
    }

    /// For how long in a time the rate was below that, though the line had no queue to speak of for so long before.
    pub(super) fn lowered_s(&self, times_s: Range<f64>, bps: f64, before_s: f64) -> f64 {
        let lowered = steps(&times_s).filter(|step| {
            let before = step - (before_s / STEP_S) as usize;
            let longest_s = self.queued_s[before..=*step]
                .iter()
                .copied()
                .fold(0.0, f64::max);
            longest_s <= CLEAR_S && self.rates_bps[*step] < bps
        });
        lowered.count() as f64 * STEP_S
    }

    pub(super) fn rate_at(&self, at_s: f64) -> f64 {
        self.rates_bps[(at_s / STEP_S) as usize]
    }

    /// The lowest rate of the shaper in a time.
    pub(super) fn least_bps(&self, times_s: Range<f64>) -> f64 {
        self.rates_bps[steps(&times_s)]
            .iter()
            .copied()
            .fold(f64::MAX, f64::min)
    }
}

fn steps(times_s: &Range<f64>) -> Range<usize> {
    (times_s.start / STEP_S) as usize..(times_s.end / STEP_S).round() as usize
}

/// A direction's queue.
#[derive(Default)]
struct Fluid {
    queue_bits: f64,
    passed_bits: f64,
    queued_s: f64,
    /// What the shaper allowed lately; the latest is last.
    allowed_bps: VecDeque<f64>,
    came: Option<Came>,
}

impl Fluid {
    fn step(&mut self, now_s: f64, traffic: &Traffic<'_>, rate_bps: f64, is_up: bool) {
        let line_bps = (traffic.line)(now_s);
        self.allowed_bps.push_back(rate_bps);
        if self.allowed_bps.len() as f64 > traffic.lag_s / STEP_S + 1.0 {
            self.allowed_bps.pop_front();
        }
        let allowed_bps = self.allowed_bps[0];
        let sent_bits = (traffic.demand)(now_s).min(allowed_bps) * STEP_S;
        let carried_bits = (self.queue_bits + sent_bits).min(line_bps * STEP_S);
        // What comes down has passed the line when the device counts it.
        self.passed_bits += if is_up { sent_bits } else { carried_bits };
        let left_bits = self.queue_bits + sent_bits - carried_bits;
        self.queue_bits = left_bits.min(line_bps * traffic.queue_s);
        self.queued_s = self.queue_bits / line_bps;
        let came = self.came.get_or_insert(Came {
            queued_s: Vec::new(),
            rates_bps: Vec::new(),
            carried_bits: Vec::new(),
            line_bits: Vec::new(),
        });
        came.queued_s.push(self.queued_s);
        came.rates_bps.push(rate_bps);
        came.carried_bits.push(carried_bits);
        came.line_bits.push(line_bps * STEP_S);
    }
}

/// Lets it go on.
pub(super) fn run(world: &World<'_>) -> [Came; 2] {
    let mut random = Pcg64::seed_from_u64(world.seed);
    let traffic = [world.up, world.down];
    let [up, down] = traffic.map(|traffic| Limits {
        least_bps: traffic.base_bps * 0.025,
        base_bps: traffic.base_bps,
        most_bps: traffic.base_bps * 20.0,
    });
    let reflectors = world.reflectors;
    let mut follow = Follow::new(up, down, reflectors.len());
    let mut fluids = [Fluid::default(), Fluid::default()];
    let mut next_tick = 0.0;
    let mut next_probes: Vec<f64> = (0..reflectors.len())
        .map(|number| number as f64 * PROBE_LOADED_S / reflectors.len() as f64)
        .collect();
    let mut answers: Vec<(f64, usize, f64, f64)> = Vec::new();
    let mut next_witness = 0.0;
    let mut witnessed: Vec<(f64, [f64; 4])> = Vec::new();
    for step in 0..(world.seconds / STEP_S) as usize {
        let now_s = step as f64 * STEP_S;
        let directions = [OneDirection::Up, OneDirection::Down];
        for (number, direction) in directions.into_iter().enumerate() {
            let rate_bps = follow.rate_bps(direction);
            fluids[number].step(now_s, &traffic[number], rate_bps, number == 0);
        }
        let queued_s = [fluids[0].queued_s, fluids[1].queued_s];
        let mut jitter = |mean_s: f64| -mean_s * (1.0 - random.random::<f64>()).ln();
        for (number, reflector) in reflectors.iter().enumerate() {
            if now_s < next_probes[number] {
                continue;
            }
            next_probes[number] = now_s + follow.probe_every_s();
            let jitter_s = jitter(reflector.jitter_s);
            let added_s = queued_s.iter().sum::<f64>() + jitter_s + (reflector.trouble)(now_s);
            let rtt_s = (reflector.base_s + added_s).max(0.0);
            // An exponential variable of mean one is below that with the probability of the loss.
            if rtt_s.is_finite() && jitter(1.0) >= -(1.0 - reflector.loss).ln() {
                answers.push((now_s + rtt_s, number, now_s, rtt_s));
            }
        }
        answers.retain(|(at, number, sent_s, rtt_s)| {
            if *at <= now_s {
                follow.answered(*number, *sent_s, *rtt_s);
            }
            *at > now_s
        });
        if let Some(witness) = world.witness.filter(|_| now_s >= next_witness) {
            next_witness = now_s + follow.probe_every_s();
            let half_s = witness.base_s / 2.0;
            let up_s = half_s + queued_s[0] + jitter(witness.jitter_s) + (witness.trouble)(now_s);
            let down_s = half_s + queued_s[1] + jitter(witness.jitter_s);
            let off_s = witness.clock_off_s + witness.drift * now_s;
            let told = [now_s, up_s + down_s, up_s + off_s, down_s - off_s];
            witnessed.push((now_s + up_s + down_s, told));
        }
        witnessed.retain(|(at, [sent_s, rtt_s, up_s, down_s])| {
            if *at <= now_s {
                follow.answered_by_direction(*sent_s, *rtt_s, *up_s, *down_s);
            }
            *at > now_s
        });
        if now_s >= next_tick {
            next_tick += TICK_S;
            follow.tick(now_s, fluids[0].passed_bits, fluids[1].passed_bits);
        }
    }
    fluids.map(|fluid| fluid.came.unwrap())
}
