//! `plumb serve`: the far end.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_serve::{Config, Server, StampConfig};
use plumb_wire::native::spec::{MAX_CLIENTS, MAX_STREAMS, PORT};
use plumb_wire::stamp::{self, Counting};

use crate::exit::{Ends, stop_flag};
use crate::output::say;
use crate::quantity::time;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: any client that can reach the port can load this machine's line within the caps above; let only clients through \
that you trust. There is no authentication yet.

Each IPv4 address, or IPv6 /64, has a share: one load at a time, while the others wait and are shown for how long; at most \
half of the STAMP answers; longer answers of the UDP echo only beside a load, and up to 1 Gbit/s. A client with many \
addresses has many shares.

Paths are traced only to clients that have a TCP connection here, four at once and one a second for each share; without \
CAP_NET_RAW by what every user may open.

The STAMP reflector cannot know whether senders receive at the address that they send from: it never answers with more \
than it received, and limits its answers a second.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Address to listen on, may be repeated [default: all]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<IpAddr>,
    /// Port, TCP and UDP
    #[arg(short, long, default_value_t = PORT)]
    port: u16,
    /// Longest phase of load for a client
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = time)]
    max_duration: Duration,
    /// Most streams of one phase of load
    #[arg(long, value_name = "N", default_value_t = MAX_STREAMS)]
    max_streams: u32,
    /// Most clients at once
    ///
    /// Others wait for up to a minute, and idle ones make room for those of other addresses.
    #[arg(long, value_name = "N", default_value_t = MAX_CLIENTS)]
    max_clients: usize,
    /// Lend clients temporary files in this directory
    ///
    /// For `plumb rate --far-disk`: as large as the client's budget, removed when the phase ends.
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,
    /// Do not trace the reverse path for clients (plumb path)
    #[arg(long)]
    no_trace: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    stamp: Stamp,
}

/// Answers a second that the reflector gives by default: ten senders at a hundred
/// packets a second, several times over, and 2 Mbit/s of the smallest.
const STAMP_RATE_PPS: u32 = 5000;

#[derive(Args)]
#[command(next_help_heading = "STAMP reflector (RFC 8762; also for TWAMP Light senders)")]
struct Stamp {
    /// UDP port of the reflector [default: 862]
    #[arg(long, value_name = "PORT")]
    stamp_port: Option<u16>,
    /// Do not run the STAMP reflector
    #[arg(long, conflicts_with_all = ["stamp_port", "stamp_key_file", "stamp_stateless"])]
    no_stamp: bool,
    /// Answer only senders that have the key in this file and are authenticated by it (HMAC)
    #[arg(long, value_name = "FILE")]
    stamp_key_file: Option<PathBuf>,
    /// Give answers the sender's number, without remembering anything
    ///
    /// Senders do not know then in which direction packets were lost.
    #[arg(long)]
    stamp_stateless: bool,
    /// Most answers a second
    #[arg(long, value_name = "N", default_value_t = STAMP_RATE_PPS, value_parser = clap::value_parser!(u32).range(1..))]
    stamp_rate: u32,
}

impl Stamp {
    fn config(&self) -> anyhow::Result<Option<StampConfig>> {
        if self.no_stamp {
            return Ok(None);
        }
        let key = self
            .stamp_key_file
            .as_deref()
            .map(crate::key::read)
            .transpose()?;
        Ok(Some(StampConfig {
            port: self.stamp_port.unwrap_or(stamp::PORT),
            // Without the port of old the rest still serves; what was asked for must be had.
            required: self.stamp_port.is_some() || key.is_some(),
            key,
            counting: if self.stamp_stateless {
                Counting::Stateless
            } else {
                Counting::Stateful
            },
            max_rate_pps: self.stamp_rate,
        }))
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let stop = stop_flag(Ends::BySignal)?;
    let addresses = match arguments.listen.as_slice() {
        [] => &[IpAddr::V6(Ipv6Addr::UNSPECIFIED)],
        some => some,
    };
    let server = Server::bind(Config {
        listen: addresses
            .iter()
            .map(|address| SocketAddr::new(*address, arguments.port))
            .collect(),
        max_duration: arguments.max_duration,
        max_streams: arguments.max_streams,
        max_clients: arguments.max_clients,
        disk: arguments.disk.clone(),
        stamp: arguments.stamp.config()?,
        traces: !arguments.no_trace,
    })?;
    if !arguments.quiet {
        for address in server.addresses() {
            say(format_args!(
                "listening on {address}, TCP and UDP; Ctrl-C ends it"
            ));
        }
        for address in server.stamp_addresses() {
            say(format_args!("reflecting STAMP on {address}, UDP"));
        }
        if let Some(error) = server.missing() {
            say(format_args!(
                "not reflecting STAMP: {error}; --stamp-port moves it"
            ));
        }
    }
    end_in_time(Arc::clone(&stop))?;
    server.run(&stop)?;
    Ok(ExitCode::SUCCESS)
}

/// Longest from the request to stop to the end of the program. What runs ends within a second; this is
/// for what a far end, a disk or the kernel may keep from that.
const ENDS_WITHIN: Duration = Duration::from_millis(1800);

/// Ends the program [`ENDS_WITHIN`] after `stop` is set, whatever still runs.
fn end_in_time(stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    let watch = move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_EVERY);
        }
        std::thread::sleep(ENDS_WITHIN);
        say("something did not end in time, and is ended with the program");
        std::process::exit(1);
    };
    let thread = std::thread::Builder::new().name("plumb-end".to_owned());
    thread.spawn(watch).context("cannot start a thread")?;
    Ok(())
}
