//! `plumb host`: this machine, read and judged.

use std::process::ExitCode;

use clap::Args;

use crate::output::Output;
use crate::target::command_line;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb host                  what is fine, what is not, for whom it matters
  plumb host --json | jq '.measurements[0].result.interfaces[0].rings'

Limits: counters are since the machine or the interface began, and say nothing of when; drivers tell
what they like. Without root, sockets of other users have no owner and optical modules stay silent.
Inside a lab the interfaces, counters and settings of TCP are the node's, the rest is the machine's.
`plumb explain host` says what each check looks at.";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let output = arguments.output.begin()?;
    output.emit(plumb_check::host::run(command_line()))?;
    Ok(ExitCode::SUCCESS)
}
