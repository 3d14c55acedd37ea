//! `plumb load`: latency before, during and after load.

use std::process::ExitCode;

use clap::Args;
use plumb_check::{budget, with_responder};

use crate::direction::Directions;
use crate::load_options::{Defaults, LoadOptions};
use crate::output::Output;
use crate::target::{Target, interruptible};

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: as for check. Round trips a minute (RPM) are not measured yet.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end, where `plumb serve` runs
    host: String,
    #[command(flatten)]
    directions: Directions,
    #[command(flatten)]
    load: LoadOptions,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(&arguments.host)?;
    arguments.output.check()?;
    // Before the client's threads start, so that none of them is hit.
    let cancel = interruptible()?;
    let client = target.connect(arguments.load.port)?;
    let defaults = Defaults {
        directions: arguments.directions.or(&with_responder::CHECK_DIRECTIONS),
        budget: budget::DEFAULT,
        duration: with_responder::PHASE,
        streams: with_responder::STREAMS,
        latency: true,
        judge: false,
    };
    arguments
        .output
        .emit(arguments.load.measure(&target, client, defaults, &cancel)?)?;
    Ok(ExitCode::SUCCESS)
}
