//! `plumb check`: the main job.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_check::{budget, full, limited};
use plumb_load::client::ClientError;
use plumb_model::units::{ByteCount, parse_duration};
use plumb_wire::native::spec::PORT;

use crate::output::Output;
use crate::progress::Line;
use crate::target::{Target, command_line, interruptible};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end, where `plumb serve` runs
    host: String,
    /// Port of the responder, TCP and UDP
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// The most that may be transferred; phases get shorter to keep to it
    #[arg(long, value_name = "SIZE", default_value_t = budget::DEFAULT)]
    budget: ByteCount,
    /// How long each load phase lasts; below 15 s large queues are not seen whole
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse_duration)]
    duration: Duration,
    /// Load streams each way
    #[arg(long, value_name = "N", default_value_t = full::STREAMS, value_parser = clap::value_parser!(u32).range(1..=64))]
    streams: u32,
    /// Congestion control of the load at both ends [default: cubic]
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(&arguments.host)?;
    let cancel = interruptible()?;
    let client = match target.connect(arguments.port) {
        Ok(client) => client,
        Err(
            why @ (ClientError::Refused { .. }
            | ClientError::TimedOut { .. }
            | ClientError::Unreachable { .. }
            | ClientError::Mute { .. }
            | ClientError::NotPlumb { .. }),
        ) => {
            let line = Line::new();
            let run = limited::run(
                command_line(),
                &target.name,
                target.address,
                &why.to_string(),
                &line,
                &cancel,
            )?;
            drop(line);
            return arguments.output.emit(run);
        }
        Err(e) => return Err(e.into()),
    };
    let plan = full::Plan {
        name: target.name,
        address: target.address,
        command: command_line(),
        directions: full::CHECK_DIRECTIONS.to_vec(),
        phase: arguments.duration,
        streams: arguments.streams,
        cc: arguments.cc.clone(),
        budget: arguments.budget,
        judge: true,
    };
    anstream::eprintln!("plumb: {}", full::announcement(&plan));
    let line = Line::new();
    let run = full::run(client, &plan, &line, &cancel)?;
    drop(line);
    arguments.output.emit(run)
}
