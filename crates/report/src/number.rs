//! Numbers as people read them, whatever the number: units of the model, bounded length.

use plumb_model::finding::{Evidence, Observed};
use plumb_model::units;

/// What stands where there is no number.
pub(crate) const ABSENT: &str = "–";

/// Above this the SI prefixes end and digits would fill the line.
const LARGEST_IN_DIGITS: f64 = 1e15;

/// Writes `value` with `write` when it is of a size that people write in digits.
fn bounded(value: f64, unit: &str, write: impl Fn(f64) -> String) -> String {
    match value {
        v if !v.is_finite() => ABSENT.to_owned(),
        v if v.abs() >= LARGEST_IN_DIGITS => format!("{v:.1e} {unit}").trim_end().to_owned(),
        v => write(v).replacen('-', "−", 1),
    }
}

/// `18.3 ms`.
pub(crate) fn seconds(value: f64) -> String {
    bounded(value, "s", units::human_seconds)
}

/// The number alone in milliseconds, to the microsecond, as ping prints it: `18.300`.
pub(crate) fn milliseconds(value: f64) -> String {
    bounded(value * 1e3, "", |v| format!("{v:.3}"))
}

/// `18.9 Mbit/s`.
pub(crate) fn rate(value: f64) -> String {
    bounded(value, "bit/s", |v| units::si(v, "bit/s"))
}

/// `47.3 MB`.
pub(crate) fn bytes(value: f64) -> String {
    bounded(value, "B", |v| units::si(v, "B"))
}

/// `0.25 %` from 0.0025.
pub(crate) fn percent(ratio: f64) -> String {
    bounded(ratio * 100.0, "%", |v| match v.abs() {
        0.0 => "0 %".to_owned(),
        a if a < 1.0 => format!("{v:.2} %"),
        a if a < 10.0 => format!("{v:.1} %"),
        _ => format!("{v:.0} %"),
    })
}

/// How long something took, in whole seconds: `1 min 12 s`, `2 h 5 min`.
pub(crate) fn length(seconds: f64) -> String {
    bounded(seconds, "s", |v| match v.round() {
        whole if whole < 60.0 => format!("{whole} s"),
        whole if whole < 120.0 => format!("1 min {} s", whole - 60.0),
        whole => units::human_seconds(whole),
    })
}

/// How far something is: `38475 km`.
fn length_m(metres: f64) -> String {
    bounded(metres, "m", |v| match v.abs() {
        a if a < 10_000.0 => format!("{v:.0} m"),
        _ => format!("{:.0} km", v / 1000.0),
    })
}

