//! Numbers in what the links recorded, against fixed bounds.

use serde_json::Value;

use super::verdict::bounds;
use crate::scenario::Recorded;
use crate::stats::LabStats;

/// Holds one number against what it must be; says what it is, either way.
pub(super) fn check(expected: &Recorded, stats: &LabStats) -> Result<String, String> {
    let end = &expected.link;
    let chain = stats
        .links
        .get(&end.link)
        .and_then(|ways| ways.get(&end.way))
        .and_then(|way| serde_json::to_value(&way.chain).ok())
        .ok_or_else(|| format!("the statistics have no {end}"))?;
    let mut number = at(&chain, &expected.field)?;
    let mut field = format!("{end} {}", expected.field);
    if let Some(per) = &expected.per {
        number /= at(&chain, per)?;
        field = format!("{field} / {per}");
    }
    // Nothing of nothing is no number, and no truth.
    if !number.is_finite() {
        return Err(format!("{field} is no number"));
    }
    if let Some(min) = expected.min.filter(|min| number < *min) {
        return Err(format!("{field} is {number}, below {min}"));
    }
    if let Some(max) = expected.max.filter(|max| number > *max) {
        return Err(format!("{field} is {number}, above {max}"));
    }
    Ok(format!(
        "{field} is {number}{}",
        bounds(expected.min, expected.max)
    ))
}

fn at(chain: &Value, pointer: &str) -> Result<f64, String> {
    if let Some(value) = chain.pointer(pointer) {
        return value
            .as_f64()
            .ok_or_else(|| format!("{pointer} is {value}, which is no number"));
    }
    let causes = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
    match chain.pointer(causes) {
        Some(Value::Object(_)) if causes.ends_with("/dropped") => Ok(0.0),
        _ => Err(format!("there is no {pointer} in what the link recorded")),
    }
}
