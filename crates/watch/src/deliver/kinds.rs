//! The kinds of deliveries that there are: a file and a line each.

use super::delivery::Delivery;
use super::{alertmanager, exec, mail, webhook};

/// Reads the settings of a delivery, without those that all kinds have.
type Read = fn(toml::Table) -> Result<Box<dyn Delivery>, String>;

const KINDS: [(&str, Read); 4] = [
    ("exec", exec::read),
    ("mail", mail::read),
    ("webhook", webhook::read),
    ("alertmanager", alertmanager::read),
];

/// A delivery of the kind of that name.
///
/// # Errors
/// When there is no such kind, or its settings are wrong: why, in words.
pub fn delivery(kind: &str, settings: toml::Table) -> Result<Box<dyn Delivery>, String> {
    match KINDS.iter().find(|(name, _)| *name == kind) {
        Some((_, read)) => read(settings),
        None => {
            let names: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            Err(format!(
                "no delivery is of kind '{kind}'; there are {names}"
            ))
        }
    }
}
