//! `plumb watch backup`: a copy of the history, also while it is written to.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use plumb_model::units::si;
use plumb_watch::store::backup::back_up;

use super::history::located;
use crate::output::say;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The file that says what is watched, or a database
    file: PathBuf,
    /// File for the copy, which must not be there yet
    copy: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (path, _) = located(&arguments.file)?;
    let bytes = back_up(&path, &arguments.copy)?;
    say(format_args!(
        "{}: a copy of {}, {}",
        arguments.copy.display(),
        path.display(),
        si(bytes as f64, "B")
    ));
    Ok(ExitCode::SUCCESS)
}
