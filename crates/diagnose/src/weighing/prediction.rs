//! What a cause says of what else is seen where it is there.

pub use super::observable::Observable;

/// What something seen adds to a cause's odds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    pub of: Observable,
    /// Bits that it adds where it was seen.
    pub present_bits: f64,
    /// Bits that it adds where it is known to be absent.
    pub absent_bits: f64,
}

/// How strongly something speaks for or against a cause: so many times as often seen with it as without it.
pub(crate) mod strength {
    /// Twice as often, which is one bit.
    pub(crate) const WEAK: f64 = 1.0;
    /// Four times as often: two bits.
    pub(crate) const MODERATE: f64 = 2.0;
    /// Sixteen times as often: four bits.
    pub(crate) const STRONG: f64 = 4.0;
}

impl Prediction {
    /// A cause that brings it about.
    pub(crate) const fn likely(of: Observable, bits: f64) -> Self {
        Self {
            of,
            present_bits: bits,
            absent_bits: -bits,
        }
    }

    /// A cause under which it is seldom seen.
    pub(crate) const fn unlikely(of: Observable, bits: f64) -> Self {
        Self {
            of,
            present_bits: -bits,
            absent_bits: bits,
        }
    }

    /// The same where only its presence says something.
    pub(crate) const fn if_present(self) -> Self {
        Self {
            absent_bits: 0.0,
            ..self
        }
    }
}
