//! Runs without what they show of people and places: addresses, names and identifiers are replaced by others, with a key the
//! same ones over several files.
//!
//! What is free text in a Run keeps only the words that plumb itself writes (`words`), numbers and times; every other word
//! came from outside, and is replaced. So nothing has to be known of a name to take it out.

mod fields;
mod names;
mod numbers;
mod prose;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use plumb_model::json;
use plumb_model::run::{Run, SCHEMA};
use plumb_wire::anonymous::Addresses;
use plumb_wire::keyed::{Key, key};
use serde_json::{Map, Value};

use fields::Class;
use words::Words;

/// What is in a redacted Run, for those who decide whether to hand it over.
pub const LEFT: &str = "times of day, rates, delays and all other measured numbers, ports, versions of the kernel and of plumb, kernel \
                        settings, kinds of hardware, and the words that plumb itself writes";

/// Takes addresses, names and identifiers out of Runs.
pub struct Redactor {
    key: Key,
    addresses: Addresses,
    words: Words,
    /// Names of several words, which text may hold whole.
    phrases: BTreeSet<String>,
    /// Every whole name, as a command may hold it.
    whole: BTreeSet<String>,
    /// Addresses of IPv4 in digits alone.
    digits: BTreeSet<String>,
    taken: Taken,
}

/// What was taken out, each thing counted once.
#[derive(Debug, Default)]
struct Taken {
    addresses: BTreeSet<String>,
    names: BTreeSet<String>,
}

impl Redactor {
    /// With a secret of any length: the same one replaces what is the same by the same.
    pub fn new(secret: &[u8]) -> Self {
        Self {
            key: key(secret),
            addresses: Addresses::new(secret),
            words: Words::built_in(),
            phrases: BTreeSet::new(),
            whole: BTreeSet::new(),
            digits: BTreeSet::new(),
            taken: Taken::default(),
        }
    }

    /// The Run without what identifies, and with a note that says so.
    ///
    /// # Errors
    /// When it cannot be written as JSON, or what came of it has not the shape of a Run.
    pub fn run(&mut self, run: &Run) -> serde_json::Result<Run> {
        let document = json::to_value(run)?;
        self.learn(&document, &mut Vec::new());
        let redacted = self.value(&document, &mut Vec::new());
        let mut redacted: Run = json::from_value(&redacted)?;
        SCHEMA.clone_into(&mut redacted.schema);
        redacted.notes.push(format!("Redacted: {LEFT} are left."));
        Ok(redacted)
    }

    /// What was taken out so far, and what is left, in sentences.
    pub fn summary(&self) -> String {
        format!(
            "Redacted: {} and {} were replaced, and places of routers left out. Left are {LEFT}.",
            counted(self.taken.addresses.len(), "address", "addresses"),
            counted(
                self.taken.names.len(),
                "name or other word",
                "names and other words"
            )
        )
    }

    /// Remembers whole names, and addresses in their other spellings.
    fn learn<'a>(&mut self, value: &'a Value, path: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => {
                self.digits.extend(numbers::of_address(text));
                if fields::class(path) == Class::Name {
                    if text.contains(char::is_whitespace) {
                        self.phrases.insert(text.clone());
                    }
                    self.whole.insert(text.clone());
                }
            }
            Value::Array(all) => all.iter().for_each(|each| self.learn(each, path)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    path.push(name);
                    self.learn(value, path);
                    path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn value<'a>(&mut self, value: &'a Value, path: &mut Vec<&'a str>) -> Value {
        let class = fields::class(path);
        match value {
            _ if class == Class::Place => Value::Null,
            Value::String(text) => Value::String(self.string(text, class)),
            Value::Array(all) => all.iter().map(|each| self.value(each, path)).collect(),
            Value::Object(fields) => {
                let mut redacted = Map::new();
                for (name, value) in fields {
                    path.push(name);
                    let value = self.value(value, path);
                    path.pop();
                    redacted.insert(self.compound(name), value);
                }
                Value::Object(redacted)
            }
            Value::Number(number) if class == Class::System => self.system(number.as_u64()).into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn string(&mut self, text: &str, class: Class) -> String {
        match class {
            Class::Name => self.name(text),
            Class::Compound => self.compound(text),
            Class::Command if self.whole.contains(text) => self.name(text),
            Class::Command | Class::Text | Class::System | Class::Place => self.prose(text),
        }
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}
