//! The random numbers of cells: the same seed gives the same numbers.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A generator of a cell's own.
pub(crate) struct Random(Pcg64Mcg);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// True with this probability; draws a number in any case, so that a probability that is
    /// changed for a while does not shift what comes after.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.0.random::<f64>() < probability
    }

    /// The generator, to draw from distributions with.
    pub(crate) fn generator(&mut self) -> &mut Pcg64Mcg {
        &mut self.0
    }
}
