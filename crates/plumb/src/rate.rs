//! `plumb rate`: throughput.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_model::results::Direction;
use plumb_model::units::ByteCount;

use crate::direction::Directions;
use crate::load_options::{Defaults, LoadOptions};
use crate::output::Output;
use crate::target::{Target, interruptible};

/// What may be transferred unless said otherwise: ten seconds each way at 8 Gbit/s.
const BUDGET: ByteCount = ByteCount::from_bytes(20_000_000_000);

/// How long each direction is measured unless said otherwise: slow start is over on any path.
const DURATION: Duration = Duration::from_secs(10);

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: one TCP connection may be held back by a buffer or a processor; the shares of time say by
which. Both ends' processor use counts plumb's own process only.";

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
        directions: arguments.directions.or(&[Direction::Down, Direction::Up]),
        budget: BUDGET,
        duration: DURATION,
        streams: 1,
        latency: false,
        judge: false,
    };
    arguments
        .output
        .emit(arguments.load.measure(&target, client, defaults, &cancel)?)?;
    Ok(ExitCode::SUCCESS)
}
