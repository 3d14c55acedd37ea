//! One probe's outcome, and how samples of a minute are packed.

use std::time::Duration;

/// Seconds of a block of samples.
pub const BLOCK_S: i64 = 60;

/// Bytes of a packed sample: microseconds into its block, and its value.
const PACKED_BYTES: usize = 8;

/// A value is packed as a number of these where it is one: 100 ns of a time, of which up to 429 s fit.
const UNITS_PER_ONE: f64 = 1e7;

/// Marks, in the microseconds, which need 26 bits, a value that is packed as a number of 32 bits (IEEE 754).
const AS_NUMBER: u32 = 1 << 31;

/// Means a probe without an answer.
const LOST: u32 = u32::MAX;

/// What became of one probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// When it was sent, µs of the time of day since 1970 (UTC).
    pub sent_us: i64,
    /// What was measured, in the unit of its target; `None` where no answer came in time.
    pub value: Option<f64>,
}

impl Sample {
    /// A sample whose value is a time, with the precision of the database.
    pub fn timed(sent_us: i64, time: Option<Duration>) -> Self {
        let kept = |time: Duration| (time.as_secs_f64() * UNITS_PER_ONE).round() / UNITS_PER_ONE;
        Self {
            sent_us,
            value: time.map(kept),
        }
    }

    /// The minute since 1970 that it belongs to.
    pub fn minute(&self) -> i64 {
        self.sent_us.div_euclid(BLOCK_S * 1_000_000)
    }

    /// Its form within the block of its minute.
    pub(crate) fn packed(&self) -> [u8; PACKED_BYTES] {
        let offset = self.sent_us.rem_euclid(BLOCK_S * 1_000_000);
        let offset = u32::try_from(offset).unwrap_or_default();
        let (mark, value) = match self.value {
            None => (0, LOST),
            Some(value) => {
                let units = (value * UNITS_PER_ONE).round();
                // The cast saturates, and what does not fit differs then.
                match (units as u32) < LOST && f64::from(units as u32) / UNITS_PER_ONE == value {
                    true => (0, units as u32),
                    false => (AS_NUMBER, (value as f32).to_bits()),
                }
            }
        };
        let [a, b, c, d] = (offset | mark).to_le_bytes();
        let [e, f, g, h] = value.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }
}

/// The samples of a block, in the order in which they were written. Bytes that make no whole sample are left out.
pub(crate) fn unpacked(minute: i64, block: &[u8]) -> impl Iterator<Item = Sample> + '_ {
    let (whole, _) = block.as_chunks::<PACKED_BYTES>();
    whole.iter().map(move |&[a, b, c, d, e, f, g, h]| {
        let offset = u32::from_le_bytes([a, b, c, d]);
        let packed = u32::from_le_bytes([e, f, g, h]);
        let number = f64::from(f32::from_bits(packed));
        let value = match offset & AS_NUMBER {
            0 => (packed != LOST).then(|| f64::from(packed) / UNITS_PER_ONE),
            _ => number.is_finite().then_some(number),
        };
        Sample {
            sent_us: minute
                .saturating_mul(BLOCK_S * 1_000_000)
                .saturating_add((offset & !AS_NUMBER).into()),
            value,
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn samples_come_back_as_they_were(sent_us in 0i64..4_000_000_000_000_000, units in proptest::option::of(0u64..4_000_000_000)) {
            let sample = Sample::timed(sent_us, units.map(|units| Duration::from_nanos(units * 100)));
            let back: Vec<_> = unpacked(sample.minute(), &sample.packed()).collect();
            prop_assert_eq!(back, vec![sample]);
        }

        /// To seven digits, whatever their size.
        #[test]
        fn numbers_come_back(value in -1e12f64..1e12, scale in -9i32..0) {
            let value = value * 10f64.powi(scale);
            let sample = Sample { sent_us: 59_999_999, value: Some(value) };
            let back: Vec<_> = unpacked(0, &sample.packed()).collect();
            let [Sample { sent_us: 59_999_999, value: Some(read) }] = back[..] else {
                panic!("{back:?}");
            };
            prop_assert!((read - value).abs() <= value.abs() * 1e-7, "{} {}", read, value);
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100), minute: i64) {
            prop_assert_eq!(unpacked(minute, &bytes).count(), bytes.len() / 8);
        }
    }
}
