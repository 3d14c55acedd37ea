//! How iperf3 writes numbers and switches in JSON: a switch may be `true` or 1, a large number 1e+16.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A number that is not negative; anything else is an error.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = match &value {
        Value::Bool(is_set) => Some(u64::from(*is_set)),
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            // The cast saturates.
            (float >= 0.0).then_some(float as u64)
        }),
        _ => None,
    };
    number.ok_or_else(|| serde::de::Error::custom(format!("{value} is no number from 0 on")))
}

/// A number with a sign. iperf3 writes −1 as a number of 64 bits without one, too.
pub(super) fn signed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_i64().or_else(|| {
        let unsigned = value.as_u64().map(u64::cast_signed);
        // The cast saturates.
        unsigned.or_else(|| value.as_f64().map(|float| float as i64))
    });
    number.ok_or_else(|| serde::de::Error::custom(format!("{value} is no number")))
}

/// A switch: true, or any number but 0.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    number(deserializer).map(|number| number != 0)
}
