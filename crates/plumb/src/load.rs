//! `plumb load`: latency before, during and after load.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_check::{budget, full};
use plumb_model::units::{ByteCount, parse_duration};
use plumb_wire::native::spec::PORT;

use crate::direction::Directions;
use crate::output::Output;
use crate::progress::Line;
use crate::target::{Target, command_line, interruptible};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end, where `plumb serve` runs
    host: String,
    #[command(flatten)]
    directions: Directions,
    /// How long each load phase lasts; below 15 s large queues are not seen whole
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse_duration)]
    duration: Duration,
    /// Load streams each way
    #[arg(long, value_name = "N", default_value_t = full::STREAMS, value_parser = clap::value_parser!(u32).range(1..=64))]
    streams: u32,
    /// Congestion control of the load at both ends [default: cubic]
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// The most that may be transferred; phases get shorter to keep to it
    #[arg(long, value_name = "SIZE", default_value_t = budget::DEFAULT)]
    budget: ByteCount,
    /// Port of the responder, TCP and UDP
    #[arg(long, default_value_t = PORT)]
    port: u16,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(&arguments.host)?;
    let cancel = interruptible()?;
    let client = target.connect(arguments.port)?;
    let plan = full::Plan {
        name: target.name,
        address: target.address,
        command: command_line(),
        directions: arguments.directions.or(&full::CHECK_DIRECTIONS),
        phase: arguments.duration,
        streams: arguments.streams,
        cc: arguments.cc.clone(),
        budget: arguments.budget,
        judge: false,
    };
    anstream::eprintln!("plumb: {}", full::announcement(&plan));
    let line = Line::new();
    let run = full::run(client, &plan, &line, &cancel)?;
    drop(line);
    arguments.output.emit(run)
}
