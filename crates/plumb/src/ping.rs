//! `plumb ping`: round trips of small packets.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use plumb_check::ping;
use plumb_model::results::ProbeProtocol;
use plumb_model::units::parse_duration;
use plumb_probe::Plan;
use plumb_wire::native::spec::PORT;

use crate::load_options::positive_duration;
use crate::output::Output;
use crate::progress::Line;
use crate::target::{Target, command_line, interruptible};

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: without root, ICMP works where net.ipv4.ping_group_range allows it. Routers may answer
ICMP late or not at all although they forward everything else. A machine too busy to keep the
schedule is seen in the lateness of the probes.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end; also `NAME:PORT` and `[ADDRESS]:PORT`
    host: String,
    /// What probes are made of; UDP needs `plumb serve` at the far end
    #[arg(long, value_enum, default_value_t = Protocol::Icmp)]
    protocol: Protocol,
    /// How many probes to send
    #[arg(short, long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Time from one probe to the next, whatever became of it
    #[arg(short, long, value_name = "TIME", default_value = "200ms", value_parser = parse_duration)]
    interval: Duration,
    /// Bytes of payload [default: 56 for ICMP, 64 for UDP]
    #[arg(short, long, value_name = "BYTES")]
    size: Option<usize>,
    /// A probe that takes longer counts as lost
    #[arg(short = 'W', long, value_name = "TIME", default_value = "3s", value_parser = positive_duration)]
    timeout: Duration,
    /// UDP port of the responder, where HOST names none (HOST:PORT)
    #[arg(long, default_value_t = PORT)]
    port: u16,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Protocol {
    /// ICMP or ICMPv6 echo
    Icmp,
    /// The UDP echo of `plumb serve`
    Udp,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(&arguments.host)?;
    let output = arguments.output.begin()?;
    let stop = interruptible()?;
    let protocol = match arguments.protocol {
        Protocol::Icmp => ProbeProtocol::Icmp,
        Protocol::Udp => ProbeProtocol::Udp,
    };
    let mut plan = Plan::new(protocol, &target.name, target.at(arguments.port));
    plan.count = Some(arguments.count);
    plan.interval = arguments.interval;
    plan.timeout = arguments.timeout;
    plan.size_bytes = arguments.size.unwrap_or(plan.size_bytes);
    let line = Line::new();
    let run = ping::run(command_line(), plan, &line, &stop)?;
    drop(line);
    output.emit(run)?;
    Ok(ExitCode::SUCCESS)
}
