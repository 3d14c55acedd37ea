//! What `plumb ping` takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plumb_model::protocol::Protocol;
use plumb_net::datagram::PathMtuDiscovery;
use plumb_net::egress::Outlet;
use plumb_probe::{Pattern, Sizes};

use super::fping;
use crate::output::Output;
use crate::quantity::{time, time_above_zero};
use crate::target::FamilyOptions;
use crate::trust::TrustOptions;
use crate::words;

const PROTOCOLS: [Protocol; 9] = [
    Protocol::Icmp,
    Protocol::Udp,
    Protocol::UdpPort,
    Protocol::Tcp,
    Protocol::Http,
    Protocol::Https,
    Protocol::Dns,
    Protocol::Stamp,
    Protocol::Irtt,
];

#[derive(Args)]
pub(crate) struct Arguments {
    /// Names, addresses or networks (192.0.2.0/24) to ping
    ///
    /// Also `NAME:PORT` and `[ADDRESS]:PORT`.
    #[arg(value_name = "HOST", required_unless_present = "file")]
    pub(super) hosts: Vec<String>,
    /// Targets from a file, one a line; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// With several targets: the most packets a second [default: 1000; 100 for connections]
    #[arg(long, value_name = "N", value_parser = packet_rate)]
    pub(super) pps: Option<f64>,
    /// Print what fping prints
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["json", "json_lines"])]
    pub(super) fping: Option<fping::Format>,
    /// Protocol of the probes [default: icmp]
    ///
    /// TCP where this user may not send ICMP.
    #[arg(long, value_parser = words::some(&PROTOCOLS))]
    pub(super) protocol: Option<Protocol>,
    #[command(flatten)]
    pub(super) trust: TrustOptions,
    /// Number of probes; 0 is endless [default: 10]
    ///
    /// To several targets 3 each; with -t alone, as many as the time allows.
    #[arg(short, long, value_name = "N")]
    pub(super) count: Option<u64>,
    /// Time between probes [default: 200ms]
    ///
    /// To the same target, whether the probe before was answered or not; 1s where there are several.
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    pub(super) interval: Option<Duration>,
    /// Bytes of payload [default: 56 for ICMP, 64 for UDP]
    #[arg(short, long, value_name = "BYTES", conflicts_with = "sweep")]
    pub(super) size: Option<usize>,
    /// Sizes of payload one after the other, in bytes: FROM..TO:STEP
    #[arg(long, value_name = "SIZES")]
    pub(super) sweep: Option<Sizes>,
    /// A probe that takes longer counts as lost
    #[arg(short = 'W', long, value_name = "TIME", default_value = "3s", value_parser = time_above_zero)]
    pub(super) timeout: Duration,
    /// How long to send; ping's -w
    #[arg(short = 't', long = "duration", visible_short_alias = 'w', alias = "deadline", value_name = "TIME", value_parser = time_above_zero)]
    pub(super) deadline: Option<Duration>,
    /// Flood: the next probe when one is answered, or after 10 ms
    #[arg(short, long, conflicts_with = "interval")]
    pub(super) flood: bool,
    /// Adaptive: the next probe when one is answered
    ///
    /// Or after the interval, which is 1s then; at most one a millisecond.
    #[arg(short = 'A', long, conflicts_with = "flood")]
    pub(super) adaptive: bool,
    /// Probes that are sent at once at the beginning
    #[arg(short = 'l', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) preload: u32,
    /// What fills the packets behind the 12 bytes that plumb writes: up to 16 bytes in hexadecimal
    #[arg(long, value_name = "HEX")]
    pub(super) pattern: Option<Pattern>,
    /// Show where a probe is not answered yet when the next one leaves
    #[arg(short = 'O', long)]
    pub(super) outstanding: bool,
    /// Time to live of the probes, in hops (TTL)
    #[arg(short = 'm', long, value_name = "HOPS", value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) ttl: Option<u8>,
    /// Type of service or traffic class of the probes, as ping has it
    ///
    /// A byte, with 0x in hexadecimal, whose upper six bits are the DSCP.
    #[arg(short = 'Q', long, value_name = "TOS", value_parser = traffic_class)]
    pub(super) tos: Option<u8>,
    /// Interface to send by, or address to send from
    #[arg(short = 'I', long, value_name = "IF|ADDR")]
    pub(super) from: Option<Outlet>,
    /// What happens to probes that are larger than the path MTU
    #[arg(short = 'M', long, value_parser = words::any::<PathMtuDiscovery>(), value_name = "HOW")]
    pub(super) pmtudisc: Option<PathMtuDiscovery>,
    #[command(flatten)]
    pub(super) family: FamilyOptions,
    /// Show addresses, not names
    #[arg(short, long)]
    pub(super) numeric: bool,
    /// Begin the line of each answer with its time, in seconds since 1970
    #[arg(short = 'D', long)]
    pub(super) stamp: bool,
    /// Print a line for each answer of several targets too
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Print each answer and loss as it comes, an object of JSON a line
    #[arg(long, conflicts_with_all = ["quiet", "stamp", "json"])]
    pub(super) json_lines: bool,
    /// Port, where the protocol has ports [default: its own]
    #[arg(short, long)]
    pub(super) port: Option<u16>,
    /// What to ask for: a name over DNS [default: the root's servers], a page over HTTP [default: /]
    #[arg(long, value_name = "NAME|PATH")]
    pub(super) ask: Option<String>,
    #[command(flatten)]
    pub(super) output: Output,
}

fn packet_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok();
    let rate = rate.filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "a packet rate above zero is needed, such as 500".to_owned())
}

/// The byte that holds the DSCP (RFC 2474), whose lower two bits belong to ECN (RFC 3168).
fn traffic_class(text: &str) -> Result<u8, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => text.parse(),
    };
    match parsed {
        Ok(class) if class & 3 == 0 => Ok(class),
        Ok(_) => Err("the lower two bits are ECN's: give a multiple of 4".to_owned()),
        Err(_) => Err("a byte is needed, such as 184 or 0xb8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traffic_class_leaves_ecn_alone() {
        assert_eq!(traffic_class("0xb8"), Ok(184));
        assert_eq!(traffic_class("32"), Ok(32));
        for wrong in ["1", "256", "0x", "ef", ""] {
            assert!(traffic_class(wrong).is_err(), "{wrong}");
        }
    }
}
