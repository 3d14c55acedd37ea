//! The options of the datagrams that carry the load.

use std::path::Path;

use clap::Args;
use plumb_model::direction::OneDirection;
use plumb_model::units::{BitRate, ByteCount};
use plumb_wire::native::control::flow::udp::{
    Ecn, MAX_GSO_SEGMENTS, MAX_PAYLOAD_BYTES, Pattern, Times, UdpFlow,
};
use plumb_wire::native::control::flow::{Flow, Flows, TcpFlow};
use plumb_wire::native::datagram::HEADER_BYTES;

use crate::quantity::{rate_above_zero, time_above_zero, window};
use crate::usage::wrong;

mod trace;

/// From this rate on trains are sent and received by default: packets one by one take
/// a processor whole at about twice that.
const TRAINS_FROM_BPS: f64 = 1e9;

/// UDP payload of a packet by default: fits tunnels on most paths.
const PAYLOAD_BYTES: u16 = 1400;

/// Packets of a burst of `--pattern bursts`, long ones and then short ones: within what the
/// smallest queues hold.
const BURST_PACKETS: usize = 10;

/// Payload of the short ones: with headers, the smallest Ethernet frame and a little more.
const SHORT_BYTES: u16 = 64;

/// Datagrams instead of TCP.
#[derive(Args)]
#[command(next_help_heading = "UDP")]
pub(crate) struct UdpOptions {
    /// UDP instead of TCP, at the rate of -b
    ///
    /// Each datagram is followed: lost, late, reordered or duplicated.
    #[arg(short, long)]
    udp: bool,
    /// UDP payload a second of each stream while it sends, such as 50mbit; max is as fast as the host can
    ///
    /// A trace has a rate of its own.
    #[arg(long, requires = "udp", value_parser = payload_rate)]
    rate: Option<Bandwidth>,
    /// UDP payload of each packet in bytes, at least 32 [default: 1400]
    ///
    /// A trace has sizes of its own.
    #[arg(short, long, alias = "length", value_name = "BYTES", requires = "udp")]
    size: Option<u16>,
    /// When packets are sent: constant, poisson, on-off=ON/OFF, on-off-random=ON/OFF, bursts or trace=FILE
    ///
    /// on-off=1s/3s sends for a second and pauses for three; with on-off-random these are the means of exponential times.
    /// bursts are 10 long packets and then 10 short ones, for the worst reordering. A trace has lines of seconds since the
    /// packet before, and bytes.
    #[arg(long, requires = "udp", default_value = "constant")]
    pattern: String,
    /// Seed of a pattern that is drawn
    #[arg(long, requires = "udp", default_value_t = 1)]
    seed: u64,
    /// Packets handed to the kernel in one send, which depart together (UDP_SEGMENT); 1 is each by
    /// itself [default: 1 below 1 Gbit/s, as many as fit from there on]
    #[arg(long, value_name = "N", requires = "udp")]
    gso: Option<u16>,
    /// Whether the receiver takes trains of packets as one (UDP_GRO), which blurs the times within a
    /// train [default: from 1 Gbit/s on]
    #[arg(long, value_name = "BOOL", requires = "udp", num_args = 0..=1, default_missing_value = "true")]
    gro: Option<bool>,
    /// Mark packets ECN-capable with ECT(0) or ECT(1); marks of congestion are counted
    #[arg(long, value_name = "0|1", requires = "udp", value_parser = clap::value_parser!(u8).range(0..=1))]
    ect: Option<u8>,
    /// Refuse to send what is above the path's MTU, instead of as fragments
    #[arg(long, requires = "udp")]
    dont_fragment: bool,
    /// Receive buffer, before the kernel doubles it [default: 32 MiB]
    #[arg(long, value_name = "SIZE", value_parser = window, requires = "udp")]
    receive_buffer: Option<ByteCount>,
}

/// How fast to send.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bandwidth {
    Max,
    Of(BitRate),
}

/// The value of `--rate`.
fn payload_rate(text: &str) -> Result<Bandwidth, String> {
    match text {
        "max" => Ok(Bandwidth::Max),
        text => match rate_above_zero(text) {
            Ok(rate) => Ok(Bandwidth::Of(rate)),
            Err(why) => Err(format!("{why}; or max")),
        },
    }
}

/// The value of `-b`, as iperf3 has it: a bare number is bit/s, and 0 is no limit.
pub(crate) fn bandwidth(text: &str) -> Result<Bandwidth, String> {
    match text.parse::<BitRate>() {
        Ok(rate) if rate.bps() == 0 => Ok(Bandwidth::Max),
        Ok(rate) => Ok(Bandwidth::Of(rate)),
        Err(_) => payload_rate(text),
    }
}

