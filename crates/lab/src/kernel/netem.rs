//! netem(8): delay, loss, duplicates and corruption.

use std::time::Duration;

use plumb_link::cell::corrupt::CorruptSpec;
use plumb_link::cell::delay::DelaySpec;
use plumb_link::cell::delay::distribution::Distribution;
use plumb_link::cell::duplicate::DuplicateSpec;
use plumb_link::cell::loss::bernoulli::BernoulliSpec;
use plumb_link::cell::loss::gilbert_elliott::GilbertElliottSpec;
use plumb_link::cell::loss::markov4::Markov4Spec;
use plumb_link::spec::CellSpec;

use super::line::Line;
use super::words::{micros, words};

/// The fastest that a device hands packets to netem: about what one processor sends through a
/// veth pair packet by packet.
const MOST_PACKETS_PER_S: f64 = 1e6;

/// Packets that netem may hold beyond what it must: netem's own default for all of them.
const HEADROOM_PACKETS: f64 = 1000.0;

/// The smallest frame of an Ethernet on the line, with preamble and gap, in bits.
const SMALLEST_FRAME_BITS: f64 = 84.0 * 8.0;

/// What netem is to do. Where all is zero it is left out, because a netem without settings still queues.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Netem {
    /// Delay of every packet.
    pub delay: Duration,
    /// Its variation: uniform in delay ± jitter unless a distribution is named.
    pub jitter: Duration,
    /// How `jitter` is distributed; uniformly when empty.
    pub distribution: &'static str,
    /// Which packets are lost.
    pub loss: Loss,
    /// Share of packets sent twice, 0…1.
    pub duplicate_ratio: f64,
    /// Share of packets in which one bit is turned, 0…1.
    pub corrupt_ratio: f64,
    /// Share of packets sent at once, without the delay, 0…1.
    pub reorder_ratio: f64,
}

/// netem's models of loss; all numbers are probabilities, 0…1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// Every packet with the same one.
    Random(f64),
    /// Gilbert and Elliott's: p, r, 1−h, 1−k.
    Gemodel([f64; 4]),
    /// Four states: p13, p31, p32, p23, p14.
    State([f64; 5]),
}

impl Default for Loss {
    fn default() -> Self {
        Self::Random(0.0)
    }
}

impl Loss {
    /// The loss that a cell is, if netem has it.
    fn of(cell: &CellSpec) -> Option<Self> {
        // Taken apart whole, so that no setting is passed over.
        match cell {
            CellSpec::Bernoulli(BernoulliSpec { ratio }) => Some(Self::Random(ratio.value())),
            CellSpec::GilbertElliott(GilbertElliottSpec {
                p,
                r,
                loss_good,
                loss_bad,
            }) => Some(Self::Gemodel(
                [p, r, loss_bad, loss_good].map(|ratio| ratio.value()),
            )),
            CellSpec::Markov4(Markov4Spec {
                p13,
                p31,
                p32,
                p23,
                p14,
            }) => Some(Self::State(
                [p13, p31, p32, p23, p14].map(|ratio| ratio.value()),
            )),
            _ => None,
        }
    }

    /// Both, one behind the other.
    fn then(self, next: Self) -> Result<Self, String> {
        match (self, next) {
            (Self::Random(0.0), next) => Ok(next),
            // What one lets pass, the next may lose.
            (Self::Random(one), Self::Random(next)) => {
                Ok(Self::Random(1.0 - (1.0 - one) * (1.0 - next)))
            }
            _ => Err("netem has one model of loss, and this is the second".to_owned()),
        }
    }
}

