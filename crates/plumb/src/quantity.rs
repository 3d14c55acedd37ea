//! Times and rates on the command line. Every option of every verb reads them here.

use std::time::Duration;

use plumb_model::units::{BitRate, ByteCount, parse_duration};

/// How a time is written, for errors.
pub(crate) const TIMES: &str = "write a time as 5, 5s, 250ms or 2m";

/// How a rate is written, for errors.
pub(crate) const RATES: &str = "write a rate as 20mbit, 20Mbit/s, 20M or 10G";

/// A time; a bare number is seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let written = match text.trim().parse::<f64>() {
        Ok(number) => Duration::try_from_secs_f64(number).ok(),
        Err(_) => parse_duration(text).ok(),
    };
    written.ok_or_else(|| TIMES.to_owned())
}

/// A time above zero.
pub(crate) fn time_above_zero(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err(format!("a time above zero is needed: {TIMES}")),
        time => Ok(time),
    }
}

/// A time of `least` or more; `why` is said of a shorter one.
pub(crate) fn time_from(
    least: Duration,
    why: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| match time(text)? {
        time if time < least => Err(why.to_owned()),
        time => Ok(time),
    }
}

/// The round trip of a path, with its unit: a number alone is milliseconds to most people, and seconds to other options.
pub(crate) fn round_trip(text: &str) -> Result<Duration, String> {
    let number = text.trim();
    match time(text)? {
        time if time > Duration::ZERO && number.parse::<f64>().is_ok() => Err(format!(
            "the unit is missing: write {number}ms, or {number}s where seconds are meant"
        )),
        time => Ok(time),
    }
}

/// Bytes of a window or a buffer. A letter alone counts in 1024s, as `iperf3 -w 64k` and everybody's 64k window do;
/// `64kB` is 64,000 and `64KiB` 65,536 as everywhere.
pub(crate) fn window(text: &str) -> Result<ByteCount, String> {
    let letter = text.trim().ends_with(['k', 'K', 'm', 'M', 'g', 'G']);
    let binary = match letter {
        true => format!("{}i", text.trim()),
        false => text.to_owned(),
    };
    let wrong =
        |_| format!("'{text}' is not a size: write it as 64k (65,536 bytes), 64KiB or 2MiB");
    binary.parse().map_err(wrong)
}

/// A rate with its unit: ten thousand of nothing is a slip as often as 10 kbit/s.
pub(crate) fn rate(text: &str) -> Result<BitRate, String> {
    let number = text.trim();
    match text.parse::<BitRate>() {
        Ok(rate) if rate.bps() > 0 && number.parse::<f64>().is_ok() => Err(format!(
            "the unit is missing: write {number}kbit, {number}mbit or {number}gbit"
        )),
        Ok(rate) => Ok(rate),
        Err(_) => Err(RATES.to_owned()),
    }
}

/// A rate above zero.
pub(crate) fn rate_above_zero(text: &str) -> Result<BitRate, String> {
    match rate(text)? {
        rate if rate.bps() == 0 => Err(format!("a rate above zero is needed: {RATES}")),
        rate => Ok(rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds() {
        for (text, ms) in [
            ("5", 5000),
            ("5s", 5000),
            ("0.2", 200),
            ("250ms", 250),
            ("2m", 120_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for wrong in ["", "-1", "NaN", "inf", "1e30", "x", "5x"] {
            assert_eq!(time(wrong), Err(TIMES.to_owned()), "{wrong}");
        }
        assert_eq!(round_trip("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(round_trip("20s"), Ok(Duration::from_secs(20)));
        for bare in ["20", "0.02", "1e2"] {
            let ms = format!("write {bare}ms");
            assert!(
                round_trip(bare).is_err_and(|why| why.contains(&ms)),
                "{bare}"
            );
        }
        assert!(time_above_zero("0").is_err() && time_above_zero("0ms").is_err());
        let from_1s = time_from(Duration::from_secs(1), "too short");
        assert_eq!(from_1s("999ms"), Err("too short".to_owned()));
        assert_eq!(from_1s("1"), Ok(Duration::from_secs(1)));
    }

    #[test]
    fn a_window_of_64k_is_65536_bytes() {
        for text in ["64k", "64K", "64KiB", "65536", " 64k "] {
            assert_eq!(window(text), Ok(ByteCount::from_bytes(65_536)), "{text}");
        }
        assert_eq!(window("2M"), Ok(ByteCount::from_bytes(2 << 20)));
        assert_eq!(window("64kB"), Ok(ByteCount::from_bytes(64_000)));
        for wrong in ["", "k", "64x", "-1k"] {
            assert!(
                window(wrong).is_err_and(|why| why.contains("64k (65,536 bytes)")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_rate_has_its_unit() {
        for text in ["20mbit", "20Mbit/s", "20M", "20 Mbps", "0.02G", "20000k"] {
            assert_eq!(rate(text), Ok(BitRate::from_bps(20_000_000)), "{text}");
        }
        assert!(rate("10000").is_err_and(|why| why.contains("10000kbit")));
        for wrong in ["", "fast", "20MB/s", "20ms", "-1M"] {
            assert_eq!(rate(wrong), Err(RATES.to_owned()), "{wrong}");
        }
        for zero in ["0", "0bit"] {
            assert!(rate_above_zero(zero).is_err_and(|why| why.contains("above zero")));
        }
    }
}
