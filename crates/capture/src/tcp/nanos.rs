//! A time that may be unknown, in eight bytes: a connection has many.

use std::num::NonZeroU64;

/// Nanoseconds that are known, or not. The largest number, of 584 years, means the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Nanos(Option<NonZeroU64>);

impl Nanos {
    pub(super) fn known(ns: u64) -> Self {
        Self(NonZeroU64::new(!ns).or(Some(NonZeroU64::MIN)))
    }

    #[inline]
    pub(super) fn get(self) -> Option<u64> {
        self.0.map(|inverted| !inverted.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_given_back() {
        for ns in [0, 1, 1_700_000_000_000_000_000, u64::MAX - 1] {
            assert_eq!(Nanos::known(ns).get(), Some(ns));
        }
        assert_eq!(Nanos::known(u64::MAX).get(), Some(u64::MAX - 1));
        assert_eq!(Nanos::default().get(), None);
        assert_eq!(size_of::<Nanos>(), 8);
    }
}