impl Netem {
    /// Whether it does nothing to any packet.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Another delay behind those that it has.
    pub(super) fn add_delay(&mut self, spec: &DelaySpec) -> Result<(), String> {
        let DelaySpec {
            delay,
            jitter,
            distribution,
            reordering,
        } = spec;
        self.delay += *delay;
        let sampled = matches!(
            distribution,
            Distribution::File(_) | Distribution::Samples(_)
        );
        if jitter.is_zero() && !sampled {
            return Ok(());
        }
        if !self.jitter.is_zero() {
            return Err("netem varies one delay, and this is the second".to_owned());
        }
        if !reordering {
            return Err(
                "netem lets packets overtake each other when their delay varies, and this cell does not (reordering = true would)".to_owned(),
            );
        }
        self.jitter = *jitter;
        self.distribution = match distribution {
            Distribution::Uniform => "",
            Distribution::Normal => "normal",
            Distribution::Pareto => "pareto",
            Distribution::File(_) | Distribution::Samples(_) => {
                return Err("netem's delays come from its own tables, not from samples".to_owned());
            }
        };
        Ok(())
    }

    /// Another loss behind those that it has.
    pub(super) fn add_loss(&mut self, cell: &CellSpec) -> Result<(), String> {
        let loss = Loss::of(cell).ok_or("netem has no such loss")?;
        self.loss = self.loss.then(loss)?;
        Ok(())
    }

    pub(super) fn add_duplicates(&mut self, spec: &DuplicateSpec) -> Result<(), String> {
        let DuplicateSpec { ratio } = spec;
        if self.duplicate_ratio > 0.0 {
            return Err("netem duplicates once".to_owned());
        }
        self.duplicate_ratio = ratio.value();
        Ok(())
    }

    pub(super) fn add_corruption(&mut self, spec: &CorruptSpec) -> Result<(), String> {
        let CorruptSpec { ratio } = spec;
        if self.corrupt_ratio > 0.0 {
            return Err("netem corrupts once".to_owned());
        }
        self.corrupt_ratio = ratio.value();
        Ok(())
    }

    /// How many packets it must be able to hold. netem drops what is beyond without a word, and
    /// its default is 1000 packets, 60 ms at 200 Mbit/s.
    ///
    /// Before a line it is enough to take in twice the line's rate in the smallest frames: what
    /// comes faster for longer than the delay would fill the line's queue anyway. Kernels before
    /// 6.13 count what waits in the queue inside as well.
    pub fn limit(&self, line: Option<&Line>) -> u64 {
        let arrivals = line.map_or(MOST_PACKETS_PER_S, |line| {
            (2.0 * line.rate.bps() as f64 / SMALLEST_FRAME_BITS).min(MOST_PACKETS_PER_S)
        });
        let held = arrivals * (self.delay + self.jitter).as_secs_f64();
        let inside = line.map_or(0, |line| line.queue.limit_packets());
        // The kernel's limit is 32 bits wide.
        ((held + HEADROOM_PACKETS) as u64)
            .saturating_add(inside)
            .min(u64::from(u32::MAX))
    }

    pub(super) fn arguments(&self, limit: u64) -> Vec<String> {
        let mut arguments = words(&format!("netem limit {limit}"));
        if !self.delay.is_zero() || !self.jitter.is_zero() {
            arguments.extend(words(&format!("delay {}", micros(self.delay))));
            if !self.jitter.is_zero() {
                arguments.push(micros(self.jitter));
                if !self.distribution.is_empty() {
                    arguments.extend(words(&format!("distribution {}", self.distribution)));
                }
            }
        }
        let (model, shares) = match &self.loss {
            Loss::Random(share) => ("random", std::slice::from_ref(share)),
            Loss::Gemodel(shares) => ("gemodel", &shares[..]),
            Loss::State(shares) => ("state", &shares[..]),
        };
        for (what, shares) in [
            (format!("loss {model}"), shares),
            ("duplicate".to_owned(), &[self.duplicate_ratio][..]),
            ("corrupt".to_owned(), &[self.corrupt_ratio][..]),
            ("reorder".to_owned(), &[self.reorder_ratio][..]),
        ] {
            if shares.iter().any(|share| *share > 0.0) {
                arguments.extend(words(&what));
                // The kernel keeps 32 bits of it; nine digits are as many.
                arguments.extend(shares.iter().map(|share| format!("{:.9}%", share * 100.0)));
            }
        }
        arguments
    }
}