impl UdpOptions {
    /// Whether datagrams are asked for.
    pub(crate) fn is_asked(&self) -> bool {
        self.udp
    }

    /// What each stream is: TCP as `tcp` says, or datagrams where they are asked for, at `bandwidth` or at `--rate`, of
    /// which one is given at most.
    pub(crate) fn flow(&self, tcp: TcpFlow, bandwidth: Option<Bandwidth>) -> anyhow::Result<Flow> {
        if !self.udp {
            return Ok(Flow::Tcp(tcp));
        }
        let rate = bandwidth.or(self.rate);
        let dscp = tcp.dscp;
        let other = TcpFlow { dscp: None, ..tcp };
        if other != TcpFlow::default() {
            return Err(wrong(
                "of the options of TCP only --dscp goes with --udp: leave the others out",
            ));
        }
        let pattern = self.pattern(rate)?;
        let mut flow = UdpFlow {
            seed: self.seed,
            dscp,
            ecn: self
                .ect
                .map(|bit| if bit == 0 { Ecn::Ect0 } else { Ecn::Ect1 }),
            dont_fragment: self.dont_fragment,
            receive_buffer_bytes: self
                .receive_buffer
                .map(|size| u32::try_from(size.bytes()).unwrap_or(u32::MAX)),
            ..UdpFlow::new(self.size(), pattern)
        };
        let fast = match rate {
            Some(Bandwidth::Max) => true,
            Some(Bandwidth::Of(rate)) => rate.bps() as f64 >= TRAINS_FROM_BPS,
            None => false,
        };
        let one_size = !matches!(flow.pattern, Pattern::Trace { .. });
        let train = MAX_PAYLOAD_BYTES / self.size().max(HEADER_BYTES as u16);
        flow.gso = match self.gso {
            Some(1) => None,
            None if fast && one_size => Some(train.min(MAX_GSO_SEGMENTS)).filter(|n| *n > 1),
            asked => asked,
        };
        flow.gro = self.gro.unwrap_or(fast && one_size);
        let flow = Flow::Udp(flow);
        let flows = Flows {
            count: 1,
            role: OneDirection::Up,
            flow,
        };
        flows
            .check()
            .map_err(|(_, why)| wrong(format!("--udp cannot be so: {why}")))?;
        Ok(flows.flow)
    }

    fn size(&self) -> u16 {
        self.size.unwrap_or(PAYLOAD_BYTES)
    }

    fn pattern(&self, rate: Option<Bandwidth>) -> anyhow::Result<Pattern> {
        let (name, argument) = match self.pattern.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (self.pattern.as_str(), None),
        };
        if let ("trace", Some(file)) = (name, argument) {
            return match (rate, self.size) {
                (None, None) => trace::read(Path::new(file)),
                _ => Err(wrong(
                    "a trace has a rate and sizes of its own: leave --rate and --size out, or take another --pattern",
                )),
            };
        }
        let Some(rate) = rate else {
            return Err(wrong(
                "--udp needs a rate, such as -b 50mbit (--rate), or a trace",
            ));
        };
        let rate = match rate {
            Bandwidth::Of(rate) => rate,
            Bandwidth::Max if self.pattern == "constant" => return Ok(Pattern::Max),
            Bandwidth::Max => {
                return Err(wrong(
                    "--rate max has no pattern: leave --pattern out, or give a rate",
                ));
            }
        };
        let pps = rate.bps() as f64 / (f64::from(self.size()) * 8.0);
        match (name, argument) {
            ("constant", None) => Ok(Pattern::Constant { pps }),
            ("poisson", None) => Ok(Pattern::Poisson { pps }),
            ("on-off", Some(times)) => on_off(pps, times, Times::Fixed),
            ("on-off-random", Some(times)) => on_off(pps, times, Times::Exponential),
            ("bursts", None) => Ok(bursts(rate, self.size())),
            _ => Err(wrong(format!(
                "'{}' is no pattern: write constant, poisson, on-off=1s/3s, on-off-random=1s/3s, bursts or trace=FILE",
                self.pattern
            ))),
        }
    }
}

fn on_off(pps: f64, text: &str, times: Times) -> anyhow::Result<Pattern> {
    let time = |text: &str| time_above_zero(text).ok();
    let (on, off) = text
        .split_once('/')
        .and_then(|(on, off)| Some((time(on)?, time(off)?)))
        .ok_or_else(|| wrong(format!("'{text}' is not two times above zero, like 1s/3s")))?;
    Ok(Pattern::OnOff {
        pps,
        on_s: on.as_secs_f64(),
        off_s: off.as_secs_f64(),
        times,
    })
}

