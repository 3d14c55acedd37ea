//! Settings as people write them: a table with a `type` in a scenario, `KEY=VALUE` on a command
//! line. Both end in the same place, so that they allow the same and complain alike.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use toml::{Table, Value};

/// The key that names the kind in a table.
pub(crate) const TYPE: &str = "type";

/// The settings of one kind of cell or queue.
pub trait Settings: Clone + PartialEq + Debug + Serialize + DeserializeOwned {
    /// Checks the values against each other; an error describes the contradiction.
    ///
    /// # Errors
    /// With what is wrong and what would be possible.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The settings of one kind among all that `K` lists.
pub(crate) trait KindOf<K>: Sized {
    /// These settings, if it is this kind.
    fn of(any: &K) -> Option<Self>;
}

/// What was written is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub(crate) String);

/// Reads the settings of what `kind` calls itself.
pub(crate) fn read<T: Settings>(kind: &str, table: Table) -> Result<T, SettingsError> {
    let settings: T = table
        .try_into()
        .map_err(|e: toml::de::Error| SettingsError(format!("{kind}: {}", explain(e.message()))))?;
    settings
        .check()
        .map_err(|problem| SettingsError(format!("{kind}: {problem}")))?;
    Ok(settings)
}

/// The settings as a table with their `type`.
pub(crate) fn write<T: Settings>(kind: &str, settings: &T) -> Table {
    // Settings are plain data: they always have a form in TOML.
    let mut table = Table::try_from(settings).unwrap_or_default();
    table.insert(TYPE.to_owned(), Value::String(kind.to_owned()));
    table
}

/// A setting that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its key: `queue.limit` is in a table of its own.
    pub key: String,
    /// What it was, as it would be written, if it was there.
    pub before: Option<String>,
    pub after: String,
}

/// The settings of `after` that differ from `before`.
pub(crate) fn differences(before: &Table, after: &Table) -> Vec<Difference> {
    let mut all = Vec::new();
    for (key, value) in after {
        let old = before.get(key);
        if old == Some(value) {
            continue;
        }
        match value {
            Value::Table(inner) => {
                let old = old.and_then(Value::as_table).cloned().unwrap_or_default();
                let inner = differences(&old, inner).into_iter();
                all.extend(inner.map(|difference| Difference {
                    key: format!("{key}.{}", difference.key),
                    ..difference
                }));
            }
            _ => all.push(Difference {
                key: key.clone(),
                before: old.map(written),
                after: written(value),
            }),
        }
    }
    all
}

