//! The random numbers of cells: the same seed gives the same numbers.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A generator of a cell's own.
pub(crate) struct Random(Pcg64Mcg);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Evenly from 0 up to 1, which is not reached.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0.random()
    }

    /// True with this probability; draws a number in any case, so that a probability that is
    /// changed for a while does not shift what comes after.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// A whole number below two to the power of `exponent`, which is below 64.
    pub(crate) fn below_power_of_two(&mut self, exponent: u32) -> u64 {
        self.0.random::<u64>() & ((1 << exponent) - 1)
    }

    /// Evenly from 0 up to `end`, which is not reached; 0 when it is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        if end == 0 {
            return 0;
        }
        self.0.random_range(0..end)
    }

    /// From the exponential distribution with the mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        // 1 − u is never 0.
        -(1.0 - self.uniform()).ln()
    }

    /// From the normal distribution with the mean 0 and the standard deviation 1 (Box and
    /// Muller, 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// The generator, for other distributions.
    pub(crate) fn generator(&mut self) -> &mut Pcg64Mcg {
        &mut self.0
    }
}
