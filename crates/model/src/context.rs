//! When and beside what a measurement was made: typed, because what numbers mean hangs on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::Protocol;
use crate::results::Direction;
use crate::results::path::EcnField;
use crate::vocabulary;

/// When and beside what a measurement was made. Everything is absent or empty where it was made by itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// The phase of the plan that the measurement belongs to; absent where the plan has no phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What loaded the path meanwhile; absent where plumb put no load on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// The experiment that the load was; absent where it was what the plan asked for anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Experiment>,
    /// Names of the application profiles whose traffic ran meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<String>,
    /// Which repetition of the same measurement it is, from 1; absent where it was made once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<u32>,
    /// The `id` of the Run that the measurement was made in; absent in that Run itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The first probe of each stream of probes, by which they are found in a capture or a lab's log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeIdentity>,
}

vocabulary! {
    /// A phase of a plan, named by what loads the path.
    pub enum Phase {
        /// Nothing but applications loads the path.
        Idle = "idle",
        /// An upload loads it.
        Up = "up" as "upload",
        /// A download loads it.
        Down = "down" as "download",
        /// An upload and a download load it at once.
        Both = "both" as "both at once",
        /// Nothing loads it again, after a load.
        After = "after" as "after load",
        /// Nothing at all passes for seconds, but for single probes.
        Silence = "silence" as "after silence",
    }
}

impl Phase {
    /// Which direction is loaded; `None` where neither is.
    pub fn direction(self) -> Option<Direction> {
        match self {
            Self::Up => Some(Direction::Up),
            Self::Down => Some(Direction::Down),
            Self::Both => Some(Direction::Both),
            Self::Idle | Self::After | Self::Silence => None,
        }
    }
}

impl From<Direction> for Phase {
    fn from(loaded: Direction) -> Self {
        match loaded {
            Direction::Up => Self::Up,
            Direction::Down => Self::Down,
            Direction::Both => Self::Both,
        }
    }
}

vocabulary! {
    /// A load that distinguishes causes, where the plan's own loads leave signs unexplained.
    pub enum Experiment {
        /// Datagrams at 80 % of the rate that TCP reached: what is lost now is lost at any load.
        Paced = "paced",
        /// Datagrams above that rate: what the line does with more than it carries, and whether it carries more.
        Overload = "overload",
        /// Small datagrams, twice as many a second as TCP carried packets, and few bits: a box that limits packets loses half.
        SmallPackets = "small-packets",
        /// Datagrams of several flows, together twice what one flow of them reached: whether each flow has a limit of its own.
        ManyFlows = "many-flows",
        /// One TCP connection alone: what the path gives to each flow.
        SingleStream = "single-stream",
        /// One TCP connection in segments of 1000 bytes, where nothing arrived in larger ones: whether large packets vanish.
        SmallSegments = "small-segments",
    }
}

/// Segments of [`Experiment::SmallSegments`], in bytes of payload: with headers, less than the 1280 bytes that every path of IPv6
/// carries (RFC 8200, section 5).
pub const SMALL_SEGMENT_BYTES: u16 = 1000;

/// What loaded the path, as it was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// How many streams there were in each loaded direction.
    pub streams: u32,
    /// How its streams were marked and begun.
    #[serde(default)]
    pub shape: LoadShape,
    /// The class of traffic of each stream, by its number; empty where all were best effort.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stream_classes: Vec<String>,
    /// How long it was to last, in seconds.
    pub duration_s: f64,
    /// Payload in bytes after which it was to end; absent without such a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_limit_bytes: Option<u64>,
    /// The file that uploads sent; absent where they sent bytes from memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The file that downloads went to; absent where they were dropped when read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The groups of equal streams.
    pub flows: Vec<LoadFlow>,
}

vocabulary! {
    /// How the streams of a load were marked and begun.
    pub enum LoadShape default BestEffort {
        /// All at once, best effort.
        BestEffort = "best-effort",
        /// All at once, in the four classes of the RRUL test.
        Rrul = "rrul",
        /// All at once, one of best effort against the others as background.
        Torrent = "torrent",
        /// One after the other until the path is full, as draft-ietf-ippm-responsiveness has it.
        Responsiveness = "rpm",
    }
}

/// A group of equal streams of a load, as they were asked for. Absent settings were the protocol's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFlow {
    /// How many streams of this group there were in each loaded direction.
    pub streams: u32,
    /// Protocol that carried the streams.
    pub protocol: Protocol,
    /// Congestion control of the senders. Absent where it was the host's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
    /// DSCP of the packets, 0 to 63 (RFC 2474). Absent where none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// ECN field of the datagrams. Absent where none was asked for, and in Runs of versions that had it among the options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnField>,
    /// Send and receive buffer of both ends, in bytes. Absent where the kernel chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u32>,
    /// Largest segment, in bytes. Absent where the kernel chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_bytes: Option<u16>,
    /// The most that a sender let out, in bit/s. Absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_bps: Option<u64>,
    /// Whether the senders yielded to all other traffic (LEDBAT++).
    #[serde(default, skip_serializing_if = "is_false")]
    pub background: bool,
    /// Whether the far end read or wrote a file.
    #[serde(default, skip_serializing_if = "is_false")]
    pub far_disk: bool,
    /// Whether the payload was encrypted by TLS.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tls: bool,
    /// What else was asked for, by its name in the native protocol. For people: no part of plumb reads it.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub options: serde_json::Map<String, serde_json::Value>,
}

/// Which probes a series is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeIdentity {
    /// What the probes were made of.
    pub protocol: Protocol,
    /// ICMP's identifier, or the session of the native echo.
    pub id: u32,
    /// Sequence number of the first probe of the series.
    pub first_seq: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_false(value: &bool) -> bool {
    !value
}

impl LoadFlow {
    /// Whether a sender may have waited for what it was asked to: windows and rates that are set, disks, and
    /// yielding.
    pub fn is_held(&self) -> bool {
        self.window_bytes.is_some() || self.pacing_bps.is_some() || self.far_disk || self.background
    }
}

impl Load {
    /// Whether something that was asked for may hold the load back, whatever the path and the ends' own
    /// settings: held or mixed streams, and files.
    pub fn is_held(&self) -> bool {
        let held = self.flows.iter().any(LoadFlow::is_held);
        held || self.flows.len() > 1 || self.from.is_some() || self.to.is_some()
    }

    /// The pacing of each stream that was asked for, in bit/s, where all were alike.
    pub fn pacing_bps(&self) -> Option<f64> {
        match self.flows.as_slice() {
            [alike] => alike.pacing_bps.map(|bps| bps as f64),
            _ => None,
        }
    }
}

impl Context {
    /// Of a phase that loads nothing.
    pub fn phase(phase: Phase) -> Self {
        Self {
            phase: Some(phase),
            ..Self::default()
        }
    }
}
