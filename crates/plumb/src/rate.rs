//! `plumb rate`: throughput.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use plumb_measure::profiles::catalogue::{Profile, find};
use plumb_measure::times::Times;
use plumb_measure::traffic_classes::Shape;
use plumb_model::results::Direction;
use plumb_model::units::{BitRate, ByteCount, duration};
use plumb_wire::native::control::flow::quic::QuicFlow;
use plumb_wire::native::control::flow::{Flow, TcpFlow};

use crate::far_end::Protocol;
use crate::files::Files;
use crate::load_options::{Defaults, LoadArguments, enough_budget};
use crate::mix::Mix;
use crate::output::say;
use crate::quantity::rate_above_zero;
use crate::tcp_options::{TcpOptions, pacing_bps};
use crate::trust::TrustOptions;
use crate::udp_options::{Bandwidth, UdpOptions, bandwidth};
use crate::usage::wrong;

/// What may be transferred unless said otherwise: ten seconds in each direction at 8 Gbit/s.
const BUDGET: ByteCount = ByteCount::from_bytes(20_000_000_000);

/// How long each direction is measured unless said otherwise: slow start is over on any path.
const DURATION: Duration = Duration::from_secs(10);

/// One connection is what most applications have.
const STREAMS: u32 = 1;

/// No link is slower: a bare number that is less was meant in another unit.
const SLOWEST_BPS: u64 = 1_000;

/// The same where something else is to end it.
const LONGEST: Duration = Duration::from_secs(60);

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb rate server -t 10 -R         from the server to here, for 10 s
  plumb rate server -P 4 --both      four streams in each direction at once
  plumb rate server -u -b 50M        UDP at 50 Mbit/s
  plumb rate server --quic --up      QUIC to the server
  plumb rate server --available      the highest UDP rate at 1 % of loss

Limits: one TCP connection may be limited by a buffer or a processor; the shares of time show by which. The processor use of \
both ends counts plumb's own process. The far end sets its buffers when a TCP connection stands, so its window scale is \
set by its kernel's own limits. UDP is sent on time as far as the machine wakes up on time: the kernel does not pace it, and \
each stream takes up to a whole processor; slots missed are reported, never caught up. One-way delay is known to within half \
of the smallest round trip; see `plumb explain udp`. --available is the measurement of the PERT guides, not RFC 5136's; \
it does not see a policer whose bucket outlasts a step of 1.5 s. Scores of voice are for planning: they predict the mean of \
many listeners.";

/// What the verb takes.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    load: LoadArguments,
    /// End each direction after so much payload
    ///
    /// With --both, after so much of the two directions together. With --from, when the file ends if that is sooner.
    /// --duration limits it [default: 60s then].
    #[arg(long, value_name = "SIZE", value_parser = enough_budget, conflicts_with_all = ["until", "budget"])]
    bytes: Option<ByteCount>,
    /// End each direction when its rate is steady
    ///
    /// Two seconds in a row are alike within 2 %, and the rate is known within 5 %. --duration limits it [default: 60s then].
    #[arg(long, value_name = "WHAT")]
    until: Option<Until>,
    /// What the far end speaks [default: native, else what is found there]
    #[arg(long, value_name = "PROTOCOL", conflicts_with = "available")]
    protocol: Option<Protocol>,
    #[command(flatten)]
    trust: TrustOptions,
    /// QUIC instead of TCP
    ///
    /// Each stream has a connection, encrypted, with a congestion control of its own (--cc cubic, reno or bbr). Of TCP's
    /// options, --dscp works with it.
    #[arg(long, conflicts_with_all = ["UdpOptions", "available", "profile", "flows", "background", "from", "to", "far_disk"])]
    quic: bool,
    /// An application's traffic, and how it fares, without any load
    ///
    /// voice, call-200k, keystrokes, game, video-call or dash; may be repeated.
    #[arg(long, value_name = "PROFILE", value_parser = find,
        conflicts_with_all = ["streams", "cc", "flows", "background", "with", "UdpOptions", "down", "up", "both", "bytes", "until", "from", "to", "far_disk", "bandwidth"])]
    profile: Vec<&'static Profile>,
    /// The highest UDP rate with at most 1 % of loss, in each direction, compared with TCP's
    #[arg(long, conflicts_with_all = ["streams", "flows", "background", "with", "UdpOptions", "profile", "both", "duration", "bytes", "until", "from", "to", "far_disk"])]
    available: bool,
    /// What an application gets on this path, such as 3mbit, to compare with TCP and UDP
    // What excludes --available excludes this: clap does not ask for what cannot be given.
    #[arg(long, value_name = "RATE", value_parser = rate_above_zero, requires = "available", conflicts_with_all = ["streams", "flows", "background", "with", "UdpOptions", "profile", "both", "duration", "bytes", "until", "from", "to", "far_disk", "quic"])]
    application_rate: Option<BitRate>,
    /// Rate to send at, of UDP or of each TCP stream
    ///
    /// As --rate with --udp, else as --pacing. A bare number is bit/s, and 0 is no limit, as iperf3 has it.
    #[arg(short = 'b', long, alias = "bitrate", value_name = "RATE", value_parser = bandwidth, conflicts_with_all = ["rate", "pacing", "mptcp", "background"])]
    bandwidth: Option<Bandwidth>,
    /// Print the result as iperf3 -J does: of an upload, unless a direction is given
    #[arg(short = 'J', long, conflicts_with_all = ["json", "json_lines", "details", "interval", "available", "profile", "with", "quic"])]
    iperf3_json: bool,
    #[command(flatten)]
    mix: Mix,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    tcp: TcpOptions,
    #[command(flatten)]
    udp: UdpOptions,
}

