//! `plumb transactions`: requests and their answers.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_measure::transactions::{self, Plan};
use plumb_model::protocol::Protocol;
use plumb_model::units::ByteCount;
use plumb_wire::native::control::flow::transactions::{TransactionFlow, UDP_BYTES};
use plumb_wire::native::spec::MOST_STREAMS;

use crate::exit::{Ends, stop_flag};
use crate::load_options::enough_budget;
use crate::output::{LiveOutput, say};
use crate::quantity::time_above_zero;
use crate::target::{ResponderOptions, Target, command_line};
use crate::usage::wrong;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb transactions server          one request after the other, over TCP
  plumb transactions server --connect
                                     a connection for each (netperf's CRR)
  plumb transactions server -u --per-second 1000 -t 30

Limits: times are between system calls of the program, as netperf's are: below 100 µs they are the processors' as much as the \
path's. Programs encrypt, not their kernels (no kTLS). See `plumb explain transactions`.";

/// What the verb takes.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end, where plumb serve runs
    host: String,
    /// A new connection for each transaction (CRR)
    ///
    /// Without it, each stream has one connection for all of its transactions (netperf's RR).
    #[arg(long, conflicts_with = "udp")]
    connect: bool,
    /// Encrypt (TLS 1.3)
    #[arg(long, conflicts_with = "udp")]
    tls: bool,
    /// Ask by UDP
    #[arg(short, long)]
    udp: bool,
    /// Bytes of a request [default: 1, with --udp: 64]
    #[arg(long, value_name = "BYTES")]
    request: Option<u32>,
    /// Bytes of an answer [default: 1, with --udp: as the request]
    #[arg(long, value_name = "BYTES")]
    response: Option<u32>,
    /// Streams, which ask at the same time
    #[arg(short = 'P', long, alias = "parallel", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_STREAMS)))]
    streams: u32,
    /// How many begin each second, all streams together
    ///
    /// Those that have to wait count from when they were due [default: each begins as soon as the one before has ended].
    #[arg(long, value_name = "N")]
    per_second: Option<f64>,
    /// How long to measure
    #[arg(short = 't', long, alias = "time", value_name = "TIME", default_value = "10s", value_parser = time_above_zero)]
    duration: Duration,
    /// The most that may be transferred
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = enough_budget)]
    budget: ByteCount,
    #[command(flatten)]
    responder: ResponderOptions,
    #[command(flatten)]
    output: LiveOutput,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let flow = arguments.flow()?;
    let target = Target::resolve(&arguments.host)?;
    let output = arguments.output.begin()?;
    // Before the client's threads start, so that none of them is hit.
    let cancel = stop_flag(Ends::ByItself)?;
    let client = target.connect(&arguments.responder)?;
    let plan = Plan {
        name: target.name,
        command: command_line(),
        flow,
        streams: arguments.streams,
        duration: arguments.duration,
        budget: arguments.budget,
    };
    say(plan.announcement());
    let watcher = arguments.output.watcher();
    let measured =
        transactions::run(client, &plan, &*watcher, &cancel).context("cannot measure")?;
    drop(watcher);
    output.emit(measured.run)?;
    measured
        .shortfall
        .map_or(Ok(ExitCode::SUCCESS), |why| Err(why.into()))
}

impl Arguments {
    /// What each stream asks.
    fn flow(&self) -> anyhow::Result<TransactionFlow> {
        let (transport, smallest) = match (self.udp, self.tls) {
            (true, _) => (Protocol::Udp, *UDP_BYTES.start()),
            (false, true) => (Protocol::Tls, 1),
            (false, false) => (Protocol::Tcp, 1),
        };
        let request_bytes = self.request.unwrap_or(smallest);
        let like_request = if self.udp { request_bytes } else { smallest };
        let flow = TransactionFlow {
            transport,
            connect: self.connect,
            request_bytes,
            response_bytes: self.response.unwrap_or(like_request),
            rate_tps: self.per_second.map(|rate| rate / f64::from(self.streams)),
            on_demand: false,
        };
        match flow.check() {
            Ok(()) => Ok(flow),
            Err((_, why)) => Err(wrong(format!("cannot ask for such transactions: {why}"))),
        }
    }
}
