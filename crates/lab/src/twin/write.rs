//! Quantities as a scenario writes them.

/// A rate of four digits, which is more than was measured.
pub(super) fn rate(bps: f64) -> String {
    let rounded = four_digits(bps).max(1.0);
    for (scale, unit) in [(1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit")] {
        if rounded >= scale {
            return format!("{}{unit}", digits(rounded / scale));
        }
    }
    format!("{rounded:.0}bit")
}

/// A time of four digits, to the microsecond.
pub(super) fn time(seconds: f64) -> String {
    let us = four_digits(seconds.max(0.0) * 1e6).round();
    match us {
        us if us >= 1e6 => format!("{}s", digits(us / 1e6)),
        us if us >= 1e3 => format!("{}ms", digits(us / 1e3)),
        us => format!("{us:.0}us"),
    }
}

/// A share of four digits, in percent.
pub(super) fn percent(ratio: f64) -> String {
    format!("{}%", digits(four_digits(ratio * 100.0)))
}

/// Bytes without a fraction.
pub(super) fn bytes(bytes: f64) -> String {
    format!("{:.0}B", bytes.max(1.0))
}

/// With what is behind the point, up to the sixth digit and without zeros at the end.
fn digits(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0');
    text.trim_end_matches('.').to_owned()
}

fn four_digits(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(3 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::units::{BitRate, ByteCount, parse_duration};
    use proptest::prelude::*;

    #[test]
    fn quantities_read_as_people_write_them() {
        assert_eq!(rate(19_687_412.0), "19.69mbit");
        assert_eq!(rate(999.0), "999bit");
        assert_eq!(time(0.009_123_4), "9.123ms");
        assert_eq!(time(2.5), "2.5s");
        assert_eq!(percent(0.0116), "1.16%");
        assert_eq!(bytes(64_000.4), "64000B");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_nearly_the_same(
            bps in 1.0e3..1.0e11f64, seconds in 0.0..1.0e4f64, amount in 1.0..1.0e9f64,
        ) {
            let read: BitRate = rate(bps).parse().unwrap();
            prop_assert!((read.bps() as f64 / bps - 1.0).abs() < 1e-3);
            let read = parse_duration(&time(seconds)).unwrap().as_secs_f64();
            prop_assert!((read - seconds).abs() <= 1e-6 + seconds * 1e-3);
            let read: ByteCount = bytes(amount).parse().unwrap();
            prop_assert!((read.bytes() as f64 - amount).abs() <= 0.5);
        }
    }
}
