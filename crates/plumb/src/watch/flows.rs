//! `plumb watch flows`: who sends how much where, as exporters report it, once.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_model::prefix::Prefix;
use plumb_watch::flows::listening::Listener;
use plumb_watch::flows::look::look;
use plumb_watch::flows::settings::FlowSource;
use plumb_watch::flows::state::State;

use crate::exit::{Ends, stop_flag};
use crate::output::{print, print_json};
use crate::quantity::time_above_zero;
use crate::status::Status;

/// Examples, and what it cannot do.
pub(super) const LIMITS: &str = "\
Examples:
  plumb watch flows 2055                                until Ctrl-C
  plumb watch flows 192.168.1.9:2055 --for 5m --exporter 192.168.1.1
  plumb watch flows 6343 --for 1m --json

Limits: exporters report flows when these end, or after their active timeout: set it to a minute, and listen for longer than that. \
Any host that can send to the port can forge them: name the exporters. See `plumb explain flows`.";

#[derive(Args)]
#[command(after_long_help = LIMITS)]
pub(crate) struct Arguments {
    /// UDP port, or address and port, that exporters send to
    #[arg(value_parser = listen)]
    listen: SocketAddr,
    /// Listen for so long [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time_above_zero)]
    within: Option<Duration>,
    /// Only from this address or prefix; may be given again [default: any]
    #[arg(long = "exporter", value_name = "ADDRESS")]
    exporters: Vec<Prefix>,
    /// Show hosts rather than their prefixes
    #[arg(long)]
    hosts: bool,
    /// How many of each kind
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    top: u16,
    /// One packet of N is counted, where the exporter does not say it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    sampling: u32,
    /// Print an object of JSON
    #[arg(long)]
    json: bool,
}

/// A port at all addresses of IPv4, or an address with its port.
fn listen(text: &str) -> Result<SocketAddr, String> {
    let port = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    let at = text.parse().map(port).or_else(|_| text.parse());
    match at {
        Ok(at) if at.port() > 0 => Ok(at),
        _ => Err("write a port, such as 2055, or an address and a port".to_owned()),
    }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let stop = stop_flag(Ends::by_signal_if(arguments.within.is_none()))?;
    let source = FlowSource {
        exporters: arguments.exporters.clone(),
        hosts: arguments.hosts,
        top: arguments.top.into(),
        one_in: arguments.sampling.into(),
        ..FlowSource::at(arguments.listen)
    };
    let cannot = || format!("cannot listen at {}", arguments.listen);
    let listener = Listener::bind(source).with_context(cannot)?;
    let status = Status::new();
    status.step("flows".to_owned());
    let mut show = |state: &State, elapsed: Duration| {
        let (flows, exporters) = (state.flows(), state.exporters.len());
        let seconds = elapsed.as_secs();
        status.update(format!(
            "{seconds} s, exporters: {exporters}, flows: {flows}"
        ));
    };
    let found = look(listener, arguments.within, &stop, &mut show).with_context(cannot)?;
    drop(status);
    match arguments.json {
        true => print_json(&found)?,
        false => print(&found.text())?,
    }
    Ok(ExitCode::SUCCESS)
}
