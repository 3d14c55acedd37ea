//! `plumb rate`: throughput.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_check::rate::{self, Plan};
use plumb_model::results::Direction;
use plumb_model::units::{ByteCount, parse_duration, si};
use plumb_wire::native::spec::PORT;

use crate::direction::Directions;
use crate::output::Output;
use crate::progress::Line;
use crate::target::{Target, command_line, interruptible};

/// What may be transferred unless said otherwise: ten seconds each way at 8 Gbit/s.
const BUDGET: ByteCount = ByteCount::from_bytes(20_000_000_000);

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end, where `plumb serve` runs
    host: String,
    #[command(flatten)]
    directions: Directions,
    /// How long each direction is measured
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    duration: Duration,
    /// Streams each way
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    streams: u32,
    /// Congestion control at both ends [default: cubic]
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// The most that may be transferred
    #[arg(long, value_name = "SIZE", default_value_t = BUDGET)]
    budget: ByteCount,
    /// Port of the responder
    #[arg(long, default_value_t = PORT)]
    port: u16,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(&arguments.host)?;
    let cancel = interruptible()?;
    let client = target.connect(arguments.port)?;
    let plan = Plan {
        name: target.name,
        address: target.address,
        command: command_line(),
        directions: arguments.directions.or(&[Direction::Down, Direction::Up]),
        duration: arguments.duration,
        streams: arguments.streams,
        cc: arguments.cc.clone(),
        budget: arguments.budget,
    };
    anstream::eprintln!(
        "plumb: {:.0} s against {}; it may transfer up to {} (--budget changes that)",
        plan.duration.as_secs_f64() * plan.directions.len() as f64,
        plan.name,
        si(plan.budget.bytes() as f64, "B")
    );
    let line = Line::new();
    let run = rate::run(client, &plan, &line, &cancel)?;
    drop(line);
    arguments.output.emit(run)
}
