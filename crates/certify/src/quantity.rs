//! Amounts that a trial draws and computes with, each in its unit, as a scenario writes them.

use std::fmt;

use plumb_model::units::{BitRate, ByteCount, parse_duration};

/// The unit of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A plain number or a share.
    None,
    /// A number that stays whole.
    Whole,
    /// Packets, which stay whole.
    Packets,
    Seconds,
    Bytes,
    /// In bits a second.
    Rate,
}

/// An amount with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantity {
    value: f64,
    unit: Unit,
}

/// A range that spans a decade is drawn by its logarithm, so that each octave is as likely as any other.
const DECADE: f64 = 10.0;

/// Significant digits that are written: a ten-thousandth is finer than any rule looks.
const DIGITS: i32 = 4;

impl Quantity {
    /// Reads `12`, `0.5`, `1%`, `20ms`, `12p`, `30kB` or `20mbit`; `None` where it is a word.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let of = |unit| move |value| Self { value, unit };
        if let Ok(whole) = text.parse::<i64>() {
            return Some(of(Unit::Whole)(whole as f64));
        }
        if let Ok(number) = text.parse::<f64>() {
            return number.is_finite().then(|| of(Unit::None)(number));
        }
        if let Some(percent) = text.strip_suffix('%') {
            let percent: f64 = percent.trim().parse().ok()?;
            return Some(of(Unit::None)(percent / 100.0));
        }
        if let Some(packets) = text.strip_suffix('p')
            && let Ok(packets) = packets.parse::<u32>()
        {
            return Some(of(Unit::Packets)(packets.into()));
        }
        if let Ok(time) = parse_duration(text) {
            return Some(of(Unit::Seconds)(time.as_secs_f64()));
        }
        // Before rates, which take the B of 20kB for bits; `20mbit` is no amount.
        if let Ok(bytes) = text.parse::<ByteCount>() {
            return Some(of(Unit::Bytes)(bytes.bytes() as f64));
        }
        let rate = text.parse::<BitRate>().ok()?;
        Some(of(Unit::Rate)(rate.bps() as f64))
    }

    /// The amount at this share, 0 to 1, of a range; by the logarithm where the range spans a decade. `None` where the
    /// two are not of one unit, or the second is smaller.
    pub(crate) fn between(from: Self, to: Self, share: f64) -> Option<Self> {
        // A range from a share to a number, or from 0 to 0.5, is of plain numbers.
        let unit = match (from.unit, to.unit) {
            (Unit::None, Unit::Whole) | (Unit::Whole, Unit::None) => Unit::None,
            (one, other) if one == other => one,
            _ => return None,
        };
        if from.value > to.value {
            return None;
        }
        let decades = from.value > 0.0 && to.value >= DECADE * from.value;
        let value = match decades {
            true => from.value * (to.value / from.value).powf(share),
            false => from.value + (to.value - from.value) * share,
        };
        Some(Self { value, unit })
    }

    /// The product: a rate for a time gives bytes, anything else times a number keeps its unit.
    pub(crate) fn times(self, other: Self) -> Option<Self> {
        let plain = |unit| [Unit::None, Unit::Whole].contains(&unit);
        let value = self.value * other.value;
        let (value, unit) = match (self.unit, other.unit) {
            (Unit::Rate, Unit::Seconds) | (Unit::Seconds, Unit::Rate) => (value / 8.0, Unit::Bytes),
            (Unit::Whole, Unit::Whole) => (value, Unit::Whole),
            (one, other) if plain(one) && plain(other) => (value, Unit::None),
            (unit, other) if plain(other) => (value, unit),
            (other, unit) if plain(other) => (value, unit),
            _ => return None,
        };
        Some(Self { value, unit })
    }

    /// How many times the other goes into it, where both are of one unit: a whole number.
    pub(crate) fn over(self, other: Self) -> Option<Self> {
        (self.unit == other.unit && other.value > 0.0).then_some(Self {
            value: self.value / other.value,
            unit: Unit::Whole,
        })
    }

    /// The sum of two amounts of one unit.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        (self.unit == other.unit).then_some(Self {
            value: self.value + other.value,
            unit: self.unit,
        })
    }
}

