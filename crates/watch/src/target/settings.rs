//! The settings of one target, as its file has them: each is taken once, and what is left is unknown.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use plumb_model::units::parse_duration;
use serde::de::DeserializeOwned;
use toml::{Spanned, Value};

/// What is wrong, and where in the file.
pub(crate) type Wrong = (Range<usize>, String);

/// The entries of one table, by their names.
pub(crate) type Entries = BTreeMap<String, Spanned<Value>>;

/// The settings of one target.
#[derive(Debug)]
pub(crate) struct Settings {
    /// Where the whole entry stands.
    span: Range<usize>,
    left: Entries,
    taken: BTreeMap<&'static str, Range<usize>>,
}

impl Settings {
    pub(crate) fn new(span: Range<usize>, left: Entries) -> Self {
        Self {
            span,
            left,
            taken: BTreeMap::new(),
        }
    }

    /// A setting, where it is there.
    pub(crate) fn take<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
    ) -> Result<Option<T>, Wrong> {
        let Some(found) = self.left.remove(key) else {
            return Ok(None);
        };
        let span = found.span();
        self.taken.insert(key, span.clone());
        match found.into_inner().try_into() {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err((span, error.message().to_owned())),
        }
    }

    /// A setting that has to be there; `example` is how it is written.
    pub(crate) fn need<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
        example: &str,
    ) -> Result<T, Wrong> {
        let missing = || (self.span.clone(), format!("it lacks {example}"));
        let missing = missing();
        self.take(key)?.ok_or(missing)
    }

    /// A time of these lengths, with its unit.
    pub(crate) fn time(
        &mut self,
        key: &'static str,
        (least, most): (Duration, Duration),
    ) -> Result<Option<Duration>, Wrong> {
        let Some(text) = self.take::<String>(key)? else {
            return Ok(None);
        };
        match parse_duration(&text) {
            Ok(time) if (least..=most).contains(&time) => Ok(Some(time)),
            Ok(_) => Err(self.wrong(
                key,
                format!(
                    "{key} is between {} s and {} s",
                    least.as_secs_f64(),
                    most.as_secs_f64()
                ),
            )),
            Err(_) => Err(self.wrong(key, "write a time with its unit, such as \"10s\"")),
        }
    }

    /// A port; without it the usual one.
    pub(crate) fn port(&mut self, usual: u16) -> Result<u16, Wrong> {
        match self.take::<u16>("port")? {
            Some(0) => Err(self.wrong("port", "a port is 1 to 65535")),
            port => Ok(port.unwrap_or(usual)),
        }
    }

    /// What is wrong with a setting that was taken, or with the whole of it where it is not there.
    pub(crate) fn wrong(&self, key: &str, why: impl Into<String>) -> Wrong {
        let span = self.taken.get(key).unwrap_or(&self.span);
        (span.clone(), why.into())
    }

    /// Whether a setting is there that was not taken.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.left.contains_key(key)
    }

    /// A setting that this kind does not have: why not.
    pub(crate) fn refuse(&mut self, key: &'static str, why: &str) -> Result<(), Wrong> {
        match self.left.get(key) {
            Some(found) => Err((found.span(), why.to_owned())),
            None => Ok(()),
        }
    }

    /// That something is missing; where a setting is left that this kind does not have, that it is unknown, for it may be
    /// that one misspelt.
    pub(crate) fn missing(&self, why: impl Into<String>) -> Wrong {
        match self.left.iter().next() {
            Some((key, value)) => (value.span(), format!("unknown field `{key}`")),
            None => (self.span.clone(), why.into()),
        }
    }

    /// Sees that nothing is left of a target.
    pub(crate) fn end(self, probe: &str) -> Result<(), Wrong> {
        self.end_of(&format!("a target with probe = \"{probe}\""))
    }

    /// Sees that nothing is left of what is called so.
    pub(crate) fn end_of(self, what: &str) -> Result<(), Wrong> {
        match self.left.into_iter().next() {
            Some((key, value)) => Err((value.span(), format!("unknown field `{key}` of {what}"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The settings of this text.
    pub(crate) fn settings(text: &str) -> Settings {
        Settings::new(0..text.len(), toml::from_str(text).unwrap())
    }

    #[test]
    fn what_is_not_taken_is_unknown() {
        let mut some = settings("port = 7\nodd = 1\n");
        assert_eq!(some.port(9).unwrap(), 7);
        let (span, why) = some.end("tcp").unwrap_err();
        assert_eq!(
            (span, why.starts_with("unknown field `odd`")),
            (15..16, true)
        );
    }

    #[test]
    fn wrong_types_and_times_are_refused_in_words() {
        let (_, why) = settings("port = \"x\"").port(9).unwrap_err();
        assert!(why.contains("invalid type"), "{why}");
        let bounds = (Duration::from_secs(1), Duration::from_secs(9));
        for (text, words) in [
            ("within = \"10s\"", "within is between 1 s and 9 s"),
            ("within = \"soon\"", "write a time with its unit"),
        ] {
            let (_, why) = settings(text).time("within", bounds).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
