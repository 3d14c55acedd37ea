//! A threshold: the loss, the median, the 95th percentile or the value of a window is above or below a limit.

use serde::Deserialize;

use super::rule::{MOST_BACK_S, Quantity, Rule, Shown, Verdict, ratio, round_trip, seconds};
use crate::page::words::percent;
use crate::unit::Unit;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    quantity: String,
    above: Option<toml::Value>,
    below: Option<toml::Value>,
    over: String,
}

#[derive(Debug)]
struct Threshold {
    quantity: Quantity,
    /// Whether more than the limit is too much, or less too little.
    is_upper: bool,
    /// A share, seconds, or a value in the unit of the target.
    limit: f64,
    over_s: i64,
}

pub(super) fn read(settings: toml::Table) -> Result<Box<dyn Rule>, String> {
    let settings: Settings = settings.try_into().map_err(|e| e.message().to_owned())?;
    let quantity = Quantity::read(&settings.quantity)?;
    let (is_upper, limit) = match (settings.above, settings.below) {
        (Some(limit), None) => (true, limit),
        (None, Some(limit)) if quantity == Quantity::Value => (false, limit),
        (None, Some(_)) => return Err("only a value has a limit below".to_owned()),
        _ => return Err("write one limit, above, or of a value below".to_owned()),
    };
    let limit = match (quantity, &limit) {
        (Quantity::Loss, toml::Value::String(text)) => ratio(text)?,
        (Quantity::Median | Quantity::P95, toml::Value::String(text)) => round_trip(text)?,
        (Quantity::Value, toml::Value::Integer(number)) => *number as f64,
        (Quantity::Value, toml::Value::Float(number)) if number.is_finite() => *number,
        (Quantity::Loss, _) => return Err("write a loss as \"5%\"".to_owned()),
        (Quantity::Median | Quantity::P95, _) => {
            return Err("write a round trip as \"80ms\"".to_owned());
        }
        (Quantity::Value, _) => return Err("write a value as a number, such as 14".to_owned()),
    };
    if quantity == Quantity::Loss && limit >= 1.0 {
        return Err("no loss is above 100%".to_owned());
    }
    Ok(Box::new(Threshold {
        quantity,
        is_upper,
        limit,
        over_s: seconds("over", &settings.over, (60, MOST_BACK_S))?,
    }))
}

impl Rule for Threshold {
    fn back_s(&self) -> i64 {
        self.over_s
    }

    fn is_of(&self, unit: Unit) -> bool {
        self.quantity.is_of(unit)
    }

    fn judge(&self, shown: &Shown) -> Verdict {
        let Some(samples) = shown.last(self.over_s) else {
            return Verdict::Unknown;
        };
        let Some(value) = self.quantity.of(samples) else {
            return Verdict::Unknown;
        };
        let is_beyond = match self.is_upper {
            true => value > self.limit,
            false => value < self.limit,
        };
        if !is_beyond {
            return Verdict::Quiet;
        }
        let first_lost = samples.iter().find(|sample| sample.value.is_none());
        let (value, since_s) = match self.quantity {
            Quantity::Loss => (
                percent(value),
                first_lost.map(|sample| sample.sent_us / 1_000_000),
            ),
            _ => (shown.unit.words(value), None),
        };
        Verdict::Seen {
            words: format!("{} of {value}", self.quantity.words()),
            since_s,
        }
    }
}
