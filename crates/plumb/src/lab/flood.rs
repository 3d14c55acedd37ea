//! `plumb lab flood`: something that fills a link.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_load::Flood;
use plumb_model::units::{BitRate, parse_duration};

use crate::output::print;
use crate::target::Target;

/// The port of the discard service (RFC 863): nobody has to listen.
const DISCARD: u16 = 9;

#[derive(Args)]
pub(super) struct Options {
    /// Where to
    host: String,
    /// IP bits a second
    #[arg(long, value_name = "RATE")]
    rate: BitRate,
    /// UDP payload of each packet in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1400)]
    size: u16,
    /// For how long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    duration: Duration,
}

pub(super) fn flood(options: &Options) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(&options.host)?;
    let flood = Flood {
        to: target.at(DISCARD),
        rate: options.rate,
        payload_bytes: options.size,
        duration: options.duration,
    };
    let sent = flood
        .send()
        .with_context(|| format!("cannot send to {}", options.host))?;
    print(&format!(
        "{} packets sent, {} refused by this host, {} left out because it was late.\n",
        sent.sent, sent.refused, sent.missed
    ))?;
    Ok(ExitCode::SUCCESS)
}