/// What it does where these are not given.
pub(crate) fn defaults() -> Vec<(&'static str, String)> {
    vec![
        ("duration", duration(DURATION)),
        ("streams", STREAMS.to_string()),
        ("budget", BUDGET.to_string()),
    ]
}

/// What ends a phase.
#[derive(Clone, Copy, ValueEnum)]
enum Until {
    /// The rate has become steady.
    Steady,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(Bandwidth::Of(rate)) = arguments.bandwidth
        && rate.bps() < SLOWEST_BPS
    {
        let number = rate.bps();
        say(format_args!(
            "-b {number} is {rate}, slower than any link: {number} Mbit/s is -b {number}M"
        ));
    }
    if arguments.available {
        return search(arguments);
    }
    let flow = match arguments.quic {
        true => quic(arguments.tcp_flow()?)?,
        false => arguments.udp.flow(
            TcpFlow {
                far_disk: arguments.files.far_disk,
                ..arguments.tcp_flow()?
            },
            arguments.bandwidth,
        )?,
    };
    if !arguments.profile.is_empty() && arguments.tcp.flow() != TcpFlow::default() {
        return Err(wrong(
            "--profile sends what the application does and no load: leave the options of TCP out, or give it as --with beside a load",
        ));
    }
    let mut directions = arguments.files.directions();
    if matches!(flow, Flow::Udp(_)) && !directions.is_empty() {
        return Err(wrong(
            "files go over TCP: leave --from and --to out with --udp",
        ));
    }
    let files = arguments.files.open()?;
    if directions.is_empty() && arguments.profile.is_empty() {
        directions = match arguments.iperf3_json {
            true => vec![Direction::Up],
            false => vec![Direction::Down, Direction::Up],
        };
    }
    let bounded = arguments.bytes.is_some() || arguments.until.is_some() || files.from.is_some();
    let defaults = Defaults {
        directions,
        applications: arguments.profile.clone(),
        budget: BUDGET,
        bytes: arguments.bytes,
        times: Times::of_phases(if bounded { LONGEST } else { DURATION }),
        until_steady: arguments.until.is_some(),
        streams: STREAMS,
        flow,
        shape: Shape::BestEffort,
        files,
        latency: false,
        judge: false,
        as_iperf3: arguments.iperf3_json,
    };
    let load = &arguments.load;
    load.run(
        arguments.protocol,
        &arguments.trust,
        defaults,
        &arguments.mix,
    )
}

impl Arguments {
    /// A TCP stream with its options, -b among them where it is not the rate of datagrams.
    fn tcp_flow(&self) -> anyhow::Result<TcpFlow> {
        let mut flow = self.tcp.flow();
        if let Some(Bandwidth::Of(rate)) = self.bandwidth.filter(|_| !self.udp.is_asked()) {
            let paced = pacing_bps(rate).map_err(|why| wrong(format!("-b: {why}")))?;
            flow.pacing_bps = Some(paced);
        }
        Ok(flow)
    }
}

/// QUIC with what of TCP's options it has, too.
fn quic(tcp: TcpFlow) -> anyhow::Result<Flow> {
    let dscp = tcp.dscp;
    if (TcpFlow { dscp: None, ..tcp }) != TcpFlow::default() {
        return Err(wrong(
            "of the options of TCP only --dscp and --cc go with --quic: leave the others out",
        ));
    }
    Ok(Flow::Quic(QuicFlow { cc: None, dscp }))
}

fn search(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let each_way = vec![Direction::Down, Direction::Up];
    let application_bps = arguments.application_rate.map(|rate| rate.bps() as f64);
    let tcp = arguments.tcp_flow()?;
    arguments
        .load
        .search(each_way, tcp, application_bps, BUDGET)
}
