//! Times between the two captures in bounded memory: a thinned series for percentiles, the smallest and the largest of each
//! tenth of a second.

use std::collections::HashMap;

use super::pairs::FlowId;
use crate::table::Seeded;

/// Samples that are kept; when there are as many, every second one goes, and of the later ones only every second is taken.
const MOST_KEPT: usize = 1 << 20;
/// Smallest and largest ones that are kept; when there are as many, the times of which they are become twice as long.
const MOST_EXTREMES: usize = 1 << 18;
/// At first, in ns: clocks drift by 50 µs at most in it (RFC 5905, appendix A.5.5.6: 500 ppm).
const FIRST_WIDTH_NS: u64 = 100_000_000;

/// A packet that both captures have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Time of the first capture.
    pub(super) at_ns: u64,
    /// Clock of the second less the clock of the first, with the time on the path.
    pub(super) difference_ns: i64,
    pub(super) flow: FlowId,
}

/// Samples of all directions.
#[derive(Debug)]
pub(super) struct Delays {
    pub(super) kept: Vec<Sample>,
    count: u64,
    /// One in so many is kept: two to this power.
    stride: u32,
    pub(super) extremes: Vec<Sample>,
    /// How long the times are of which these are.
    pub(super) width_ns: u64,
    /// Of each direction: the number of the current time, its smallest and its largest.
    current: HashMap<FlowId, (u64, [Sample; 2]), Seeded>,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            count: 0,
            stride: 0,
            extremes: Vec::new(),
            width_ns: FIRST_WIDTH_NS,
            current: HashMap::default(),
        }
    }
}

impl Delays {
    pub(super) fn add(&mut self, sample: Sample) {
        let taken = |count: u64, stride: u32| count & ((1 << stride) - 1) == 0;
        if taken(self.count, self.stride) {
            if self.kept.len() >= MOST_KEPT {
                halve(&mut self.kept);
                self.stride += 1;
            }
            if taken(self.count, self.stride) {
                self.kept.push(sample);
            }
        }
        self.count += 1;
        let number = sample.at_ns / self.width_ns;
        let place = self.current.entry(sample.flow);
        let (current, [least, most]) = place.or_insert((number, [sample; 2]));
        if *current == number {
            if sample.difference_ns < least.difference_ns {
                *least = sample;
            }
            if sample.difference_ns > most.difference_ns {
                *most = sample;
            }
            return;
        }
        let ended = [*least, *most];
        (*current, *least, *most) = (number, sample, sample);
        self.extremes.extend(ended);
        if self.extremes.len() >= MOST_EXTREMES {
            self.widen();
        }
    }

    /// Ends the current times.
    pub(super) fn finish(&mut self) {
        let current = std::mem::take(&mut self.current);
        self.extremes
            .extend(current.into_values().flat_map(|(_, extremes)| extremes));
        self.extremes.sort_by_key(|sample| sample.at_ns);
    }

    /// Joins times two by two.
    #[cold]
    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let mut joined: HashMap<(FlowId, u64), [Sample; 2], Seeded> = HashMap::default();
        for sample in self.extremes.drain(..) {
            let key = (sample.flow, sample.at_ns / self.width_ns);
            let [least, most] = joined.entry(key).or_insert([sample; 2]);
            if sample.difference_ns < least.difference_ns {
                *least = sample;
            }
            if sample.difference_ns > most.difference_ns {
                *most = sample;
            }
        }
        self.extremes.extend(joined.into_values().flatten());
        // Of very many directions: some are given up.
        self.extremes.truncate(MOST_EXTREMES / 2);
    }
}

/// Every second one goes.
fn halve(samples: &mut Vec<Sample>) {
    let mut index = 0;
    samples.retain(|_| {
        index += 1;
        index % 2 == 1
    });
}
