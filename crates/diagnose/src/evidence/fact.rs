//! A field of a measurement as a piece of evidence.

use plumb_model::finding::{Evidence, Observed};
use plumb_model::run::Measurement;

/// `field` is what follows `result.`.
pub(crate) fn fact(
    measurement: &Measurement,
    field: impl std::fmt::Display,
    value: impl Into<Observed>,
    rule: impl Into<String>,
    threshold: impl Into<Observed>,
) -> Evidence {
    Evidence {
        measurement: measurement.id.clone(),
        field: format!("result.{field}"),
        value: value.into(),
        rule: rule.into(),
        threshold: threshold.into(),
    }
}

/// The same of a series of that name.
pub(crate) fn fact_of_series(
    measurement: &Measurement,
    name: &str,
    value: impl Into<Observed>,
    rule: impl Into<String>,
    threshold: impl Into<Observed>,
) -> Evidence {
    Evidence {
        field: format!("series.{name}"),
        ..fact(measurement, "", value, rule, threshold)
    }
}
