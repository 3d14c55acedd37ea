//! `plumb compare`: what changed between two saved Runs.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use plumb_report::{compare, text};

use crate::output::{print_json, print_page, read_run, style};

#[derive(Args)]
pub(crate) struct Arguments {
    /// The Run before
    before: PathBuf,
    /// The Run after
    after: PathBuf,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let comparison = compare::compare(&read_run(&arguments.before)?, &read_run(&arguments.after)?);
    if arguments.json {
        print_json(&comparison)?;
    } else {
        print_page(&text::render_comparison(&comparison, &style()))?;
    }
    Ok(ExitCode::SUCCESS)
}
