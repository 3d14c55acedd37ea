//! `plumb report`: a saved Run as a page or as text.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use plumb_report::{compare, html, text};

use crate::output::{print, read_run, save, style};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The Run
    run: PathBuf,
    /// A second Run, made after a change: both are shown side by side
    after: Option<PathBuf>,
    /// Write one HTML page that needs nothing else; without it, text is printed
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let run = read_run(&arguments.run)?;
    let after = arguments.after.as_deref().map(read_run).transpose()?;
    match (&arguments.output, after) {
        (Some(file), None) => save(file, &html::render(&run))?,
        (Some(file), Some(after)) => {
            let comparison = compare::compare(&run, &after);
            save(file, &html::render_comparison(&run, &after, &comparison))?;
        }
        (None, None) => print(&text::render(&run, &style()))?,
        (None, Some(after)) => {
            print(&text::render_comparison(
                &compare::compare(&run, &after),
                &style(),
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
