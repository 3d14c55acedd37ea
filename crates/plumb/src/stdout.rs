//! Standard output. Nothing is printed past [`printable`].

use std::io::{self, Write as _};

use anyhow::Context as _;
use plumb_model::printable;
use serde::Serialize;

pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write(&printable::lines(text))
}

/// Prints a page that `plumb_report` has set, in its colours where they belong.
pub(crate) fn print_page(page: &str) -> anyhow::Result<()> {
    write(&printable::page(page))
}

/// Prints a document in JSON, on one line.
pub(crate) fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    write(&json(document)?)
}

/// A document in JSON on one line, which commands no terminal that it is shown on.
pub(crate) fn json(document: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(document)?;
    Ok(printable::json(&text).into_owned() + "\n")
}

/// Without the colours where they do not belong. A reader that stops, as `head` does, is not an error.
fn write(text: &str) -> anyhow::Result<()> {
    let written = crate::status::aside(|| {
        let mut stdout = anstream::stdout().lock();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
    });
    match written {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            Err(e).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}
