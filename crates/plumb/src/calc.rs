//! `plumb calc`: the field's formulas.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use plumb_model::calc::{self, Calculation};
use plumb_model::formula::delay::Medium;
use plumb_model::formula::goodput::{Headers, payload};
use plumb_model::formula::transfer::Transfer;
use plumb_model::framing::Framing;
use plumb_model::units::{BitRate, ByteCount};

use crate::output::{message, print, print_json, prose_columns};
use crate::quantity::{rate_above_zero, round_trip, window};
use crate::usage::wrong;
use crate::words;
use crate::wrapped::wrap;

/// Examples, for the verb's help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  plumb calc bdp --rate 10gbit --rtt 50ms
  plumb calc goodput --rate 2.5gbit               2.354 Gbit/s of payload
  plumb calc window --window 64k --rtt 150ms      3.495 Mbit/s
  plumb calc loss --rate 10gbit --rtt 100ms       loss that TCP can stand there
  plumb calc loss --rtt 100ms --loss 1%           rate that TCP reaches then
  plumb calc delay --bytes 1500 --rate 20mbit --km 8096
  plumb calc transfer --bytes 1GB --rate 1gbit --rtt 100ms

Limits: response functions are of one connection and of random loss; a queue that overflows loses in bursts. Delays in \
queues are not counted.";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    question: Question,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Question {
    /// Bytes in flight that fill a path, and the buffer that allows them
    Bdp {
        #[command(flatten)]
        path: Path,
    },
    /// Payload rate of a line, with the headers that were counted
    Goodput {
        /// Rate of the line
        #[arg(long, value_parser = rate_above_zero)]
        rate: BitRate,
        #[command(flatten)]
        packet: Packet,
        /// Count three SACK blocks on every segment
        ///
        /// SACK-permitted is counted on every segment as well: the least that a tool should reach.
        #[arg(long, conflicts_with_all = ["sack_blocks", "no_timestamps"])]
        generous: bool,
        /// SACK blocks to count on every segment
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=4))]
        sack_blocks: u32,
        /// What the link adds, by the keywords of tc-cake(8)
        #[arg(long, default_value = "ethernet", value_parser = line_framing)]
        framing: LineFraming,
    },
    /// The most that a window carries over a round trip
    Window {
        /// The window: 64k, like 64KiB, is 65,536 bytes
        #[arg(long, value_name = "SIZE", value_parser = window)]
        window: ByteCount,
        /// Round-trip time
        #[arg(long, value_name = "TIME", value_parser = round_trip)]
        rtt: Duration,
    },
    /// The table of window scales
    Scale {
        /// Round-trip time, for the rate of each
        #[arg(long, value_name = "TIME", value_parser = round_trip)]
        rtt: Option<Duration>,
    },
    /// What loss each congestion control can stand at a rate, or with --loss what rate each holds
    Loss {
        /// Rate to hold; with --loss the rate of the line, if it bounds them
        #[arg(long, value_parser = rate_above_zero)]
        rate: Option<BitRate>,
        /// Round-trip time
        #[arg(long, value_name = "TIME", value_parser = round_trip)]
        rtt: Duration,
        #[command(flatten)]
        packet: Packet,
        /// Share of packets lost at random, like 1% or 0.0001
        #[arg(long, value_parser = share)]
        loss: Option<f64>,
    },
    /// Serialisation and propagation delay
    Delay {
        /// Bytes on the line
        #[arg(long, default_value_t = 1500)]
        bytes: u32,
        /// Rate of the line
        #[arg(long, value_parser = rate_above_zero)]
        rate: Option<BitRate>,
        /// Length of the path, in kilometres
        #[arg(long)]
        km: Option<f64>,
        /// What the signal goes through
        #[arg(long, value_parser = words::any::<Medium>(), default_value = "fibre")]
        medium: Medium,
    },
    /// How long a transfer takes, with slow start
    Transfer {
        /// Payload
        #[arg(long)]
        bytes: ByteCount,
        #[command(flatten)]
        path: Path,
        #[command(flatten)]
        packet: Packet,
        /// The largest window, where one is smaller than the path
        #[arg(long, value_name = "SIZE", value_parser = window)]
        window: Option<ByteCount>,
    },
}

#[derive(Args)]
struct Path {
    /// Rate
    #[arg(long, value_parser = rate_above_zero)]
    rate: BitRate,
    /// Round-trip time
    #[arg(long, value_name = "TIME", value_parser = round_trip)]
    rtt: Duration,
}

impl Path {
    fn numbers(&self) -> (f64, f64) {
        (self.rate.bps() as f64, self.rtt.as_secs_f64())
    }
}

/// What a packet is made of.
#[derive(Args)]
struct Packet {
    /// Largest IP packet, in bytes [default: 1500; over PPPoE 1492]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u32>,
    /// IPv6 instead of IPv4
    #[arg(long)]
    ipv6: bool,
    /// Leave TCP's timestamps out
    #[arg(long)]
    no_timestamps: bool,
}