impl fmt::Display for Quantity {
    /// As a scenario writes it, with four significant digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, least): (&[(f64, &str)], f64) = match self.unit {
            Unit::None => (&[(1.0, "")], 0.0),
            Unit::Whole => return write!(f, "{}", self.value.round()),
            Unit::Packets => return write!(f, "{}p", self.value.round().max(1.0)),
            Unit::Seconds => (&[(1.0, "s"), (1e-3, "ms"), (1e-6, "us")], 1e-6),
            Unit::Bytes => (&[(1e6, "MB"), (1e3, "kB"), (1.0, "B")], 1.0),
            Unit::Rate => (&[(1e6, "mbit"), (1e3, "kbit"), (1.0, "bit")], 1.0),
        };
        // Bytes and bits a second are whole ones.
        let value = match self.unit {
            Unit::Bytes | Unit::Rate => self.value.round().max(least),
            _ => self.value,
        };
        let reached = units.iter().find(|(size, _)| value >= *size);
        let (size, unit) = reached.or(units.last()).copied().unwrap_or((1.0, ""));
        let number = value / size;
        let before_point = match number.abs() {
            zero if zero < f64::MIN_POSITIVE => 1,
            some => some.log10().floor() as i32 + 1,
        };
        let digits = usize::try_from(DIGITS - before_point).unwrap_or(0);
        let whole = size == 1.0 && [Unit::Bytes, Unit::Rate].contains(&self.unit);
        let text = format!("{number:.*}", if whole { 0 } else { digits });
        let text = match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.'),
            false => &text,
        };
        // A share that rounds to 1 stays one that need not be whole.
        let unit = match self.unit == Unit::None && !text.contains('.') {
            true => ".0",
            false => unit,
        };
        write!(f, "{text}{unit}")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Quantity {
        Quantity::read(text).unwrap()
    }

    #[test]
    fn amounts_are_read_and_written() {
        for (text, written) in [
            ("12", "12"),
            ("0.5", "0.5"),
            ("1%", "0.01"),
            ("100%", "1.0"),
            ("0.12345678%", "0.001235"),
            ("20ms", "20ms"),
            ("1500ms", "1.5s"),
            ("12p", "12p"),
            ("30kB", "30kB"),
            ("20mbit", "20mbit"),
            ("123456789bit", "123.5mbit"),
            ("0s", "0us"),
        ] {
            assert_eq!(read(text).to_string(), written, "{text}");
        }
        assert_eq!(Quantity::read("fq_codel"), None);
    }

    #[test]
    fn ranges_of_a_decade_are_drawn_by_their_logarithm() {
        let middle = |from, to| Quantity::between(read(from), read(to), 0.5).map(|q| q.to_string());
        assert_eq!(middle("10mbit", "40mbit").unwrap(), "25mbit");
        assert_eq!(middle("0.1%", "10%").unwrap(), "0.01");
        assert_eq!(middle("10ms", "1s").unwrap(), "100ms");
        assert_eq!(middle("2p", "12p").unwrap(), "7p");
        assert_eq!(middle("10ms", "1mbit"), None);
        assert_eq!(middle("2ms", "1ms"), None);
    }

    #[test]
    fn a_rate_for_a_time_is_bytes() {
        let product = |a, b| read(a).times(read(b)).map(|q| q.to_string());
        assert_eq!(product("20mbit", "40ms").unwrap(), "100kB");
        assert_eq!(product("20mbit", "0.5").unwrap(), "10mbit");
        assert_eq!(product("2", "15ms").unwrap(), "30ms");
        assert_eq!(product("2ms", "15ms"), None);
        assert_eq!(read("5ms").plus(read("1s")).unwrap().to_string(), "1.005s");
        assert_eq!(read("5ms").plus(read("1")), None);
        assert_eq!(
            read("18mbit").over(read("12kbit")).unwrap().to_string(),
            "1500"
        );
        assert_eq!(read("18mbit").over(read("2")), None);
        assert_eq!(read("18mbit").over(read("0bit")), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_nearly_the_same(share in 0.0..1.0f64) {
            for (from, to) in [("1kbit", "10gbit"), ("1us", "1000s"), ("100B", "1GB"), ("1p", "9000p"), ("0.0001", "1.0")] {
                let drawn = Quantity::between(read(from), read(to), share).unwrap();
                let again = read(&drawn.to_string());
                prop_assert_eq!(again.unit, drawn.unit);
                // Whole packets, bytes and bits; else four digits.
                let error = (again.value - drawn.value).abs();
                prop_assert!(error <= 0.5_f64.max(6e-4 * drawn.value) , "{} {:?}", drawn, again);
                prop_assert!(error <= 0.6e-3 * drawn.value || drawn.value < 2000.0 && error <= 0.5);
            }
        }

        #[test]
        fn whatever_is_written_is_an_amount_or_a_word(text in "\\PC{0,12}") {
            let _ = Quantity::read(&text).map(|q| q.to_string());
        }
    }
}