/// A value without the quotes of a text.
fn written(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Takes the `type` out of a table.
pub(crate) fn take_kind(
    what: &str,
    table: &mut Table,
    kinds: &[&str],
) -> Result<String, SettingsError> {
    match table.remove(TYPE) {
        Some(Value::String(kind)) => Ok(kind),
        _ => Err(SettingsError(format!(
            "a {what} needs a type: one of {}",
            kinds.join(", ")
        ))),
    }
}

pub(crate) fn unknown_kind(what: &str, kind: &str, kinds: &[&str]) -> SettingsError {
    let hint = nearest(kind, kinds.iter().copied()).map(did_you_mean);
    SettingsError(format!(
        "there is no {what} of type '{kind}'{}; the types are {}",
        hint.unwrap_or_default(),
        kinds.join(", ")
    ))
}

/// Puts `KEY=VALUE` pairs into a table and reads the whole, all or none.
///
/// A key belongs to the table or to a table inside it: `limit` of a shaper sets its queue's limit, and so does
/// `queue.limit`.
pub(crate) fn with_pairs<T>(
    table: &Table,
    pairs: &[(&str, &str)],
    read: impl Fn(Table) -> Result<T, SettingsError>,
    write: impl Fn(&T) -> Table,
) -> Result<T, SettingsError> {
    // First the settings of the table itself: the rest may be settings of a table that these create, such as the
    // settings of another queue.
    let (mut own, mut inner): (Vec<_>, Vec<_>) = pairs
        .iter()
        .map(|(key, text)| ((*key).to_owned(), *text))
        .partition(|(key, _)| !key.contains('.') && !is_inside(table, key));
    let outer = loop {
        let error = match read(place(table.clone(), &own)) {
            Ok(outer) => break outer,
            Err(error) => error,
        };
        if let Some(unknown) = own.iter().position(|(key, _)| error.is_about(key))
            && own.len() > 1
        {
            inner.push(own.remove(unknown));
        } else if let Some(needed) = take_missing(&error, &mut own, &mut inner) {
            own.push(needed);
        } else {
            return Err(error);
        }
    };
    if inner.is_empty() {
        return Ok(outer);
    }
    read(place(write(&outer), &inner))
}

/// Takes out what a kind lacks that one of the table's own pairs names, as `queue=host_fair`
/// lacks `by`. Its key is then whole: `queue.by`.
fn take_missing<'a>(
    error: &SettingsError,
    own: &mut Vec<(String, &'a str)>,
    inner: &mut Vec<(String, &'a str)>,
) -> Option<(String, &'a str)> {
    let (outer, field) = own
        .iter()
        .find_map(|(key, kind)| Some((key, error.missing_in(kind)?)))?;
    let whole = format!("{outer}.{field}");
    let (_, text) = if let Some(given) = inner.iter().position(|(k, _)| *k == whole || k == field) {
        inner.remove(given)
    } else {
        let given = own.iter().position(|(k, _)| k == field)?;
        own.remove(given)
    };
    Some((whole, text))
}

impl SettingsError {
    /// Whether it says that there is no such key.
    fn is_about(&self, key: &str) -> bool {
        self.0.contains(&format!("unknown field `{key}`"))
    }

    /// The key that it says is missing in the settings of this kind.
    fn missing_in(&self, kind: &str) -> Option<&str> {
        let (_, after) = self.0.split_once(&format!("{kind}: missing field `"))?;
        after.split('`').next()
    }
}

fn place(mut table: Table, pairs: &[(String, &str)]) -> Table {
    for (key, text) in pairs {
        put(&mut table, key, text);
    }
    table
}

fn is_inside(table: &Table, key: &str) -> bool {
    !table.contains_key(key) && table.values().any(|value| value.get(key).is_some())
}

fn put(table: &mut Table, key: &str, text: &str) {
    let inner = match key.split_once('.') {
        Some((outer, inner)) => table.get_mut(outer).map(|value| {
            // The name of a kind is short for its table.
            if let Value::String(kind) = value {
                let kind = Value::String(std::mem::take(kind));
                *value = Value::Table(Table::from_iter([(TYPE.to_owned(), kind)]));
            }
            (value, inner)
        }),
        None if table.contains_key(key) => None,
        None => table
            .iter_mut()
            .find_map(|(_, value)| value.get(key).is_some().then_some((value, key))),
    };
    if let Some((Value::Table(inside), key)) = inner {
        return put(inside, key, text);
    }
    let value = match table.get(key) {
        Some(Value::String(_)) => Value::String(text.to_owned()),
        _ => literal(text),
    };
    table.insert(key.to_owned(), value);
}

/// A number, a truth value or a list as TOML writes them; anything else is text.
fn literal(text: &str) -> Value {
    toml::from_str::<Table>(&format!("v = {text}"))
        .ok()
        .and_then(|mut table| table.remove("v"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Reads what parses from text, and may be written as a number too.
pub(crate) fn text_or_number<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let written = Value::deserialize(deserializer)?;
    let text = match written {
        Value::String(text) => text,
        other => other.to_string(),
    };
    text.parse().map_err(D::Error::custom)
}

/// Adds the nearest word that is known to what serde says of one that is not, such as
/// "unknown field `rte`, expected one of `rate`, `framing`".
pub fn explain(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let hint = match quoted.next() {
        Some(word) if message.starts_with("unknown ") => nearest(word, quoted),
        _ => None,
    };
    format!("{message}{}", hint.map(did_you_mean).unwrap_or_default())
}

fn did_you_mean(word: &str) -> String {
    format!(" (did you mean '{word}'?)")
}

/// The word nearest to the one that was written, if any is near enough to have been meant.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Jaro–Winkler similarity from which on clap, too, takes a word for a slip.
    const NEAR: f64 = 0.7;
    known
        .into_iter()
        .map(|word| (strsim::jaro_winkler(written, word), word))
        .filter(|(similarity, _)| *similarity > NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

/// A closed set of kinds, each with settings of its own type, written as a table with a `type`.
///
/// Makes the enum, reading and writing; the word in front is what errors call it.
macro_rules! kinds {
    (
        $what:literal,
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$doc:meta])* $variant:ident($settings:ty) = $kind:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $name { $($(#[$doc])* $variant($settings),)* }

        impl $name {
            /// The names of all kinds.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The name of its kind.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind,)* }
            }

            /// Reads a table with a `type`.
            pub(crate) fn from_table(mut table: toml::Table) -> Result<Self, crate::settings::SettingsError> {
                let kind = crate::settings::take_kind($what, &mut table, Self::KINDS)?;
                match kind.as_str() {
                    $($kind => crate::settings::read($kind, table).map(Self::$variant),)*
                    _ => Err(crate::settings::unknown_kind($what, &kind, Self::KINDS)),
                }
            }

            /// The table with a `type` that [`Self::from_table`] reads.
            pub(crate) fn to_table(&self) -> toml::Table {
                match self { $(Self::$variant(settings) => crate::settings::write($kind, settings),)* }
            }
        }

        $(impl crate::settings::KindOf<$name> for $settings {
            fn of(any: &$name) -> Option<Self> {
                match any {
                    $name::$variant(settings) => Some(settings.clone()),
                    _ => None,
                }
            }
        })*

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&self.to_table(), serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            /// Reads a table with a `type`, or the name of a kind for its defaults.
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let table = match <toml::Value as serde::Deserialize>::deserialize(deserializer)? {
                    toml::Value::Table(table) => table,
                    value => toml::Table::from_iter([(crate::settings::TYPE.to_owned(), value)]),
                };
                Self::from_table(table).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use kinds;

#[cfg(test)]
mod tests;
