//! `plumb serve`: the far end.

mod file;
mod settings;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_model::prefix::Prefix;
use plumb_net::process::on_hangup;
use plumb_serve::{Entry, PolicyCell, Server, protocols};

use crate::exit::{Ends, stop_flag};
use crate::output::say;
use crate::quantity::time;
use file::File;
use settings::AccessKey;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Clients of private networks are served freely. Clients on the Internet need the key that this verb prints when it starts, \
or --public.

Limits: any client that is served can load this machine's line within the caps above.

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
    /// Port, TCP and UDP [default: 7586]
    #[arg(short, long)]
    port: Option<u16>,
    /// Longest phase of load for a client [default: 600s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    max_duration: Option<Duration>,
    /// Most streams of one phase of load [default: 128]
    #[arg(long, value_name = "N")]
    max_streams: Option<u32>,
    /// Most clients at once [default: 256]
    ///
    /// Others wait for up to a minute, and idle ones make room for those of other addresses.
    #[arg(long, value_name = "N")]
    max_clients: Option<usize>,
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
    access: Access,
    /// Serve a protocol of others' clients on this port, as in stamp=8620; may be repeated
    ///
    /// Without this option each protocol has its usual port, and is left out where that is taken.
    #[arg(long, value_name = "NAME=PORT", value_parser = port_of)]
    port_of: Vec<(&'static Entry, u16)>,
    /// Leave out a protocol of others' clients, may be repeated
    #[arg(long, value_name = "NAME", value_parser = protocol)]
    without: Vec<&'static Entry>,
    #[command(flatten)]
    stamp: Stamp,
    /// Read what no option says from this TOML file
    ///
    /// SIGHUP has it read again, for who is served and how much. `plumb explain serve` shows what it may hold.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Check the configuration, and end
    #[arg(long)]
    check_config: bool,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Who is served")]
struct Access {
    /// Serve clients on the Internet without a key
    #[arg(long)]
    public: bool,
    /// Key that clients on the Internet need, or @FILE that holds it [default: a new one]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Serve this address or network without a key and limits, may be repeated
    #[arg(long, value_name = "PREFIX")]
    allow: Vec<Prefix>,
    /// Never serve this address or network, may be repeated
    #[arg(long, value_name = "PREFIX")]
    deny: Vec<Prefix>,
}

#[derive(Args)]
#[command(next_help_heading = "STAMP reflector (RFC 8762; also for TWAMP Light senders)")]
struct Stamp {
    /// Answer only senders that have the key in this file and are authenticated by it (HMAC)
    #[arg(long, value_name = "FILE")]
    stamp_key_file: Option<PathBuf>,
    /// Give answers the sender's number, without remembering anything
    ///
    /// Senders do not know then in which direction packets were lost.
    #[arg(long)]
    stamp_stateless: bool,
    /// Most answers a second [default: 5000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    stamp_rate: Option<u32>,
}

/// Reads the name of a protocol.
fn protocol(text: &str) -> Result<&'static Entry, String> {
    protocols::named(text).ok_or_else(|| {
        let names = protocols::ALL.iter().map(|entry| entry.name);
        format!("write one of {}", names.collect::<Vec<_>>().join(", "))
    })
}

/// Reads `NAME=PORT`.
fn port_of(text: &str) -> Result<(&'static Entry, u16), String> {
    let accepted = "write a protocol and its port, like stamp=8620";
    let (name, port) = text.split_once('=').ok_or(accepted)?;
    let port = port.parse().map_err(|_| accepted)?;
    Ok((protocol(name)?, port))
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let file = arguments.file()?;
    let key = arguments.access.key(&file)?;
    let config = settings::config(arguments, &file, &key)?;
    if arguments.check_config {
        say("the configuration is in order");
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = arguments.config.clone() {
        let reload = Reload {
            path,
            at_start: file,
            access: arguments.access.clone(),
            key: key.clone(),
            policy: Arc::clone(&config.policy),
        };
        // Before any other thread, which the signal would end the program in.
        on_hangup(move || reload.run()).context("cannot wait for signals")?;
    }
    let stop = stop_flag(Ends::BySignal)?;
    let server = Server::bind(config)?;
    if !arguments.quiet {
        announce(&server, &key);
    }
    end_in_time(Arc::clone(&stop))?;
    server.run(&stop)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what is served, and how clients get it.
fn announce(server: &Server, key: &AccessKey) {
    for address in server.addresses() {
        say(format_args!(
            "listening on {address}, TCP and UDP; Ctrl-C ends it"
        ));
    }
    for (entry, at) in server.listening() {
        say(format_args!(
            "{} on {}, {}: {}",
            entry.name, at.address, at.transport, entry.about
        ));
    }
    for (entry, error) in server.missing() {
        let name = entry.name;
        say(format_args!(
            "not serving {name}: {error}; --port-of {name}=PORT moves it"
        ));
    }
    match key {
        AccessKey::Public => say("clients on the Internet are served without a key (--public)"),
        AccessKey::Given(_) => {
            say("clients on the Internet need the key: plumb check THIS-HOST --key KEY")
        }
        AccessKey::New(key) => say(format_args!(
            "clients of private networks: plumb check THIS-HOST; clients on the Internet: plumb check THIS-HOST --key {}",
            key.as_str()
        )),
    }
}

/// What a SIGHUP does.
struct Reload {
    path: PathBuf,
    /// The file as it was when the responder started.
    at_start: File,
    access: Access,
    key: AccessKey,
    policy: Arc<PolicyCell>,
}

impl Reload {
    /// Reads the file again; where it is wrong, what was in force stays in force.
    fn run(&self) {
        let path = self.path.display();
        let policy = File::read(&self.path).and_then(|file| {
            let policy = self.access.policy(&file, &self.key)?;
            Ok((file, policy))
        });
        match policy {
            Ok((file, policy)) => {
                self.policy.set(policy);
                say(format_args!("{path} is in force"));
                if file.needs_restart_after(&self.at_start) {
                    say(
                        "addresses, ports, protocols and the other limits change with the next start",
                    );
                }
            }
            Err(error) => say(format_args!(
                "{path} was read again, and what was in force stays: {error:#}"
            )),
        }
    }
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
