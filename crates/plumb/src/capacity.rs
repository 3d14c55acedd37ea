//! `plumb capacity`: what each line of a path could carry.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use plumb_measure::capacity::{LineCapacity, Wanted};
use plumb_measure::record::Judgement;
use plumb_model::protocol::Protocol;
use plumb_model::units::ByteCount;

use crate::output::{Output, say};
use crate::quantity::{time_above_zero, time_from};
use crate::target::{PathOptions, measure_towards};
use crate::words;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb capacity server                      every link, and the narrowest one
  plumb capacity --only trains server        a few seconds: the narrowest alone
  plumb capacity --only hops -t 2m server    fast or noisy links need longer
  plumb capacity --train 1000 server         find token buckets of up to 1.5 MB

Limits: links above some 400 Mbit/s are shown as `at least`; a switch inside a link makes it seem slower; routers that \
answer seldom need a longer -t; IPv6 routers quote so much that fast links need more answers. Run `plumb serve` at the \
far end for trains of the forward path alone. See `plumb explain capacity`.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end
    ///
    /// With a port (HOST:PORT), the responder is asked there.
    host: String,
    #[command(flatten)]
    path: PathOptions,
    /// Measure only one of the two
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Protocol of the probes of hops [default: udp]
    ///
    /// Answers to UDP are small, so its figures are of the forward path; with ICMP the figures of the last link are of both
    /// directions. ICMP is the default where the far end answers nothing else.
    #[arg(long, value_parser = words::some(&[Protocol::Udp, Protocol::Icmp]))]
    protocol: Option<Protocol>,
    /// How long to probe hops at most
    ///
    /// It ends sooner when all is known.
    #[arg(short = 't', long, alias = "time", value_name = "TIME", default_value = "30s", value_parser = time_above_zero)]
    duration: Duration,
    /// Mean time between probes of hops
    ///
    /// Longer where the links are slow.
    #[arg(short, long, value_name = "TIME", default_value = "10ms", value_parser = time_from(LEAST_INTERVAL, "faster than one probe every 1ms is load"))]
    interval: Duration,
    /// The most that may be sent; hops may take half of it where trains follow
    #[arg(long, value_name = "SIZE", default_value = "20MB")]
    bytes: ByteCount,
    /// Packets of the longest train
    ///
    /// A train has to outlast a token bucket to see the rate behind it.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(8..=1000))]
    train: u32,
    /// The largest packet, in bytes [default: the interface's MTU]
    #[arg(short, long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(200..))]
    size: Option<u16>,
    /// How many hops to probe
    #[arg(short = 'm', long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u8).range(1..=255))]
    max_hops: u8,
    /// Longest wait for an answer of the first probes
    #[arg(short = 'W', long, value_name = "TIME", default_value = "1s", value_parser = time_above_zero)]
    timeout: Duration,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Each line, by single packets
    Hops,
    /// The narrowest place, by trains of packets
    Trains,
}

/// A pause that does not make a load of probes.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let wanted = Wanted {
        target: arguments.path.path_towards(&arguments.host)?,
        protocol: arguments.protocol,
        hops: arguments.only != Some(Part::Trains),
        longest_train: match arguments.only {
            Some(Part::Hops) => 0,
            _ => arguments.train,
        },
        max_hops: arguments.max_hops,
        largest_bytes: arguments.size,
        interval: arguments.interval,
        time: arguments.duration,
        bytes: arguments.bytes.bytes(),
        timeout: arguments.timeout,
    };
    let output = arguments.output.begin()?;
    say(wanted.announcement());
    let (name, address) = (&wanted.target.name, wanted.target.address);
    let mut step = LineCapacity { wanted: &wanted };
    measure_towards(name, address, &mut step, Judgement::Part, output)
}
