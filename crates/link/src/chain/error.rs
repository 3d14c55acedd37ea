//! Why a chain cannot be built, or changed.

use crate::settings::{SettingsError, nearest};
use crate::spec::{CellSpec, NamedCell};

/// A change of a chain that is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// No cell of this name.
    #[error("no cell '{name}' in this chain: {}", list(.name, .cells))]
    NoCell {
        /// What was asked for.
        name: String,
        /// The names that there are.
        cells: Vec<String>,
    },
    /// Another cell has this name.
    #[error("there is a cell '{name}' already: give this one another name")]
    Taken { name: String },
    /// A cell that both directions share is in one only.
    #[error(
        "both directions share a {kind}: write the cell '{name}' in up and in down, with the same settings"
    )]
    Unpaired {
        /// The name of the cell.
        name: String,
        kind: &'static str,
    },
    /// A file that was not read in advance.
    #[error(
        "the cell '{name}' would need the file '{file}', which is read only when a lab starts: give what is in it, as in distribution='{{ samples = [\"1ms\", \"3ms\"] }}'"
    )]
    File {
        /// The name of the cell.
        name: String,
        file: String,
    },
    #[error(transparent)]
    Set(#[from] SettingsError),
}

impl ChainError {
    pub(super) fn unpaired(named: &NamedCell) -> Self {
        Self::Unpaired {
            name: named.name.clone(),
            kind: named.cell.kind(),
        }
    }
}

/// Whether a cell has all that its settings name.
pub(super) fn check_complete(name: &str, cell: &CellSpec) -> Result<(), ChainError> {
    match cell.file() {
        None => Ok(()),
        Some(file) => Err(ChainError::File {
            name: name.to_owned(),
            file: file.to_owned(),
        }),
    }
}

fn list(name: &str, cells: &[String]) -> String {
    if cells.is_empty() {
        return "it has none".to_owned();
    }
    let hint = nearest(name, cells.iter().map(String::as_str))
        .map(|word| format!(" (did you mean '{word}'?)"));
    format!("it has {}{}", cells.join(", "), hint.unwrap_or_default())
}
