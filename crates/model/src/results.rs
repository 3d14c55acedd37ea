//! What each kind of measurement found. The kinds and their fields are the contract with
//! everything that reads a Run; the unit of a number is the suffix of its name.

pub mod app;
pub mod available_bandwidth;
pub mod capacity;
pub mod capture;
pub mod gateway;
pub mod host;
mod load;
pub mod mtu;
pub mod owd;
pub mod page_load;
pub mod path;
pub mod ping;
pub mod port;
pub mod quic;
pub mod rehearsal;
pub mod responsiveness;
pub mod shaping;
pub mod sharing;
pub mod sweep;
mod transactions;
pub mod transfer;
pub mod tune;
pub mod udp;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

pub use crate::direction::Direction;
use crate::distribution::Distribution;
use crate::json;
use crate::protocol::Protocol;
use crate::vocabulary;
use app::AppResult;
use available_bandwidth::AvailableBandwidthResult;
use capacity::CapacityResult;
use capture::CaptureResult;
use capture::sides::CaptureSidesResult;
use gateway::GatewayResult;
use host::{CipherResult, DiskResult, HostResult, RatesResult};
pub use load::{CpuUse, LimitedTime};
use mtu::MtuResult;
use owd::OwdResult;
pub use page_load::PageLoadResult;
use path::PathResult;
pub use ping::{PingResult, TimestampSource};
pub use port::PortResult;
use quic::QuicResult;
use rehearsal::RehearsalResult;
use responsiveness::ResponsivenessResult;
use shaping::{FramingResult, ShapedRateResult};
use sharing::Sharing;
use sweep::PingsResult;
pub use transfer::{FileTime, SlowStart, SlowStartEnd};
use tune::TuneResult;
use udp::UdpResult;

mod loaded_latency;

pub use loaded_latency::{
    ClassLatency, LoadedLatencyResult, OneWayQueueing, PathPlace, PathQueueing, Periodic,
    PeriodicOf, PlaceLatency, PlaceMethod,
};

pub use transactions::TransactionsResult;

/// Beginning of a load phase, in seconds, that its steady rate and its percentiles leave out:
/// slow start fills the pipe and the queue in it.
pub const RAMP_S: f64 = 2.0;

/// Round trips after which slow start is over on paths that are longer than [`RAMP_S`] is for: ten doublings make ten
/// segments (RFC 6928) ten thousand, and two more repair what the last one lost.
const RAMP_ROUND_TRIPS: f64 = 12.0;

/// How long slow start may take over a path of that round trip, in seconds.
pub fn ramp_s(rtt_s: f64) -> f64 {
    RAMP_S.max(RAMP_ROUND_TRIPS * rtt_s)
}

/// From when on a phase of so many seconds over that round trip counts, in seconds from its start: after slow start,
/// and at the latest from its middle on.
pub fn ramp_end_s(rtt_s: f64, duration_s: f64) -> f64 {
    ramp_s(rtt_s).min(duration_s / 2.0)
}

/// Declares the kinds of results with their words.
macro_rules! outcomes {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[doc = $meaning:literal])+ $kind:ident($result:ty) = $word:literal),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
        #[serde(tag = "kind", content = "result")]
        $vis enum $name {
            $($(#[doc = $meaning])+ #[serde(rename = $word)] $kind($result)),+
        }

        impl<'de> Deserialize<'de> for $name {
            /// By way of a value: what reads a result is compiled once, not for each buffer of serde's.
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let Tagged { kind, result } = Tagged::deserialize(deserializer)?;
                match kind {
                    $(Kind::$kind => json::from_value(&result).map(Self::$kind),)+
                }
                .map_err(|error| D::Error::custom(format_args!("{kind}: {error}")))
            }
        }

        impl $name {
            /// The kind of the outcome alone.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Self::$kind(_) => Kind::$kind),+
                }
            }
        }

        vocabulary! {
            /// A kind of measurement.
            pub enum Kind {
                $($(#[doc = $meaning])+ $kind = $word),+
            }
        }
    };
}

