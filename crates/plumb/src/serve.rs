//! `plumb serve`: the far end.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_model::units::parse_duration;
use plumb_serve::{Config, Server};
use plumb_wire::native::spec::{MAX_CLIENTS, MAX_STREAMS, PORT};

use crate::target::interruptible;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: whoever can reach the port can load this machine's line within the caps above; let only
those through whom you want. There is no authentication yet.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Address to listen on; may be given several times [default: all addresses]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<IpAddr>,
    /// Port, TCP and UDP
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Longest load phase that a client may ask for
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = parse_duration)]
    max_duration: Duration,
    /// Most streams of one load phase
    #[arg(long, value_name = "N", default_value_t = MAX_STREAMS)]
    max_streams: u32,
    /// Most clients at once
    #[arg(long, value_name = "N", default_value_t = MAX_CLIENTS)]
    max_clients: usize,
    /// Lend clients temporary files in this directory (`plumb rate --far-disk`): as large as the
    /// client's budget, removed when the phase ends
    #[arg(long, value_name = "DIRECTORY")]
    disk: Option<PathBuf>,
    /// Say nothing but errors
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let stop = interruptible()?;
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
    })?;
    if !arguments.quiet {
        for address in server.addresses() {
            anstream::eprintln!("plumb: listening on {address}, TCP and UDP; Ctrl-C ends it");
        }
    }
    server.run(&stop)?;
    Ok(ExitCode::SUCCESS)
}
