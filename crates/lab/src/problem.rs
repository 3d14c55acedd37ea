//! What is wrong with a scenario, and where in its text.

use std::fmt::Display;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with a scenario. The check that finds it knows the value; its callers add where the value is, from the
/// inside out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Problem {
    text: String,
    /// Where it is, the innermost step first.
    steps: Vec<Step>,
}

/// A step from a value of the text into one inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Element(usize),
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        let steps = Vec::new();
        Self { text, steps }
    }
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Problem {
    /// The problem is in the value of this key.
    pub(crate) fn at(mut self, key: &str) -> Self {
        self.steps.push(Step::Key(key.to_owned()));
        self
    }

    /// The problem is in this element of the array of this key.
    pub(crate) fn in_element(mut self, key: &str, number: usize) -> Self {
        self.steps.push(Step::Element(number));
        self.at(key)
    }

    /// The same with what it is about before it.
    pub(crate) fn of(self, what: impl Display) -> Self {
        let text = format!("{what}: {}", self.text);
        Self { text, ..self }
    }

    /// The line of the text, from 1, in which the innermost value is; none where the whole text is meant.
    pub(crate) fn line(&self, text: &str) -> Option<usize> {
        let document = DeTable::parse(text).ok()?;
        let (first, inside) = self.steps.split_last()?;
        let mut here = match first {
            Step::Key(key) => document.get_ref().get(key.as_str())?,
            Step::Element(_) => return None,
        };
        for step in inside.iter().rev() {
            match inner(here, step) {
                Some(inner) => here = inner,
                // A name is written in place of a list of one.
                None => break,
            }
        }
        Some(line_of(text, here.span().start))
    }
}

fn inner<'a, 'i>(value: &'a Spanned<DeValue<'i>>, step: &Step) -> Option<&'a Spanned<DeValue<'i>>> {
    match (value.get_ref(), step) {
        (DeValue::Table(table), Step::Key(key)) => table.get(key.as_str()),
        (DeValue::Array(array), Step::Element(number)) => array.get(*number),
        _ => None,
    }
}

/// The line, from 1, that has this byte of a text.
pub(crate) fn line_of(text: &str, byte: usize) -> usize {
    let before = text.bytes().take(byte);
    1 + before.filter(|byte| *byte == b'\n').count()
}

/// Checks each element of the array of this key.
pub(crate) fn each<T>(
    key: &str,
    elements: &[T],
    mut check: impl FnMut(&T) -> Result<(), Problem>,
) -> Result<(), Problem> {
    for (number, element) in elements.iter().enumerate() {
        check(element).map_err(|problem| problem.in_element(key, number))?;
    }
    Ok(())
}
