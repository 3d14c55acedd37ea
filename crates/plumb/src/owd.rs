//! `plumb owd`: each way of a path by itself.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_measure::owd::{self, Clocks, OneWay};
use plumb_measure::record::Judgement;
use plumb_probe::{Plan, Sizes};

use crate::output::Output;
use crate::quantity::{time, time_above_zero};
use crate::target::{PathOptions, measure_towards};

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb owd server                   against plumb serve, ten seconds
  plumb owd --stamp router:862       against any STAMP or TWAMP Light reflector
  plumb owd --key-file key server    authenticated STAMP

Limits: without synchronised clocks it is unknown how a constant difference of the two directions is shared; the table \
shows how far the delays are known. See `plumb explain one-way-delay`.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end
    host: String,
    #[command(flatten)]
    path: PathOptions,
    /// Ask a STAMP reflector (RFC 8762), by default on port 862
    #[arg(long)]
    stamp: bool,
    /// Authenticate STAMP packets by the key in this file
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Number of probes
    #[arg(short, long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Time between probes
    #[arg(short, long, value_name = "TIME", default_value = "50ms", value_parser = time)]
    interval: Duration,
    /// Bytes of UDP payload [default: the smallest]
    #[arg(short, long, value_name = "BYTES")]
    size: Option<usize>,
    /// DSCP of the probes, from 0 to 63; plumb serve answers with the same
    #[arg(long, value_name = "DSCP")]
    dscp: Option<u8>,
    /// How long to wait for answers after the last probe
    #[arg(short = 'W', long, value_name = "TIME", default_value = "3s", value_parser = time_above_zero)]
    timeout: Duration,
    /// Both ends read one clock: take their times as they are
    #[arg(long)]
    same_clock: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (target, outlet) = arguments.path.towards(&arguments.host)?;
    let key = arguments.key_file.as_deref().map(crate::key::read);
    let key = key.transpose()?;
    let output = arguments.output.begin()?;
    let (protocol, port) = owd::protocol(arguments.stamp || key.is_some());
    let mut plan = Plan::new(protocol, &target.name, target.at(port));
    plan.stamp_key = key;
    plan.count = Some(arguments.count);
    plan.interval = arguments.interval;
    plan.outlet = outlet;
    plan.timeout = arguments.timeout;
    plan.dscp = arguments.dscp;
    plan.sizes = Sizes::One(arguments.size.unwrap_or_else(|| plan.least_size_bytes()));
    let clocks = if arguments.same_clock {
        Clocks::Same
    } else {
        Clocks::Judge
    };
    let address = plan.target;
    let mut step = OneWay { plan, clocks };
    measure_towards(&target.name, address, &mut step, Judgement::Part, output)
}