/// A burst of long packets and then of short ones, which may overtake them where there are two
/// paths through a box; so many a second that the rate is kept.
fn bursts(rate: BitRate, long_bytes: u16) -> Pattern {
    let sizes = std::iter::repeat_n(long_bytes, BURST_PACKETS)
        .chain(std::iter::repeat_n(SHORT_BYTES, BURST_PACKETS));
    let bits: f64 = sizes.clone().map(|size| f64::from(size) * 8.0).sum();
    let period_s = bits / rate.bps() as f64;
    let packets = sizes
        .enumerate()
        .map(|(place, size)| (if place == 0 { period_s } else { 0.0 }, size))
        .collect();
    Pattern::Trace { packets }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use anyhow::Context as _;
    use clap::Parser;
    use std::io::Write as _;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        udp: UdpOptions,
    }

    fn flow(arguments: &str) -> anyhow::Result<UdpFlow> {
        let words = arguments.split_whitespace();
        let command = Command::try_parse_from(std::iter::once("rate").chain(words))?;
        let flow = command.udp.flow(TcpFlow::default(), None)?;
        flow.udp().cloned().context("not UDP")
    }

    fn error(arguments: &str) -> String {
        flow(arguments).unwrap_err().to_string()
    }

    #[test]
    fn trains_begin_where_single_packets_end() {
        let slow = flow("--udp --rate 50mbit").unwrap();
        assert_eq!((slow.gso, slow.gro), (None, false));
        assert!((slow.mean_bps().unwrap() - 50e6).abs() < 1.0, "{slow:?}");
        let fast = flow("--udp --rate 1gbit").unwrap();
        assert_eq!((fast.gso, fast.gro), (Some(46), true));
        let fast = flow("--udp --rate max --gso 1 --gro false").unwrap();
        assert_eq!((fast.gso, fast.gro), (None, false));
        let slow = flow("--udp --rate 50mbit --gso 4 --gro").unwrap();
        assert_eq!((slow.gso, slow.gro), (Some(4), true));
        assert_eq!(flow("--udp --rate max --size 40000").unwrap().gso, None);
    }

    #[test]
    fn patterns_are_as_they_are_written() {
        let pattern =
            |text: &str| flow(&format!("--udp --rate 8mbit --size 1000 --pattern {text}"));
        assert_eq!(
            pattern("poisson").unwrap().pattern,
            Pattern::Poisson { pps: 1000.0 }
        );
        let on_off = Pattern::OnOff {
            pps: 1000.0,
            on_s: 1.0,
            off_s: 0.5,
            times: Times::Exponential,
        };
        assert_eq!(pattern("on-off-random=1s/500ms").unwrap().pattern, on_off);
        let bursts = pattern("bursts").unwrap();
        assert!((bursts.mean_bps().unwrap() - 8e6).abs() < 1.0);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "# voice\n0.02 160\n\n0.02 160 # again\n").unwrap();
        let file = file.path().display();
        let trace = flow(&format!("--udp --pattern trace={file}")).unwrap();
        assert_eq!(
            trace.pattern,
            Pattern::Trace {
                packets: vec![(0.02, 160); 2]
            }
        );
    }

    #[test]
    fn a_bare_bandwidth_is_in_bits() {
        assert!(matches!(bandwidth("10000"), Ok(Bandwidth::Of(rate)) if rate.bps() == 10_000));
        assert!(matches!(bandwidth("20M"), Ok(Bandwidth::Of(rate)) if rate.bps() == 20_000_000));
        for unlimited in ["0", "max"] {
            assert!(matches!(bandwidth(unlimited), Ok(Bandwidth::Max)));
        }
        assert!(bandwidth("fast").is_err_and(|why| why.contains("20mbit")));
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (arguments, words) in [
            ("--udp", "--rate"),
            ("--rate 1mbit", "--udp"),
            ("--udp --rate 0", "above zero"),
            ("--udp --rate 0bit", "above zero"),
            ("--udp --rate 2000gbit --size 9000", "no interface has"),
            ("--udp --rate 1mbit --size 31", "32 (what plumb writes"),
            ("--udp --rate 1mbit --pattern waltz", "is no pattern"),
            ("--udp --rate 1mbit --pattern on-off=1s", "two times"),
            ("--udp --rate max --pattern poisson", "max has no pattern"),
            ("--udp --pattern trace=/nowhere", "/nowhere"),
            (
                "--udp --rate 1mbit --pattern trace=/nowhere",
                "leave --rate and --size out",
            ),
            (
                "--udp --size 500 --pattern trace=/nowhere",
                "leave --rate and --size out",
            ),
            ("--udp --pattern poisson", "needs a rate"),
            ("--udp --rate 1mbit --gso 65", "2 to 64"),
        ] {
            let text = error(arguments);
            assert!(text.contains(words), "{arguments}: {text}");
        }
    }
}
