//! How documents are read from JSON and written to it: in one way each, because whatever reads or writes a type is
//! compiled once for each format that it meets, and the Run has hundreds of types.

use std::slice;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, Expected, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::{Serialize, forward_to_deserialize_any};
use serde_json::{Error, Value, map};

/// Reads a type from the text of a document.
///
/// # Errors
/// When it is no JSON, or not of that shape.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    from_value(&serde_json::from_slice(text)?)
}

/// Reads a type from a part of a document. A struct is an object, and not a list of its fields either, as it may be
/// for [`serde_json`].
///
/// # Errors
/// When it is not of that shape.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    T::deserialize(Reader(value))
}

/// A document as a value.
///
/// # Errors
/// When a key is no text.
pub fn to_value(document: &impl Serialize) -> Result<Value, Error> {
    serde_json::from_slice(&serde_json::to_vec(document)?)
}

/// A document on lines of their own, for people to read too.
///
/// # Errors
/// When a key is no text.
pub fn pretty(document: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(&to_value(document)?)
}

struct Reader<'a>(&'a Value);

impl Reader<'_> {
    fn error(&self, expected: &dyn Expected) -> Error {
        let found = match self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(_) => Unexpected::Other("number"),
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        Error::invalid_type(found, expected)
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => number.deserialize_any(visitor),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(_) => self.deserialize_seq(visitor),
            Value::Object(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Value::Array(all) = self.0 else {
            return Err(self.error(&visitor));
        };
        let mut elements = Elements(all.iter());
        let read = visitor.visit_seq(&mut elements)?;
        match elements.0.len() {
            0 => Ok(read),
            left => Err(Error::invalid_length(all.len(), &TooMany(left))),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(fields) => visitor.visit_map(Fields::of(fields)),
            _ => Err(self.error(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            Value::Object(fields) if fields.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Fields::of(fields)))
            }
            _ => Err(self.error(&visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct identifier
    }
}

struct TooMany(usize);

impl Expected for TooMany {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} fewer", self.0)
    }
}

struct Elements<'a>(slice::Iter<'a, Value>);

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let next = self.0.next();
        next.map(|value| seed.deserialize(Reader(value)))
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Fields<'a> {
    left: map::Iter<'a>,
    value: Option<&'a Value>,
}

impl<'a> Fields<'a> {
    fn of(fields: &'a map::Map<String, Value>) -> Self {
        Self {
            left: fields.iter(),
            value: None,
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.left.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        seed.deserialize(BorrowedStrDeserializer::new(name))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Reader(self.value.take().unwrap_or(&Value::Null)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Plain,
        One(u8),
        #[serde(rename = "named")]
        Named {
            text: String,
        },
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Whole {
        shapes: Vec<Shape>,
        pair: (f64, i64),
        lost: Option<f64>,
        absent: Option<bool>,
        by_name: BTreeMap<String, u64>,
        rest: Value,
    }

    fn whole() -> Whole {
        Whole {
            shapes: vec![
                Shape::Plain,
                Shape::One(7),
                Shape::Named {
                    text: "\u{202e}\"".to_owned(),
                },
            ],
            pair: (0.1, -3),
            lost: None,
            absent: Some(true),
            by_name: BTreeMap::from([("a".to_owned(), u64::MAX)]),
            rest: serde_json::json!({ "list": [null, 1, 2.5, "x"], "no": false }),
        }
    }

    #[test]
    fn what_was_written_is_read_as_serde_json_reads_it() {
        let text = pretty(&whole()).unwrap();
        assert_eq!(from_slice::<Whole>(text.as_bytes()).unwrap(), whole());
        assert_eq!(serde_json::from_str::<Whole>(&text).unwrap(), whole());
        assert_eq!(
            to_value(&whole()).unwrap(),
            serde_json::to_value(whole()).unwrap()
        );
    }

    #[test]
    fn other_shapes_are_refused() {
        let good = to_value(&whole()).unwrap();
        let with = |name: &str, value: Value| {
            let mut document = good.clone();
            document
                .as_object_mut()
                .unwrap()
                .insert(name.to_owned(), value);
            from_value::<Whole>(&document)
                .map(|_| ())
                .unwrap_err()
                .to_string()
        };
        let cases = [
            ("shapes", "x".into(), "invalid type: string \"x\""),
            ("shapes", serde_json::json!(["round"]), "unknown variant"),
            (
                "shapes",
                serde_json::json!([{ "One": 1, "Plain": null }]),
                "invalid type: map",
            ),
            (
                "shapes",
                serde_json::json!([{ "One": 256 }]),
                "invalid value",
            ),
            ("pair", serde_json::json!([1]), "invalid length 1"),
            ("pair", serde_json::json!([1, 2, 3]), "invalid length 3"),
            ("lost", true.into(), "invalid type: boolean"),
            ("by_name", serde_json::json!([]), "invalid type: sequence"),
        ];
        for (name, value, says) in cases {
            let said = with(name, value);
            assert!(said.contains(says), "{name}: {said}");
        }
        let list = serde_json::json!([[], [0, 0], null, null, {}, null]);
        assert!(from_value::<Whole>(&list).is_err());
        assert!(
            from_slice::<Whole>(b"{}")
                .unwrap_err()
                .to_string()
                .contains("missing field")
        );
        assert!(from_slice::<Whole>(b"{\"shapes\"").is_err());
    }
}
