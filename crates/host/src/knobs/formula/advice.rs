//! What a rule says.

use crate::knobs::Knob;

/// What should become of a knob.
#[derive(Debug, Clone, PartialEq)]
pub enum Advice {
    /// Give it this value.
    Set {
        value: String,
        why: String,
        /// What is to be seen then.
        effect: String,
        /// Memory that one connection may hold then, in bytes.
        memory_bytes: Option<u64>,
    },
    Leave {
        why: String,
    },
}

/// That a knob does not matter on a path, or for what a host does.
pub(super) fn no_matter(knob: &Knob) -> String {
    format!("it does not matter: {}", in_a_sentence(&knob.not))
}

/// A sentence of the catalogue as a part of another; a name, such as IPv6, keeps its capitals.
pub(super) fn in_a_sentence(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            format!("{}{second}{}", first.to_lowercase(), letters.as_str())
        }
        _ => text.to_owned(),
    }
}

pub(super) fn set(value: &str, why: String, effect: &str) -> Advice {
    Advice::Set {
        value: value.to_owned(),
        why,
        effect: effect.to_owned(),
        memory_bytes: None,
    }
}

pub(super) fn same(present: Option<&str>, value: &str) -> bool {
    present.is_some_and(|present| present.trim().eq_ignore_ascii_case(value))
}

pub(super) fn numbers(text: Option<&str>) -> Option<Vec<u64>> {
    text?.split_whitespace().map(|n| n.parse().ok()).collect()
}
