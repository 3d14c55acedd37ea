//! Values over time, as columns.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a column of values counts; its suffix is part of the column's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Times, measured in seconds.
    Seconds,
    /// Rates, measured in bit/s.
    BitsPerSecond,
    /// Sizes, measured in bytes.
    Bytes,
    /// Shares from 0 to 1.
    Ratio,
    /// A number of things.
    Count,
}

impl Unit {
    const ALL: [Self; 5] = [
        Self::Seconds,
        Self::BitsPerSecond,
        Self::Bytes,
        Self::Ratio,
        Self::Count,
    ];

    fn column(self) -> &'static str {
        match self {
            Self::Seconds => "value_s",
            Self::BitsPerSecond => "value_bps",
            Self::Bytes => "value_bytes",
            Self::Ratio => "value_ratio",
            Self::Count => "value_count",
        }
    }
}

/// One quantity over time: `{"t_s": […], "value_s": […]}`, `null` where a value was lost.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What the values count.
    pub unit: Unit,
    /// When each value was taken, in seconds from the start of the measurement.
    pub t_s: Vec<f64>,
    /// The values, as many as there are times.
    pub values: Vec<Option<f64>>,
}

impl Series {
    /// A series without any point.
    pub fn new(unit: Unit) -> Self {
        Self {
            unit,
            t_s: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds a point; a value that is not finite counts as lost.
    pub fn push(&mut self, t_s: f64, value: Option<f64>) {
        self.t_s.push(t_s);
        self.values.push(value.filter(|v| v.is_finite()));
    }

    /// The points that have a value.
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.t_s
            .iter()
            .zip(&self.values)
            .filter_map(|(t, v)| v.map(|v| (*t, v)))
    }
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("t_s", &self.t_s)?;
        map.serialize_entry(self.unit.column(), &self.values)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Series {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let mut columns = BTreeMap::<String, Vec<Option<f64>>>::deserialize(deserializer)?;
        let t_s = columns
            .remove("t_s")
            .and_then(|t| t.into_iter().collect::<Option<Vec<f64>>>())
            .ok_or_else(|| D::Error::custom("a series has a column t_s of numbers"))?;
        let (name, values) = columns
            .pop_first()
            .ok_or_else(|| D::Error::missing_field("value_s"))?;
        let unit = Unit::ALL
            .into_iter()
            .find(|unit| unit.column() == name)
            .ok_or_else(|| D::Error::custom(format!("unknown column '{name}' in a series")))?;
        if values.len() != t_s.len() {
            return Err(D::Error::custom("the columns of a series differ in length"));
        }
        Ok(Self { unit, t_s, values })
    }
}

#[cfg(feature = "schema")]
mod schema {
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    use super::{Series, Unit};

    impl JsonSchema for Series {
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Series".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            let column = json_schema!({ "type": "array", "items": { "type": ["number", "null"] } });
            let values: serde_json::Map<_, _> = Unit::ALL
                .into_iter()
                .map(|unit| (unit.column().to_owned(), column.clone().to_value()))
                .collect();
            json_schema!({
                "type": "object",
                "description": "Columns over time: t_s and one column of values named for its unit; null where lost.",
                "properties": {
                    "t_s": {
                        "type": "array",
                        "items": { "type": "number" },
                        "description": "When each value was taken, in seconds from the start of the measurement.",
                    },
                },
                "patternProperties": { "^value_": { "type": "array", "items": { "type": ["number", "null"] } } },
                "required": ["t_s"],
                "minProperties": 2, "maxProperties": 2,
                "anyOf": values.keys().map(|name| serde_json::json!({ "required": [name] })).collect::<Vec<_>>(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn columns_carry_the_unit_and_losses_are_null() {
        let mut series = Series::new(Unit::Seconds);
        series.push(0.0, Some(0.018));
        series.push(0.1, None);
        series.push(0.2, Some(f64::NAN));
        let json = serde_json::to_string(&series).unwrap();
        assert_eq!(json, r#"{"t_s":[0.0,0.1,0.2],"value_s":[0.018,null,null]}"#);
        assert_eq!(serde_json::from_str::<Series>(&json).unwrap(), series);
    }

    #[test]
    fn uneven_or_unknown_columns_are_refused() {
        for json in [
            r#"{"t_s":[0.0],"value_s":[]}"#,
            r#"{"t_s":[0.0],"value_x":[1.0]}"#,
            r#"{"t_s":[0.0]}"#,
        ] {
            assert!(serde_json::from_str::<Series>(json).is_err(), "{json}");
        }
    }
}