#[derive(Deserialize)]
struct Tagged {
    kind: Kind,
    result: serde_json::Value,
}

outcomes! {
    /// The result of a measurement, tagged by its kind.
    pub enum Outcome {
        /// Round trips of small probes.
        Ping(PingResult) = "ping",
        /// Round trips of small probes to many targets.
        Pings(Box<PingsResult>) = "pings",
        /// The path that packets take.
        Path(Box<PathResult>) = "path",
        /// What a load phase carried in one direction.
        Throughput(ThroughputResult) = "throughput",
        /// Round trips while the path was loaded.
        LoadedLatency(LoadedLatencyResult) = "loaded_latency",
        /// Whether a TCP port answers, and how fast.
        Port(Box<PortResult>) = "port",
        /// What loading a web page took.
        PageLoad(Box<PageLoadResult>) = "page_load",
        /// Whether one TCP connection could fill the path, as far as buffers go.
        Tcp(TcpResult) = "tcp",
        /// What became of the datagrams of a stream.
        Udp(Box<UdpResult>) = "udp",
        /// What QUIC carried in one direction.
        Quic(Box<QuicResult>) = "quic",
        /// Requests and their answers.
        Transactions(TransactionsResult) = "transactions",
        /// How traffic like an application's fared.
        App(Box<AppResult>) = "app",
        /// The highest UDP rate at which no more than 1 % is lost.
        AvailableBandwidth(Box<AvailableBandwidthResult>) = "available_bandwidth",
        /// Round trips a minute under working conditions.
        Responsiveness(Box<ResponsivenessResult>) = "responsiveness",
        /// What this machine is, and what its audit says.
        Host(Box<HostResult>) = "host",
        /// How fast this machine's counters grew.
        HostRates(RatesResult) = "host_rates",
        /// How fast files feed a transfer and take one.
        HostDisk(DiskResult) = "host_disk",
        /// What the gateway reports of its line.
        Gateway(Box<GatewayResult>) = "gateway",
        /// How fast this machine encrypts.
        HostCipher(CipherResult) = "host_cipher",
        /// Delay, loss and order of each direction by itself.
        Owd(Box<OwdResult>) = "owd",
        /// How large packets may be.
        Mtu(Box<MtuResult>) = "mtu",
        /// What the lines of a path could carry.
        Capacity(Box<CapacityResult>) = "capacity",
        /// What a part of a tuning plan did to the rate.
        Tune(Box<TuneResult>) = "tune",
        /// What fixes did to the twin of a path.
        Rehearsal(Box<RehearsalResult>) = "rehearsal",
        /// The rate of a shaper at which latency under load stays low.
        ShapedRate(Box<ShapedRateResult>) = "shaped_rate",
        /// What the line adds to each packet.
        Framing(Box<FramingResult>) = "framing",
        /// What a capture of packets shows.
        Capture(Box<CaptureResult>) = "capture",
        /// What became of packets between two captures.
        CaptureSides(Box<CaptureSidesResult>) = "capture_sides",
    }
}

impl From<LoadedLatencyResult> for Outcome {
    fn from(result: LoadedLatencyResult) -> Self {
        Self::LoadedLatency(result)
    }
}

impl From<ThroughputResult> for Outcome {
    fn from(result: ThroughputResult) -> Self {
        Self::Throughput(result)
    }
}

impl Outcome {
    /// Direction of the data or of the load, where the kind has one.
    pub fn direction(&self) -> Option<Direction> {
        Some(match self {
            Self::Throughput(result) => result.direction,
            Self::LoadedLatency(result) => result.direction,
            Self::Tcp(result) => result.direction,
            Self::Udp(result) => result.direction,
            Self::Quic(result) => result.direction,
            Self::App(result) => result.direction,
            Self::AvailableBandwidth(result) => result.direction,
            Self::Responsiveness(result) => result.direction,
            Self::Tune(result) => result.direction,
            Self::ShapedRate(result) => result.direction,
            Self::Framing(result) => result.direction,
            _ => return None,
        })
    }

