//! `plumb owd`: each way of a path by itself.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_measure::owd::{Clocks, OneWay};
use plumb_measure::record::Judgement;
use plumb_model::protocol::Protocol;
use plumb_model::units::human_seconds;
use plumb_probe::{Key, Plan, Sizes};

use crate::output::{Output, say};
use crate::ping::probes::usual_port;
use crate::quantity::{time, time_above_zero};
use crate::status::is_shown;
use crate::target::{PathOptions, measure_towards};
use crate::usage::wrong;
use crate::words;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb owd server                   against plumb serve, ten seconds
  plumb owd --protocol stamp router  against any STAMP or TWAMP Light reflector
  plumb owd --protocol irtt server   against an irtt server
  plumb owd --key-file key server    authenticated STAMP

Limits: without synchronised clocks it is unknown how a constant difference of the two directions is shared; the table \
shows how far the delays are known. See `plumb explain one-way-delay`.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end
    host: String,
    #[command(flatten)]
    path: PathOptions,
    /// What answers: `plumb serve` (udp), a STAMP reflector or an irtt server [default: udp; stamp with a key]
    ///
    /// Their ports are 7586, 862 (RFC 8762) and 2112, unless HOST is `NAME:PORT`.
    #[arg(long, value_parser = words::some(&[Protocol::Udp, Protocol::Stamp, Protocol::Irtt]))]
    protocol: Option<Protocol>,
    /// The same as `--protocol stamp`
    #[arg(long, hide = true, conflicts_with = "protocol")]
    stamp: bool,
    /// Authenticate packets of STAMP or irtt by the key in this file
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

impl Arguments {
    fn protocol(&self) -> Protocol {
        let by_key = self.stamp || self.key_file.is_some();
        let usual = if by_key {
            Protocol::Stamp
        } else {
            Protocol::Udp
        };
        self.protocol.unwrap_or(usual)
    }
}

/// The key in a file, of the protocol that is to have it.
fn key_of(protocol: Protocol, file: &Path) -> anyhow::Result<Key> {
    match protocol {
        Protocol::Stamp => Ok(Key::Stamp(crate::key::read(file)?)),
        Protocol::Irtt => Ok(Key::Irtt(crate::key::of_irtt(file)?)),
        _ => Err(wrong(
            "the UDP echo has no key: leave --key-file out, or add --protocol stamp or irtt",
        )),
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (target, outlet) = arguments.path.towards(&arguments.host)?;
    let protocol = arguments.protocol();
    let key = arguments.key_file.as_deref();
    let key = key.map(|file| key_of(protocol, file)).transpose()?;
    let output = arguments.output.begin()?;
    let mut plan = Plan::new(protocol, &target.name, target.at(usual_port(protocol)));
    plan.key = key;
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
    // Where there is no progress line nothing else shows for how long it takes.
    if !is_shown() {
        let takes_s = arguments.interval.as_secs_f64() * arguments.count as f64;
        say(format_args!(
            "{}: {} probes in both directions, for {}",
            target.name,
            arguments.count,
            human_seconds(takes_s)
        ));
    }
    let mut step = OneWay { plan, clocks };
    measure_towards(&target.name, address, &mut step, Judgement::Part, output)
}
