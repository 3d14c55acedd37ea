//! The options of `plumb serve`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plumb_model::prefix::Prefix;
use plumb_serve::{Entry, protocols};

use crate::quantity::time;

#[derive(Args, Clone)]
pub(crate) struct Arguments {
    /// Address to listen on, may be repeated [default: all]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Vec<IpAddr>,
    /// Port, TCP and UDP [default: 7586]
    #[arg(short, long)]
    pub(super) port: Option<u16>,
    /// Longest phase of load for a client [default: 600s]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) max_duration: Option<Duration>,
    /// Most streams of one phase of load [default: 128]
    #[arg(long, value_name = "N")]
    pub(super) max_streams: Option<u32>,
    /// Most clients at once [default: 256]
    ///
    /// Others wait for up to a minute, and idle ones make room for clients of other addresses.
    #[arg(long, value_name = "N")]
    pub(super) max_clients: Option<usize>,
    /// Lend clients temporary files in this directory
    ///
    /// For `plumb rate --far-disk`: as large as the client's budget, removed when the phase ends.
    #[arg(long, value_name = "DIR")]
    pub(super) disk: Option<PathBuf>,
    /// Become this user once all ports are bound
    ///
    /// Directories that are written to must be writable by that user, and a configuration that is read again readable.
    #[arg(long, value_name = "NAME")]
    pub(super) user: Option<String>,
    /// Do not trace the reverse path for clients (plumb path)
    #[arg(long)]
    pub(super) no_trace: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Serve a protocol of others' clients on this port, as in iperf3=5202; may be repeated
    ///
    /// Without this option each protocol has its usual port, and is left out where that is taken.
    #[arg(long, value_name = "NAME=PORT", value_parser = port_of)]
    pub(super) port_of: Vec<(&'static Entry, u16)>,
    /// Leave out a protocol of others' clients, may be repeated
    #[arg(long, value_name = "NAME", value_parser = protocol)]
    pub(super) without: Vec<&'static Entry>,
    /// Settings file (TOML); options override it
    ///
    /// SIGHUP reads it again, for which clients are served and how much. `plumb explain serve` shows what it may hold.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Check the configuration, and end
    #[arg(long)]
    pub(super) check_config: bool,
    #[command(flatten)]
    pub(super) access: Access,
    #[command(flatten)]
    pub(super) irtt: Irtt,
    #[command(flatten)]
    pub(super) web: Web,
    #[command(flatten)]
    pub(super) stamp: Stamp,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Who is served")]
pub(super) struct Access {
    /// Serve clients on the Internet without a key
    #[arg(long)]
    pub(super) public: bool,
    /// Key that clients on the Internet need, or @FILE that holds it [default: a new one]
    ///
    /// 12 characters at least. Choose none that is in a dictionary: who overhears a client can try keys at home.
    #[arg(long, value_name = "KEY")]
    pub(super) key: Option<String>,
    /// Serve this address or network without a key and limits, may be repeated
    #[arg(long, value_name = "PREFIX")]
    pub(super) allow: Vec<Prefix>,
    /// Never serve this address or network, may be repeated
    #[arg(long, value_name = "PREFIX")]
    pub(super) deny: Vec<Prefix>,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "irtt")]
pub(super) struct Irtt {
    /// Answer only clients that have the key in this file (irtt client --hmac=KEY)
    #[arg(long, value_name = "FILE")]
    pub(super) irtt_key_file: Option<PathBuf>,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "Web")]
pub(super) struct Web {
    /// Certificate to show, and its chain, in PEM [default: one that signs itself]
    #[arg(long, value_name = "FILE", requires = "certificate_key")]
    pub(super) certificate: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(super) certificate_key: Option<PathBuf>,
    /// Names by which browsers reach it, NAME,NAME…, may be repeated
    ///
    /// Its addresses, the name of this machine and names without a dot or below .local are known. A proxy has others.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) host_names: Vec<String>,
    /// Keep the Run of each test by the page in this directory
    #[arg(long, value_name = "DIR")]
    pub(super) runs: Option<PathBuf>,
}

#[derive(Args, Clone)]
#[command(next_help_heading = "STAMP reflector (RFC 8762; also for TWAMP Light senders)")]
pub(super) struct Stamp {
    /// Answer only senders that have the key in this file and are authenticated by it (HMAC)
    #[arg(long, value_name = "FILE")]
    pub(super) stamp_key_file: Option<PathBuf>,
    /// Give answers the sender's number, without remembering anything
    ///
    /// Senders do not know then in which direction packets were lost.
    #[arg(long)]
    pub(super) stamp_stateless: bool,
    /// Most answers a second [default: 25000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) stamp_rate: Option<u32>,
}

/// Reads the name of a protocol.
fn protocol(text: &str) -> Result<&'static Entry, String> {
    protocols::named(text).ok_or_else(|| {
        let names = protocols::ALL.iter().map(|entry| entry.name);
        format!("write one of {}", names.collect::<Vec<_>>().join(", "))
    })
}

/// Reads a protocol and its port, `NAME=PORT`.
fn port_of(text: &str) -> Result<(&'static Entry, u16), String> {
    let accepted = "write a protocol and its port, like iperf3=5202";
    let (name, port) = text.split_once('=').ok_or(accepted)?;
    let port = port.parse().map_err(|_| accepted)?;
    Ok((protocol(name)?, port))
}