    /// What carried the probes or the payload, where the kind has one protocol.
    pub fn protocol(&self) -> Option<Protocol> {
        Some(match self {
            Self::Ping(result) => result.protocol,
            Self::Pings(result) => result.protocol,
            Self::Path(result) => result.protocol,
            Self::Throughput(result) => result.protocol,
            Self::LoadedLatency(result) => result.protocol,
            Self::Quic(result) => result.protocol,
            Self::Owd(result) => result.protocol,
            _ => return None,
        })
    }

    /// What a load phase carried in one direction, if this is that.
    pub fn throughput(&self) -> Option<&ThroughputResult> {
        match self {
            Self::Throughput(result) => Some(result),
            _ => None,
        }
    }

    /// What requests and their answers took, where it is that.
    pub fn transactions(&self) -> Option<&TransactionsResult> {
        match self {
            Self::Transactions(result) => Some(result),
            _ => None,
        }
    }

    /// URLs that it holds.
    pub(crate) fn urls(&mut self) -> Vec<&mut String> {
        match self {
            Self::PageLoad(load) => {
                let objects = load.objects.iter_mut().map(|object| &mut object.url);
                objects
                    .chain([&mut load.url])
                    .chain(&mut load.page_url)
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// What loading a web page took, if this is that.
    pub fn page_load(&self) -> Option<&PageLoadResult> {
        match self {
            Self::PageLoad(result) => Some(result),
            _ => None,
        }
    }

    /// Round trips of small probes, if this is that.
    pub fn ping(&self) -> Option<&PingResult> {
        match self {
            Self::Ping(result) => Some(result),
            _ => None,
        }
    }

    /// The round trips beside a load, where it has any.
    pub fn loaded_latency(&self) -> Option<&LoadedLatencyResult> {
        match self {
            Self::LoadedLatency(result) => Some(result),
            _ => None,
        }
    }

    /// What became of datagrams, where it sent any.
    pub fn udp(&self) -> Option<&UdpResult> {
        match self {
            Self::Udp(result) => Some(result),
            _ => None,
        }
    }

    /// How large packets may be, where that was searched.
    pub fn mtu(&self) -> Option<&MtuResult> {
        match self {
            Self::Mtu(result) => Some(result),
            _ => None,
        }
    }
}

/// The bandwidth-delay product of a direction against the windows that both ends allow one
/// connection. Worked out from what was measured and from the ends' settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpResult {
    /// Direction of the data.
    pub direction: Direction,
    /// Payload in bit/s that the direction carried by itself.
    pub rate_bps: f64,
    /// Smallest round-trip time that TCP saw, in seconds.
    pub rtt_s: f64,
    /// Bandwidth-delay product in bytes: what must be in flight to carry that rate.
    pub bdp_bytes: f64,
    /// Bytes that the sender's largest send buffer lets one connection have in flight. Null where the buffer is
    /// unknown.
    pub send_window_bytes: Option<f64>,
    /// Bytes that the receiver's largest receive buffer lets one connection have in flight. Null where the buffer is
    /// unknown.
    pub receive_window_bytes: Option<f64>,
    /// The most in bit/s that one connection can carry with the smaller of the two windows. Null where a window is
    /// unknown.
    pub one_flow_bps: Option<f64>,
}

/// What a load phase carried in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThroughputResult {
    /// Direction of the data.
    pub direction: Direction,
    /// What carried the payload: `tcp`, or `tls` over it.
    pub protocol: Protocol,
    /// Payload in bit/s that reached the receiver, over the whole phase: what its program read, or what its TCP had
    /// acknowledged, in order and out of order, where that is more.
    pub bps: f64,
    /// The same in bit/s without the first two seconds, which slow start may fill. Null in a phase shorter than four
    /// seconds.
    pub steady_bps: Option<f64>,
    /// Payload in bytes that reached the receiver.
    pub bytes: u64,
    /// Congestion control that the senders ran.
    pub cc: String,
    /// How the streams began. Null where slow start did not end.
    pub slow_start: Option<SlowStart>,
    /// The senders' payload was sent from where it lay (sendfile), which represents no program that writes what it
    /// made.
    #[serde(default)]
    pub zero_copy_send: bool,
    /// The receivers dropped the payload unseen (MSG_TRUNC), which represents no program that reads.
    #[serde(default)]
    pub discard_receive: bool,
    /// The files that the payload came from or went to. Null without any.
    pub files: Option<FileTime>,
    /// Each stream of the phase by itself.
    pub streams: Vec<StreamResult>,
    /// How the streams shared the direction. Null where there was one.
    pub sharing: Option<Sharing>,
    /// The senders' TCP state, over all streams.
    pub tcp: TcpSender,
    /// The receivers' TCP state, over all streams.
    pub tcp_receiver: TcpReceiver,
    /// Processor use of both ends during the phase.
    pub cpu: CpuUse,
    /// How the payload was encrypted. Absent where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsResult>,
}

/// Encryption of a load phase, done by both programs themselves and not by their kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TlsResult {
    /// Cipher suites in use, in practice one, by their IANA names.
    pub cipher_suite: String,
    /// Time of the handshakes at the client in seconds, after TCP's own: one round trip and the computing of both ends.
    pub handshake_s: Distribution,
}

