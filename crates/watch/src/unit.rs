//! What the values of a target are measured in.

use crate::page::words::ms;

/// What the values of a target are measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Times, in seconds: round trips and delays, which may be negative where clocks differ.
    Seconds,
    BitsPerSecond,
    Bytes,
    Days,
    /// Whatever a command prints.
    Number,
    Percent,
    PerSecond,
    /// Degrees of a temperature.
    Celsius,
    /// Optical power by its logarithm.
    DecibelMilliwatts,
    Watts,
    /// Days since a device booted.
    Uptime,
}

impl Unit {
    /// A value as people read it.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Seconds => match value < 0.0 {
                true => format!("-{}", ms(-value)),
                false => ms(value),
            },
            Self::BitsPerSecond if value < 1e6 => format!("{:.1} kbit/s", value / 1e3),
            Self::BitsPerSecond if value < 1e9 => format!("{:.2} Mbit/s", value / 1e6),
            Self::BitsPerSecond => format!("{:.2} Gbit/s", value / 1e9),
            Self::Bytes => format!("{value:.0} bytes"),
            Self::Days => format!("{value:.1} days"),
            Self::Number => number(value),
            Self::Percent => format!("{value:.1} %"),
            Self::PerSecond => format!("{}/s", number(value)),
            Self::Celsius => format!("{value:.1} °C"),
            Self::DecibelMilliwatts => format!("{value:.2} dBm"),
            Self::Watts => format!("{} W", number(value)),
            Self::Uptime => format!("{value:.2} days"),
        }
    }

    /// The name of its values among the metrics, and what they are.
    pub(crate) fn metric(self) -> (&'static str, &'static str) {
        match self {
            Self::Seconds => (
                "rtt_seconds",
                "Round trips of the last 5 minutes, by quantile.",
            ),
            Self::BitsPerSecond => (
                "rate_bits_per_second",
                "Goodput of the latest measurements, by quantile.",
            ),
            Self::Bytes => (
                "packet_bytes",
                "The largest packet of the latest measurements, by quantile.",
            ),
            Self::Days => (
                "certificate_days",
                "Days until the certificate ends, by quantile.",
            ),
            Self::Number => (
                "value",
                "What the command printed at its latest runs, by quantile.",
            ),
            Self::Percent => ("percent", "Shares in use of the latest looks, by quantile."),
            Self::PerSecond => (
                "frames_per_second",
                "Frames with errors or discarded of the latest looks, by quantile.",
            ),
            Self::Celsius => (
                "temperature_celsius",
                "Temperatures of the latest looks, by quantile.",
            ),
            Self::DecibelMilliwatts => (
                "optical_power_dbm",
                "Optical power of the latest looks, by quantile.",
            ),
            Self::Watts => ("power_watts", "Power of the latest looks, by quantile."),
            Self::Uptime => ("uptime_days", "Days since it booted, by quantile."),
        }
    }
}

/// Six digits, which are what the history keeps of a number.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if !(1e-4..1e9).contains(&size) => format!("{value:.5e}"),
        size => {
            let before = size.log10().floor().max(0.0) as usize;
            let text = format!("{value:.*}", 5_usize.saturating_sub(before));
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_people_write_them() {
        let of = |unit: Unit, value| unit.words(value);
        assert_eq!(of(Unit::Seconds, -0.0025), "-2.50 ms");
        assert_eq!(of(Unit::BitsPerSecond, 19_120_000.0), "19.12 Mbit/s");
        assert_eq!(of(Unit::Days, 12.26), "12.3 days");
        let numbers = [0.0, 42.0, -3.5, 1234.5678, 0.001, 1e-6, 2e11].map(number);
        assert_eq!(
            numbers,
            [
                "0",
                "42",
                "-3.5",
                "1234.57",
                "0.001",
                "1.00000e-6",
                "2.00000e11"
            ]
        );
    }
}