/// A number without a unit.
pub(crate) fn plain(value: f64) -> String {
    bounded(value, "", |v| {
        let text = format!("{v:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    })
}

/// A number of which the parts do not count, above ten.
pub(crate) fn whole(value: f64) -> String {
    bounded(value, "", |v| match v.abs() {
        a if a < 10.0 => plain(v),
        _ => format!("{v:.0}"),
    })
}

/// A number in the unit that the name of its field carries, the last part that carries one.
pub(crate) fn of_field(field: &str, value: f64) -> String {
    let unit = field.rsplit('.').find_map(|part| {
        let is_buffer = ["rmem", "wmem", "rmem_max", "wmem_max"]
            .iter()
            .any(|of| part.ends_with(of));
        let suffixes = ["_s", "_ms", "_us", "_bps", "_bytes", "_ratio", "_m"].into_iter();
        let mut suffixes = suffixes.filter(|suffix| {
            // A series is named by its unit alone.
            part.ends_with(suffix) || part.len() > 2 && suffix.strip_prefix('_') == Some(part)
        });
        suffixes.next().or(is_buffer.then_some("_bytes"))
    });
    match unit {
        Some("_s") => seconds(value),
        Some("_ms") => seconds(value / 1e3),
        Some("_us") => seconds(value / 1e6),
        Some("_bps") => rate(value),
        // Sizes of packets count to the byte.
        Some("_bytes") if (0.0..10_000.0).contains(&value) => format!("{} B", plain(value)),
        Some("_bytes") => bytes(value),
        Some("_ratio") => percent(value),
        Some("_m") => length_m(value),
        _ => plain(value),
    }
}

/// A threshold in the same unit, which is a round number more often than a measured one.
pub(crate) fn threshold(field: &str, value: f64) -> String {
    let text = of_field(field, value);
    let text = match text == plain(value) {
        true => whole(value),
        false => text,
    };
    text.replacen(".00 ", " ", 1).replacen(".0 ", " ", 1)
}

/// What evidence has, and what it was compared with: numbers in the unit of the field, or words.
pub(crate) fn evidence(evidence: &Evidence) -> (String, String) {
    // A part of what the field counts.
    let is_share = ["share", "least share"]
        .iter()
        .any(|word| evidence.rule.starts_with(word))
        || evidence.rule.contains("as a share of");
    let field = match (is_share, evidence.field.as_str()) {
        (true, _) => "_ratio",
        // Of round trips, in seconds.
        (false, "series.rtt") => "_s",
        (false, field) => field,
    };
    let text = |value: &Observed, of: fn(&str, f64) -> String| match value {
        Observed::Number(number) => of(field, *number),
        Observed::Word(word) => word.clone(),
    };
    (
        text(&evidence.value, of_field),
        text(&evidence.threshold, threshold),
    )
}

/// The text of a change with its sign.
pub(crate) fn signed(change: f64, text: String) -> String {
    if change > 0.0 && change.is_finite() {
        format!("+{text}")
    } else {
        text
    }
}

/// One unit and one number of decimals for a whole column, so that the points align.
pub(crate) struct Scale {
    factor: f64,
    /// The unit of the column.
    pub(crate) unit: &'static str,
    decimals: usize,
}

impl Scale {
    /// Milliseconds, or what else suits the `typical` values of the column.
    pub(crate) fn seconds(typical: impl Iterator<Item = f64> + Clone) -> Self {
        let (smallest, largest) = extent(typical);
        let (factor, unit) = match largest {
            v if v >= 100.0 => (1.0, "s"),
            v if v >= 1e-4 => (1e3, "ms"),
            _ => (1e6, "µs"),
        };
        Self {
            factor,
            unit,
            decimals: decimals(smallest * factor),
        }
    }

    /// Mbit/s, or what else suits the `typical` values of the column.
    pub(crate) fn rates(typical: impl Iterator<Item = f64> + Clone) -> Self {
        let (smallest, largest) = extent(typical);
        let (factor, unit) = match largest {
            v if v >= 1e10 => (1e-9, "Gbit/s"),
            v if v >= 1e5 => (1e-6, "Mbit/s"),
            _ => (1e-3, "kbit/s"),
        };
        Self {
            factor,
            unit,
            decimals: decimals(smallest * factor),
        }
    }

    /// What a value is multiplied by.
    pub(crate) fn factor(&self) -> f64 {
        self.factor
    }

    /// The number alone; the unit stands at the head of the column.
    pub(crate) fn show(&self, value: Option<f64>) -> String {
        value.map_or_else(
            || ABSENT.to_owned(),
            |v| bounded(v * self.factor, "", |v| format!("{v:.*}", self.decimals)),
        )
    }
}

/// Smallest and largest of the positive values; 1 and 1 when there are none.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let positive = values.filter(|v| v.is_finite() && *v > 0.0);
    let found = positive.fold(None, |seen: Option<(f64, f64)>, v| {
        Some(seen.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
    });
    found.unwrap_or((1.0, 1.0))
}

/// Decimals that leave three significant digits in the smallest value of a column.
fn decimals(smallest: f64) -> usize {
    match smallest {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_field_names_the_unit() {
        assert_eq!(of_field("result.increase_s.p95", 0.668), "668 ms");
        assert_eq!(threshold("result.increase_s.p95", 0.06), "60 ms");
        assert_eq!(
            (length(4.6), length(72.2)),
            ("5 s".into(), "1 min 12 s".into())
        );
        assert_eq!(of_field("result.up_bps", 18.9e6), "18.9 Mbit/s");
        assert_eq!(of_field("result.tcp.limited.rwnd_ratio", 0.97), "97 %");
        assert_eq!(
            of_field("result.tcp_receiver.max_window_bytes", 3e6),
            "3.00 MB"
        );
        assert_eq!(of_field("result.path_mtu_bytes", 1400.0), "1400 B");
        assert_eq!(of_field("series.bps", 3.76e9), "3.76 Gbit/s");
        assert_eq!(
            of_field("result.sysctl.net.ipv4.tcp_wmem", 4194304.0),
            "4.19 MB"
        );
        assert_eq!(
            of_field("result.control_group.throttled_us", 2.5e6),
            "2.50 s"
        );
        assert_eq!(of_field("result.tcp.retransmits", 412.0), "412");
        assert_eq!(
            of_field("result.distance.along_path_m", 38_474_963.44),
            "38475 km"
        );
        assert_eq!(signed(-0.687, seconds(-0.687)), "−687 ms");
        assert_eq!(signed(0.0003, seconds(0.0003)), "+300 µs");
        // A column of both has one unit.
        assert_eq!(
            [0.004, 0.000129].map(milliseconds),
            ["4.000", "0.129"].map(str::to_owned)
        );
    }

    #[test]
    fn a_share_is_a_percentage_whatever_the_field_counts() {
        let shown = |field: &str, rule: &str, value: f64, threshold: f64| {
            super::evidence(&Evidence {
                measurement: "m1".to_owned(),
                field: field.to_owned(),
                value: value.into(),
                rule: rule.to_owned(),
                threshold: threshold.into(),
            })
        };
        let text = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let again = "share of the segments that were retransmitted";
        assert_eq!(
            shown("result.tcp.retransmits", again, 0.034, 0.01),
            text("3.4 %", "1 %")
        );
        let held = "longest time in which no probe was answered";
        assert_eq!(
            shown("series.rtt", held, 0.299, 0.2),
            text("299 ms", "200 ms")
        );
        assert_eq!(
            shown("result.rate_tps", "objects a second", 4.5, 1206.39),
            text("4.5", "1206")
        );
        let busy = "result.grown.wlan0.wifi_scan_ms";
        assert_eq!(
            shown(busy, "time since", 250.0, 100.0),
            text("250 ms", "100 ms")
        );
    }

    #[test]
    fn a_column_has_one_precision() {
        let column = Scale::seconds([0.0183, 0.7062].into_iter());
        assert_eq!(
            (column.show(Some(0.0183)), column.show(Some(0.7062))),
            ("18.3".into(), "706.2".into())
        );
        assert_eq!((column.unit, column.show(None).as_str()), ("ms", ABSENT));
    }

    proptest! {
        #[test]
        fn no_number_is_long(bits in any::<u64>()) {
            let v = f64::from_bits(bits);
            for text in [seconds(v), rate(v), bytes(v), percent(v), plain(v), Scale::rates([v].into_iter()).show(Some(v))] {
                prop_assert!(text.chars().count() <= 24, "{text}");
            }
        }
    }
}