/// Payload of one stream of a load phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamResult {
    /// Number of the stream, from 0.
    pub id: u32,
    /// Payload in bytes that reached the receiver.
    pub bytes: u64,
    /// Payload in bit/s that reached the receiver.
    pub bps: f64,
    /// Segments that were retransmitted.
    pub retransmits: u64,
    /// Why the stream ended early. Null where it did not.
    pub error: Option<String>,
}

/// What the sending TCPs said of themselves (TCP_INFO).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpSender {
    /// Segments that were retransmitted, of all streams.
    pub retransmits: u64,
    /// Segments among them that the receivers had already (D-SACK, RFC 2883): delay or reordering made the senders
    /// repeat them, and no loss. Null where the sending end did not report it.
    #[serde(default)]
    pub spurious_retransmits: Option<u64>,
    /// Smallest round-trip time that TCP saw (tcpi_min_rtt), in seconds. Null where TCP saw none.
    pub min_rtt_s: Option<f64>,
    /// Largest smoothed round-trip time at any sample, in seconds. Null where there was no sample.
    pub max_srtt_s: Option<f64>,
    /// Maximum segment size of the streams, in bytes.
    pub mss_bytes: u64,
    /// Largest send buffer that a stream had, in bytes (SO_MEMINFO sndbuf). Null where the kernel does not report it.
    pub send_buffer_bytes: Option<u64>,
    /// Largest number of unacknowledged payload bytes seen on one stream.
    pub max_in_flight_bytes: u64,
    /// Whether all streams negotiated ECN (RFC 3168). Null where the sending end did not report it.
    pub ecn: Option<bool>,
    /// Whether the SYN of every stream carried data (TCP Fast Open, RFC 7413). Null where the sending end did not
    /// report it.
    pub fast_open: Option<bool>,
    /// Whether all streams ran Multipath TCP (RFC 8684). Null where the sending end did not report it.
    pub mptcp: Option<bool>,
    /// Whether all streams could announce windows above 64 KiB (RFC 7323). Null where the sending end did not report
    /// it.
    pub window_scaling: Option<bool>,
    /// Whether all streams had selective acknowledgements (RFC 2018). Null where the sending end did not report it.
    pub sack: Option<bool>,
    /// Whether the segments of all streams carried timestamps (RFC 7323). Null where the sending end did not report it.
    pub timestamps: Option<bool>,
    /// Where the senders' time went; the four shares sum to 1.
    pub limited: LimitedTime,
}

/// What the receiving TCPs said of themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpReceiver {
    /// Largest receive buffer that a stream had, in bytes (SO_MEMINFO rcvbuf). Null where the kernel does not report
    /// it.
    pub receive_buffer_bytes: Option<u64>,
    /// Largest window in bytes that a receiver advertised, as the sender saw it (tcpi_snd_wnd). Null where the sender's
    /// kernel does not report it.
    pub max_window_bytes: Option<u64>,
}
