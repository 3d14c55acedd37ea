//! `plumb lab from`: the scenario that reproduces what a Run measured.

use std::path::Path;
use std::process::ExitCode;

use plumb_lab::twin::twin;

use crate::output::{print, read_run, say};
use crate::save;

pub(super) fn from(run: &Path, output: Option<&Path>) -> anyhow::Result<ExitCode> {
    output.map_or(Ok(()), save::check)?;
    let twin = twin(&read_run(run)?)?;
    let Some(file) = output else {
        // What is not known stands at its beginning.
        print(&twin.text)?;
        return Ok(ExitCode::SUCCESS);
    };
    save::save(file, &twin.text)?;
    for unknown in &twin.unknown {
        say(format_args!("not known: {unknown}"));
    }
    let named = file.display();
    print(&format!(
        "Measure in it: plumb lab run {named} -- plumb check server\nTry the Run's fixes in it: plumb rehearse {}\n",
        run.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
