//! The kinds of rules that there are: a file and a line each.

use super::rule::Rule;
use super::{change, pattern, threshold};

/// Reads the settings of a rule, without those that all kinds have.
type Read = fn(toml::Table) -> Result<Box<dyn Rule>, String>;

const KINDS: [(&str, Read); 3] = [
    ("threshold", threshold::read),
    ("pattern", pattern::read),
    ("change", change::read),
];

/// A rule of the kind of that name.
///
/// # Errors
/// When there is no such kind, or its settings are wrong: why, in words.
pub fn rule(kind: &str, settings: toml::Table) -> Result<Box<dyn Rule>, String> {
    match KINDS.iter().find(|(name, _)| *name == kind) {
        Some((_, read)) => read(settings),
        None => {
            let names: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            Err(format!("no rule is of kind '{kind}'; there are {names}"))
        }
    }
}
