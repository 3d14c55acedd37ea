//! What a trial draws: free parameters by name, and the texts that use them.
//!
//! `"${up_rate * 0.9}"` in a text is the value of what stands between the braces: names and amounts, joined by `*` and
//! `+` from left to right.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use toml::{Table, Value};

use crate::quantity::Quantity;
use crate::seed;

/// What a parameter may be.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Draw {
    /// `["10mbit", "50mbit"]`: from the first to the second, by the logarithm where that spans a decade.
    Range([Bound; 2]),
    /// `{ one_of = ["up", "down"] }`: each as likely.
    Choice(Choice),
    /// `"${rtt * 0.5}"`: follows from others.
    Text(String),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    one_of: Vec<String>,
}

/// A bound may be written as text or as a number.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bound {
    Text(String),
    Whole(i64),
    Number(f64),
}

impl Bound {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Whole(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
        }
    }
}

/// Parameters by their names.
pub(crate) type Draws = BTreeMap<String, Draw>;

/// One parameter of a change whose share is given: how severe the trial is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Graded<'a> {
    pub(crate) name: &'a str,
    /// Where in its range it is, 0 to 1.
    pub(crate) share: f64,
}

/// The parameters of one trial, and of one change in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawer<'a> {
    pub(crate) seed: u64,
    pub(crate) base: &'a Draws,
    /// Of the change, by its name; it may hide one of the base.
    pub(crate) change: (&'a str, &'a Draws),
    pub(crate) graded: Option<Graded<'a>>,
}

/// A parameter that follows from itself would never be known.
const DEEPEST: usize = 8;

impl Drawer<'_> {
    /// All that was drawn, by name.
    pub(crate) fn all(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let names = self.base.keys().chain(self.change.1.keys());
        let all = names.map(|name| Ok((name.clone(), self.value(name, 0)?)));
        all.collect()
    }

    fn value(&self, name: &str, depth: usize) -> anyhow::Result<String> {
        if depth > DEEPEST {
            bail!("'{name}' follows from itself");
        }
        let of_change = self.change.1.get(name).map(|draw| (self.change.0, draw));
        let of_base = || self.base.get(name).map(|draw| ("base", draw));
        let Some((layer, draw)) = of_change.or_else(of_base) else {
            bail!("there is no parameter '{name}'");
        };
        let share = match self.graded {
            Some(graded) if graded.name == name && of_change.is_some() => graded.share,
            _ => seed::share(&[&self.seed.to_string(), layer, name]),
        };
        match draw {
            Draw::Text(text) => self.fill(text, depth + 1),
            Draw::Choice(Choice { one_of }) => {
                let at = (share * one_of.len() as f64) as usize;
                let chosen = one_of.get(at).or(one_of.last());
                self.fill(chosen.context("a choice of nothing")?, depth + 1)
            }
            Draw::Range([from, to]) => {
                let bound = |bound: &Bound| -> anyhow::Result<Quantity> {
                    amount(&self.fill(&bound.text(), depth + 1)?)
                };
                let (from, to) = (bound(from)?, bound(to)?);
                let drawn = Quantity::between(from, to, share);
                let drawn = drawn.with_context(|| {
                    format!("nothing is between {from} and {to} of '{name}': write two of one unit, the smaller first")
                })?;
                Ok(drawn.to_string())
            }
        }
    }

    /// The text with the values of what it names.
    pub(crate) fn text(&self, text: &str) -> anyhow::Result<String> {
        self.fill(text, 0)
    }

    fn fill(&self, text: &str, depth: usize) -> anyhow::Result<String> {
        let mut text = text.to_owned();
        // Each turn takes one pair of braces out, the innermost first; a value has none.
        while let Some(outer) = text.find("${") {
            let end = text.get(outer..).and_then(|rest| rest.find('}'));
            let end = outer + end.context("a ${ without its }")?;
            let before = text.get(..end).unwrap_or_default();
            let start = before.rfind("${").unwrap_or(outer);
            let inside = text.get(start + 2..end).unwrap_or_default();
            let value = self.computed(inside, depth)?;
            text.replace_range(start..=end, &value);
        }
        Ok(text)
    }

    fn computed(&self, expression: &str, depth: usize) -> anyhow::Result<String> {
        let mut words = expression.split_whitespace();
        let mut result = self.term(words.next().context("an empty ${}")?, depth)?;
        while let Some(operator) = words.next() {
            let other = words.next().context("nothing after an operator")?;
            let (left, right) = (amount(&result)?, amount(&self.term(other, depth)?)?);
            let value = match operator {
                "*" => left.times(right),
                "/" => left.over(right),
                "+" => left.plus(right),
                other => bail!("'{other}' is none of *, / and +"),
            };
            let value = value.with_context(|| format!("{left} {operator} {right} has no unit"))?;
            result = value.to_string();
        }
        Ok(result)
    }

    fn term(&self, word: &str, depth: usize) -> anyhow::Result<String> {
        match Quantity::read(word) {
            Some(amount) => Ok(amount.to_string()),
            None => self.value(word, depth + 1),
        }
    }

    /// The table with the values of what its keys and texts name. What is a number and nothing else becomes one.
    pub(crate) fn table(&self, table: &Table) -> anyhow::Result<Table> {
        let filled = table
            .iter()
            .map(|(key, value)| Ok((self.text(key)?, self.toml(value)?)));
        filled.collect()
    }

    fn toml(&self, value: &Value) -> anyhow::Result<Value> {
        Ok(match value {
            Value::String(text) => {
                let filled = self.text(text)?;
                match (text.starts_with("${"), filled.parse::<i64>()) {
                    (true, Ok(number)) => Value::Integer(number),
                    _ => Value::String(filled),
                }
            }
            Value::Array(values) => {
                let filled: anyhow::Result<_> = values.iter().map(|v| self.toml(v)).collect();
                Value::Array(filled?)
            }
            Value::Table(table) => Value::Table(self.table(table)?),
            other => other.clone(),
        })
    }
}