/// The largest IP packet of Ethernet, in bytes (RFC 894).
const ETHERNET_MTU_BYTES: u32 = 1500;

/// The largest IP packet over PPPoE, in bytes: its headers take eight of Ethernet's (RFC 2516 section 7).
const PPPOE_MTU_BYTES: u32 = 1492;

/// A framing, and the largest packet that lines of that kind carry.
#[derive(Debug, Clone, Copy)]
struct LineFraming {
    framing: Framing,
    mtu_bytes: u32,
}

fn line_framing(text: &str) -> Result<LineFraming, String> {
    let framing = text.parse::<Framing>().map_err(|error| error.to_string())?;
    // By its name: what it adds, a bridge adds as well.
    let mtu_bytes = match text.trim_start().starts_with("pppoe") {
        true => PPPOE_MTU_BYTES,
        false => ETHERNET_MTU_BYTES,
    };
    Ok(LineFraming { framing, mtu_bytes })
}

impl Packet {
    fn mtu(&self) -> u32 {
        self.mtu.unwrap_or(ETHERNET_MTU_BYTES)
    }

    fn headers(&self) -> Headers {
        Headers {
            timestamps: !self.no_timestamps,
            ..Headers::usual(self.ipv6)
        }
    }

    /// Payload of a segment; none of it is left to an error that names the headers.
    fn segment(&self) -> anyhow::Result<f64> {
        let headers = self.headers();
        let bytes = payload(self.mtu(), headers).ok_or(calc::CalcError::NoRoom {
            headers: headers.bytes(),
            mtu: self.mtu(),
        })?;
        Ok(f64::from(bytes))
    }
}

/// A share: `1%` or `0.01`. A bare 1 is refused: one per cent is meant by it as often as all.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent.trim(), 0.01),
        None => (text.trim(), 1.0),
    };
    let percent = scale < 1.0;
    match number.parse::<f64>() {
        Ok(n) if (0.0..=1.0).contains(&(n * scale)) && (percent || n < 1.0) => Ok(n * scale),
        Ok(n) if !percent && (1.0..=100.0).contains(&n) => Err(format!(
            "'{text}' may be per cent or a share of one: write {n}%, or a number below 1"
        )),
        _ => Err(format!(
            "'{text}' is not a share: write 0% to 100%, or a number from 0 to below 1"
        )),
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    // What cannot be calculated was not asked for in a way that can be.
    let answer = answer(&arguments.question).map_err(|error| wrong(message(&error)))?;
    if arguments.json {
        print_json(&answer)?;
    } else {
        let width = prose_columns();
        let mut text: String = answer
            .answers
            .iter()
            .map(|a| format!("{}\n", a.text))
            .collect();
        if let Some(warning) = &answer.warning {
            text.push('\n');
            wrap(&mut text, "Warning: ", 0, warning, width);
        }
        text.push('\n');
        wrap(&mut text, "", 0, &answer.method, width);
        print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(question: &Question) -> anyhow::Result<Calculation> {
    Ok(match question {
        Question::Bdp { path } => {
            let (rate, rtt) = path.numbers();
            calc::bdp(rate, rtt)?
        }
        Question::Goodput {
            rate,
            packet,
            generous,
            sack_blocks,
            framing,
        } => {
            let headers = if *generous {
                Headers::generous(packet.ipv6)
            } else {
                Headers {
                    sack_blocks: *sack_blocks,
                    ..packet.headers()
                }
            };
            let mtu = packet.mtu.unwrap_or(framing.mtu_bytes);
            calc::payload_rate(rate.bps() as f64, mtu, framing.framing, headers)?
        }
        Question::Window { window, rtt } => calc::window(window.bytes() as f64, rtt.as_secs_f64())?,
        Question::Scale { rtt } => calc::scales(rtt.map(|rtt| rtt.as_secs_f64())),
        Question::Loss {
            rate,
            rtt,
            packet,
            loss,
        } => {
            let rate = rate.map(|rate| rate.bps() as f64);
            let (rtt, segment) = (rtt.as_secs_f64(), packet.segment()?);
            match (rate, loss) {
                (rate, Some(loss)) => calc::rate_at_loss(*loss, rtt, segment, rate)?,
                (Some(rate), None) => calc::loss_for_rate(rate, rtt, segment)?,
                (None, None) => return Err(calc::CalcError::RateOrLoss.into()),
            }
        }
        Question::Delay {
            bytes,
            rate,
            km,
            medium,
        } => calc::delay(
            rate.map(|rate| (f64::from(*bytes), rate.bps() as f64)),
            km.map(|km| (km * 1000.0, *medium)),
        )?,
        Question::Transfer {
            bytes,
            path,
            packet,
            window,
        } => {
            let (rate_bps, rtt_s) = path.numbers();
            calc::transfer(Transfer {
                bytes: bytes.bytes() as f64,
                rate_bps,
                rtt_s,
                mss_bytes: packet.segment()?,
                window_bytes: window.map(|w| w.bytes() as f64),
            })?
        }
    })
}
