//! Times on the wire: NTP's 64 bits (RFC 5905, section 6) or PTP's truncated 64 (IEEE 1588-2008),
//! distinguished by the error estimate beside them (RFC 8762, section 4.2.1).

use std::time::Duration;

/// Seconds from NTP's epoch, 1900, to Unix's, 1970 (RFC 5905, figure 4).
const NTP_TO_UNIX_S: i64 = 2_208_988_800;

const NS: i64 = 1_000_000_000;

/// How a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeFormat {
    /// Seconds since 1900 and a binary fraction. The era is the one that lies between 1968 and
    /// 2104 (RFC 4330, section 3).
    Ntp,
    /// Seconds since 1970 and nanoseconds. The standard counts seconds of TAI, which leads UTC by
    /// 37 s; they are given here as they came.
    Ptp,
}

impl TimeFormat {
    /// The eight bytes of a time in ns since 1970.
    pub fn write(self, ns: i64) -> [u8; 8] {
        let (seconds, rest) = (ns.div_euclid(NS), ns.rem_euclid(NS));
        let (seconds, fraction) = match self {
            // Rounded, so that reading it gives the same nanosecond; the fraction of the last
            // one is still below a whole second.
            Self::Ntp => (
                seconds.wrapping_add(NTP_TO_UNIX_S),
                ((rest << 32) + NS / 2) / NS,
            ),
            Self::Ptp => (seconds, rest),
        };
        // Both have 32 bits for the seconds: the era is left out.
        (((seconds as u32 as u64) << 32) | (fraction as u64 & u64::from(u32::MAX))).to_be_bytes()
    }

    /// The time in ns since 1970.
    pub fn read(self, bytes: [u8; 8]) -> i64 {
        let word = u64::from_be_bytes(bytes);
        let (seconds, fraction) = ((word >> 32) as i64, (word & u64::from(u32::MAX)) as i64);
        match self {
            Self::Ntp => {
                // Without the top bit it is a time of the era that begins in 2036.
                let era = if seconds >> 31 == 0 { 1 << 32 } else { 0 };
                let ns = (i128::from(fraction) * i128::from(NS) + (1 << 31)) >> 32;
                (seconds + era - NTP_TO_UNIX_S) * NS + ns as i64
            }
            Self::Ptp => seconds * NS + fraction,
        }
    }
}

/// How far a clock may be off (RFC 4656, section 4.1.2; RFC 8762, section 4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorEstimate {
    /// Whether the clock is synchronised to UTC by an external source.
    pub synchronised: bool,
    /// How the time beside it is written.
    pub format: TimeFormat,
    /// The error is `multiplier` · 2^(`scale` - 32) seconds; six bits.
    pub scale: u8,
    /// Never zero: zero means that there is no time.
    pub multiplier: u8,
}

impl ErrorEstimate {
    /// Of a clock that is off by at most `error`; rounded up.
    pub fn new(synchronised: bool, error: Duration) -> Self {
        let mut multiplier = (error.as_nanos() << 32).div_ceil(NS as u128);
        let mut scale = 0;
        while multiplier > u128::from(u8::MAX) && scale < 63 {
            multiplier = multiplier.div_ceil(2);
            scale += 1;
        }
        Self {
            synchronised,
            format: TimeFormat::Ntp,
            scale,
            multiplier: u8::try_from(multiplier).unwrap_or(u8::MAX).max(1),
        }
    }

    /// The error in seconds; `None` where the multiplier is zero and says that the time is none.
    pub fn seconds(self) -> Option<f64> {
        (self.multiplier != 0)
            .then(|| f64::from(self.multiplier) * 2f64.powi(i32::from(self.scale) - 32))
    }

    pub(crate) fn write(self) -> [u8; 2] {
        let synchronised = u8::from(self.synchronised) << 7;
        let ptp = u8::from(self.format == TimeFormat::Ptp) << 6;
        [synchronised | ptp | (self.scale & 0x3f), self.multiplier]
    }

    pub(crate) fn read([head, multiplier]: [u8; 2]) -> Self {
        Self {
            synchronised: head & 0x80 != 0,
            format: if head & 0x40 == 0 {
                TimeFormat::Ntp
            } else {
                TimeFormat::Ptp
            },
            scale: head & 0x3f,
            multiplier,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times_are_written_as_the_rfcs_have_them() {
        // RFC 5905, figure 4: the first day of Unix, and of the second era.
        assert_eq!(
            TimeFormat::Ntp.write(0),
            [0x83, 0xaa, 0x7e, 0x80, 0, 0, 0, 0]
        );
        assert_eq!(TimeFormat::Ntp.write(2_085_978_496 * NS), [0; 8]);
        assert_eq!(
            TimeFormat::Ntp.write(NS / 2),
            [0x83, 0xaa, 0x7e, 0x80, 0x80, 0, 0, 0]
        );
        assert_eq!(TimeFormat::Ptp.write(NS + 2), [0, 0, 0, 1, 0, 0, 0, 2]);
    }

    #[test]
    fn an_error_is_never_understated() {
        let millisecond = ErrorEstimate::new(true, Duration::from_millis(1));
        assert!(
            (0.001..0.00101).contains(&millisecond.seconds().unwrap()),
            "{millisecond:?}"
        );
        let none = ErrorEstimate::new(false, Duration::ZERO);
        assert!(none.seconds().unwrap() > 0.0);
        let ages = ErrorEstimate::new(false, Duration::from_secs(1 << 40));
        assert!(ages.seconds().unwrap() > 1e11);
        assert_eq!(
            ErrorEstimate {
                multiplier: 0,
                ..none
            }
            .seconds(),
            None
        );
    }

    proptest! {
        #[test]
        fn times_are_read_as_written(ns in -60_000_000 * NS..4_233_000_000 * NS) {
            prop_assert_eq!(TimeFormat::Ntp.read(TimeFormat::Ntp.write(ns)), ns);
            if ns >= 0 {
                prop_assert_eq!(TimeFormat::Ptp.read(TimeFormat::Ptp.write(ns)), ns);
            }
        }

        #[test]
        fn any_bytes_are_a_time_and_an_error(bytes: [u8; 8], estimate: [u8; 2]) {
            let estimate = ErrorEstimate::read(estimate);
            prop_assert_eq!(ErrorEstimate::read(estimate.write()), estimate);
            let _ = estimate.format.read(bytes);
        }
    }
}
