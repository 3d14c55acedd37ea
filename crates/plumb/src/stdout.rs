//! Standard output. Nothing is printed past [`printable`].

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use plumb_model::printable;
use plumb_net::process::{Signal, block_signals};
use serde::Serialize;

use crate::{charset, status};

pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write(&charset::shown(&printable::lines(text)))
}

/// Prints a page that `plumb_report` has set, in its colours where they belong.
pub(crate) fn print_page(page: &str) -> anyhow::Result<()> {
    write(&charset::shown(&printable::page(page)))
}

/// Prints what clap has set in its own colours.
pub(crate) fn print_styled(text: &str) -> anyhow::Result<()> {
    write(&charset::shown(text))
}

/// Whether a page that is longer than the terminal is shown by another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pager {
    None,
    WhereLong,
}

/// What pages where `PAGER` names nothing.
const USUAL_PAGER: &str = "less";

/// How `less` is to behave unless `LESS` says otherwise: with colours, without it where all fits, and leaving what was
/// read on the screen (less(1): -F, -R, -X).
const LESS: &str = "FRX";

/// Prints a page, by a pager where the terminal is too short for it.
pub(crate) fn show_page(page: &str, pager: Pager) -> anyhow::Result<()> {
    let page = printable::page(page);
    let page = charset::shown(&page);
    let rows = plumb_net::terminal::size().map(|(_, rows)| rows);
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let long = rows.is_some_and(|rows| page.lines().count() >= rows);
    if pager == Pager::WhereLong && long && !dumb && paged(&page) {
        return Ok(());
    }
    write(&page)
}

/// Shows a page by the program that the user chose; false where there is none.
fn paged(page: &str) -> bool {
    let program = std::env::var("PAGER").unwrap_or_else(|_| USUAL_PAGER.to_owned());
    if program.trim().is_empty() || program == "cat" {
        return false;
    }
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("exec {program}"));
    command.stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    // Ctrl-C is the pager's now.
    let _ = block_signals(&[Signal::SIGINT]);
    let bare;
    let text = match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => {
            bare = anstream::adapter::strip_str(page).to_string();
            bare.as_str()
        }
        _ => page,
    };
    // A reader who has seen enough closes the pipe.
    let _ = child
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(text.as_bytes()));
    // A shell that does not find the program ends with 127 (POSIX).
    child.wait().is_ok_and(|status| status.code() != Some(127))
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
    let written = status::aside(|| {
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
