//! `plumb lab flood`: something that fills a link.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use plumb_lab::client::RunningLab;
use plumb_lab::control::{Request, VARIABLE};
use plumb_load::Flood;
use plumb_model::results::udp::UdpSender;
use plumb_model::units::BitRate;

use super::complain::complain;
use crate::output::print;
use crate::quantity::{rate_above_zero, time};
use crate::target::Target;

/// Share of its packets left out from which on a flood is not what it says: what the lab's own
/// lateness may be (`plumb_lab::stats`).
const LEFT_OUT_RATIO: f64 = 0.01;
/// For the first second a pause of the machine counts for too much.
const JUDGED_AFTER: Duration = Duration::from_secs(1);

/// The port of the discard service (RFC 863): no process has to listen.
const DISCARD: u16 = 9;

#[derive(Args)]
pub(super) struct Options {
    /// Where to
    host: String,
    /// IP bits a second
    #[arg(long, value_name = "RATE", value_parser = rate_above_zero)]
    rate: BitRate,
    /// UDP payload of each packet in bytes
    #[arg(short, long, value_name = "BYTES", default_value_t = 1400)]
    size: u16,
    /// For how long
    #[arg(short = 't', long, value_name = "TIME", default_value = "10s", value_parser = time)]
    duration: Duration,
}

/// Says it here, and to the lab that this runs in, if any, for all the Runs that are made there.
fn tell(problem: &str) {
    complain(&problem);
    if std::env::var_os(VARIABLE).is_some() {
        let text = problem.to_owned();
        // The flood matters more than the word about it.
        let _ = RunningLab::find(None).and_then(|lab| lab.ask(&Request::Note { text }));
    }
}

pub(super) fn flood(options: &Options) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(&options.host)?;
    let flood = Flood {
        to: target.at(DISCARD),
        rate: options.rate,
        payload_bytes: options.size,
        duration: options.duration,
    };
    let started = Instant::now();
    let mut told = false;
    // At once, and not at the end: as traffic of a lab it is killed when that ends.
    let mut left_out = |so_far: &UdpSender| {
        let left_out = (so_far.missed + so_far.refused) as f64;
        let ratio = left_out / (left_out + so_far.sent as f64);
        if !told && ratio > LEFT_OUT_RATIO && started.elapsed() >= JUDGED_AFTER {
            told = true;
            tell(&format!(
                "the flood of {} to {} was not sent as fast: this machine left out {:.0} % of its packets in the first {:.0} s",
                options.rate,
                options.host,
                100.0 * ratio,
                started.elapsed().as_secs_f64()
            ));
        }
    };
    let sent = flood
        .send(&mut left_out)
        .with_context(|| format!("cannot send to {}", options.host))?;
    print(&format!(
        "{} packets sent, {} refused by this host, {} left out because it was late.\n",
        sent.sent, sent.refused, sent.missed
    ))?;
    Ok(ExitCode::SUCCESS)
}
