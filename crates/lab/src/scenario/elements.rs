//! Which element of an array inside a cell cannot be read. What reads a cell knows the place of the whole cell alone.

use plumb_link::spec::NamedCell;
use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Table, Value};

use crate::problem::line_of;

/// The line, from 1, of the element that an error about a cell comes of; none where it comes of no element.
pub(super) fn line(text: &str, error: &toml::de::Error) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let links = document.get_ref().get("link")?.get_ref().as_array()?;
    let chains = links
        .iter()
        .flat_map(|link| ["up", "down"].map(|way| link.get_ref().get(way)));
    let mut cells = chains
        .flatten()
        .filter_map(|chain| chain.get_ref().as_array())
        .flatten();
    let written = cells.find(|cell| Some(cell.span()) == error.span())?;
    let cell = Table::deserialize(ValueDeserializer::from(written.clone())).ok()?;
    let fails = |cell: &Table| {
        let read = NamedCell::deserialize(Value::Table(cell.clone()));
        read.is_err_and(|other| other.message() == error.message())
    };
    let element = wrong_element(written, &cell, &fails)?;
    Some(line_of(text, element.span().start))
}

/// Searches the arrays of a table, and of the tables inside it, for the element that causes an error. An array contains
/// it if the error is gone with the array empty. The element is then the last of the shortest beginning of the array
/// that still causes the error.
fn wrong_element<'a, 'i>(
    written: &'a Spanned<DeValue<'i>>,
    table: &Table,
    fails: &dyn Fn(&Table) -> bool,
) -> Option<&'a Spanned<DeValue<'i>>> {
    table.iter().find_map(|(key, value)| {
        let written = written.get_ref().get(key.as_str())?;
        let with = |value: Value| {
            let mut changed = table.clone();
            changed.insert(key.clone(), value);
            changed
        };
        match value {
            Value::Array(elements) => {
                let fails_with = |count: usize| {
                    let first = elements.get(..count).unwrap_or_default();
                    fails(&with(Value::Array(first.to_vec())))
                };
                if fails_with(0) {
                    return None;
                }
                let (mut good, mut bad) = (0, elements.len());
                while good + 1 < bad {
                    let middle = good.midpoint(bad);
                    *(if fails_with(middle) {
                        &mut bad
                    } else {
                        &mut good
                    }) = middle;
                }
                written.get_ref().get(good)
            }
            Value::Table(inner) => wrong_element(written, inner, &|inner| {
                fails(&with(Value::Table(inner.clone())))
            }),
            _ => None,
        }
    })
}