fn amount(text: &str) -> anyhow::Result<Quantity> {
    Quantity::read(text).with_context(|| format!("'{text}' is no amount"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn draws(text: &str) -> Draws {
        toml::from_str(text).unwrap()
    }

    fn drawer<'a>(base: &'a Draws, change: &'a Draws, seed: u64) -> Drawer<'a> {
        Drawer {
            seed,
            base,
            change: ("fault", change),
            graded: None,
        }
    }

    #[test]
    fn texts_are_filled_with_what_was_drawn() {
        let base = draws(
            "rate = [\"20mbit\", \"20mbit\"]\nup_rate = \"${rate}\"\nend = \"up\"\nrtt = \"40ms\"",
        );
        let change = draws("dir = { one_of = [\"up\", \"up\"] }\nbdp = \"${rate * rtt}\"");
        let drawer = drawer(&base, &change, 1);
        for (text, filled) in [
            ("line.${dir}", "line.up"),
            ("${bdp * 0.5}", "50kB"),
            ("${rtt + 5ms * 2}", "90ms"),
            ("${${end}_rate}", "20mbit"),
            ("plain", "plain"),
        ] {
            assert_eq!(drawer.text(text).unwrap(), filled);
        }
        for wrong in ["${rate", "${}", "${nobody}", "${rate - rtt}", "${dir * 2}"] {
            assert!(drawer.text(wrong).is_err(), "{wrong}");
        }
        let table = toml::from_str("bytes = \"${1 * 1400}\"\n\"${dir}\" = [\"${rtt}\"]").unwrap();
        let filled = drawer.table(&table).unwrap();
        assert_eq!(filled.to_string(), "bytes = 1400\nup = [\"40ms\"]\n");
    }

    #[test]
    fn the_seed_decides_and_a_new_parameter_changes_no_other() {
        let base = draws("a = [\"1ms\", \"9ms\"]");
        let more = draws("a = [\"1ms\", \"9ms\"]\naa = [1, 2]");
        let none = Draws::new();
        let a = |base, seed| drawer(base, &none, seed).text("${a}").unwrap();
        assert_eq!(a(&base, 1), a(&base, 1));
        assert_ne!(a(&base, 1), a(&base, 2));
        assert_eq!(a(&base, 1), a(&more, 1));
    }

    #[test]
    fn the_graded_parameter_has_its_share() {
        let none = Draws::new();
        let change = draws("hold = [\"100ms\", \"200ms\"]");
        let graded = Some(Graded {
            name: "hold",
            share: 0.25,
        });
        let drawer = Drawer {
            graded,
            ..drawer(&none, &change, 1)
        };
        assert_eq!(drawer.text("${hold}").unwrap(), "125ms");
    }

    #[test]
    fn what_follows_from_itself_is_refused() {
        let none = Draws::new();
        let circle = draws("a = \"${b}\"\nb = \"${a}\"");
        let error = drawer(&none, &circle, 1).all().unwrap_err();
        assert!(error.to_string().contains("follows from itself"), "{error}");
    }
}
