//! `plumb mtu`: how large packets may be on a path.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_measure::mtu::{PathMtu, Wanted};
use plumb_measure::record::Judgement;
use plumb_model::protocol::Protocol;

use crate::output::Output;
use crate::quantity::time_above_zero;
use crate::target::{PathOptions, measure_towards};
use crate::words;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb mtu server              the largest packet, and after which hop it ends
  plumb mtu --no-icmp server    by silence alone, as where ICMP is filtered
  plumb mtu -6 server:443       over IPv6; the segment size by port 443

Ctrl-C shows what was known by then.

Limits: a firewall that drops large echoes alone looks like a black hole before the far end; UDP probes are tried then. \
Hops that do not answer are skipped. See `plumb explain mtu`.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end
    ///
    /// With a port (HOST:PORT), that port is asked for TCP's maximum segment size.
    host: String,
    #[command(flatten)]
    path: PathOptions,
    /// Ignore what routers report: find sizes by silence alone
    #[arg(long)]
    no_icmp: bool,
    /// Protocol of the probes [default: icmp, then udp]
    ///
    /// Echoes come back as large as they went, so that with ICMP sizes are of both directions. UDP is tried where it shows
    /// more.
    #[arg(long, value_parser = words::some(&[Protocol::Icmp, Protocol::Udp]))]
    protocol: Option<Protocol>,
    /// Largest packet to try [default: the interface's MTU]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(68..))]
    max: Option<u16>,
    /// How many hops to probe
    #[arg(short = 'm', long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u8).range(1..=255))]
    max_hops: u8,
    /// How often a probe is sent before it counts as lost
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    tries: u32,
    /// Longest wait for an answer
    #[arg(short = 'W', long, value_name = "TIME", default_value = "1s", value_parser = time_above_zero)]
    timeout: Duration,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let wanted = Wanted {
        largest_bytes: arguments.max,
        listen: !arguments.no_icmp,
        protocol: arguments.protocol,
        max_hops: arguments.max_hops,
        tries: arguments.tries,
        timeout: arguments.timeout,
        ..Wanted::of(arguments.path.path_towards(&arguments.host)?)
    };
    let output = arguments.output.begin()?;
    let (name, address) = (&wanted.target.name, wanted.target.address);
    let mut step = PathMtu { wanted: &wanted };
    measure_towards(name, address, &mut step, Judgement::Part, output)
}
