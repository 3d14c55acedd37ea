//! What a path looks like: its hops, where packets are lost on it, how it changed, and what it
//! does to packets.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::protocol::Protocol;

mod symmetry;

pub use symmetry::{Comparison, LineBothWays, PathSymmetry, Sameness};

/// A path, as probes whose time to live ends on the way saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathResult {
    /// What the probes were made of.
    pub protocol: Protocol,
    /// Destination port of UDP and TCP.
    pub port: Option<u16>,
    /// The target's address.
    pub address: String,
    /// Whether the target itself answered.
    pub reached: bool,
    /// Probes to each hop, at most.
    pub cycles: u64,
    /// From the nearest on; the last is the target when it was reached.
    pub hops: Vec<PathHop>,
    /// Where packets are lost; absent where none are, or it cannot be said.
    pub loss: Option<PathLoss>,
    /// The ways that packets of one flow took, in the order in which they were first seen.
    pub routes: Vec<PathRoute>,
    /// Changes from one way to another.
    pub changes: Vec<RouteChange>,
    /// What routers showed to have been changed in the packets that reached them.
    pub alterations: Vec<Alteration>,
    /// What the target says of TCP in its SYN-ACK.
    pub syn_ack: Option<SynAckSeen>,
    /// All ways that flows may take, where they were asked for.
    pub multipath: Option<Multipath>,
    /// How long the path is on the map, where places are known.
    pub distance: Option<PathDistance>,
    /// The way back, where a responder at the target told it.
    #[serde(default)]
    pub way_back: Option<Box<WayBack>>,
    /// The way there held against the way back.
    #[serde(default)]
    pub symmetry: Option<PathSymmetry>,
}

/// The path from a responder at the target to this host, as probes of the responder saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WayBack {
    /// The responder's address.
    pub from: String,
    /// The address that it traced towards: this host's, or that of a NAT before it.
    pub address: String,
    /// What its probes were made of.
    pub protocol: Protocol,
    /// Destination port of UDP.
    pub port: Option<u16>,
    /// Whether `address` answered.
    pub reached: bool,
    /// Probes to each hop, at most.
    pub cycles: u64,
    /// From the responder on; the last is `address` when it was reached. Round trips are the
    /// responder's.
    pub hops: Vec<PathHop>,
    /// Where packets of the responder's are lost; absent where none are, or it cannot be said.
    pub loss: Option<PathLoss>,
}

/// How a hop answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HopAnswers {
    /// As often as the path beyond it lets expect.
    Well,
    /// Less often than what lies beyond it: it declines to answer, and forwards well.
    Sparing,
    /// Less often than what lies beyond it, by so few probes that it may be chance: whether it declines to
    /// answer or packets are lost is unknown.
    TooFew,
    /// Less often than it was asked, and nobody beyond tells whether it declines to answer or packets
    /// are lost.
    Unclear,
    /// Never.
    Silent,
}

/// A hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathHop {
    /// The time to live that ends there, from 1.
    pub ttl: u8,
    /// Who answered last, on the route that was in use last; absent where nobody did.
    pub address: Option<String>,
    /// Everybody who answered there, in the order in which they were first seen.
    pub addresses: Vec<String>,
    /// The name of `address`, where it has one.
    pub name: Option<String>,
    /// The autonomous system of `address`, where a database told.
    pub asn: Option<u32>,
    /// Its name.
    #[serde(default)]
    pub as_name: Option<String>,
    /// Where `address` is, where a database told and its round trips do not exclude it.
    #[serde(default)]
    pub place: Option<MapPlace>,
    /// Probes sent.
    pub sent: u64,
    /// Probes answered.
    pub received: u64,
    /// Share of the probes that were not answered. Loss on the path only as far as
    /// [`PathResult::loss`] says so.
    pub unanswered_ratio: f64,
    /// How it answers.
    pub answers: HopAnswers,
    /// Round trips, from the first hop at which the route changed on those of the route that was in use last;
    /// absent when nothing came back.
    pub rtt_s: Option<Distribution>,
    /// The latest round trip.
    pub last_rtt_s: Option<f64>,
    /// traceroute's mark (`!H`, `!N`, `!X` …), where a router refused to forward.
    pub annotation: Option<String>,
    /// Whether it is the host that traces, which marks its own packets: it could not send them on.
    #[serde(default)]
    pub this_host: bool,
    /// MPLS labels that probes bore there, the outermost first.
    pub mpls: Vec<MplsEntry>,
    /// Hops that its answers took, worked out from the time to live that they had left (64, 128 or
    /// 255 at their start).
    pub return_hops: Option<u8>,
    /// What must be known to read this hop.
    pub notes: Vec<String>,
}

/// What traceroute's mark says, to go on from who bears it: `hop 3: it has no route there`.
pub fn refusal(mark: &str) -> &'static str {
    match mark {
        "!N" => "it has no route there",
        "!H" => "it does not find that host",
        "!P" => "the host does not speak their protocol",
        "!S" => "a source route failed, or a policy is against it",
        "!X" => "a filter prohibits it",
        "!V" | "!C" => "their precedence is not admitted",
        "!A" => "it rejects the route or the source address",
        _ => "for a reason that has no name",
    }
}

/// An entry of an MPLS label stack (RFC 3032).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MplsEntry {
    /// The label.
    pub label: u32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Time to live.
    pub ttl: u8,
}

/// Where something is on the map.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapPlace {
    /// Degrees north.
    pub latitude_deg: f64,
    /// Degrees east.
    pub longitude_deg: f64,
}

impl fmt::Display for MapPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side =
            |degrees: f64, positive, negative| if degrees < 0.0 { negative } else { positive };
        write!(
            out,
            "{:.1}° {} {:.1}° {}",
            self.latitude_deg.abs(),
            side(self.latitude_deg, 'N', 'S'),
            self.longitude_deg.abs(),
            side(self.longitude_deg, 'E', 'W')
        )
    }
}

/// Where packets are lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathLoss {
    /// Share of the probes lost at and beyond the hop where loss begins: `lost_beyond` of `sent_beyond`.
    pub ratio: f64,
    /// The share is at least this, with a probability of 97.5 %.
    #[serde(default)]
    pub at_least_ratio: f64,
    /// Probes to the hop where loss begins and all beyond it that answer well.
    #[serde(default)]
    pub sent_beyond: u64,
    /// How many of them were lost.
    #[serde(default)]
    pub lost_beyond: u64,
    /// The first hop whose probes, and those of all beyond it, are lost: packets are lost on the
    /// line before it or in its queue, or their answers on the way back.
    pub begins_at_ttl: u8,
    /// The first hop for which the probes speak nearly as well (within two units of log-likelihood),
    /// or do not speak at all, because it does not answer well.
    pub earliest_ttl: u8,
    /// The last such.
    pub latest_ttl: u8,
    /// Probes to the last hop that answers.
    pub sent: u64,
    /// How many of them were lost.
    pub lost: u64,
}

/// One way that packets took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathRoute {
    /// The address at each hop, from the first; null where nobody answered.
    pub addresses: Vec<Option<String>>,
    /// When it was first seen, seconds from the start.
    pub first_s: f64,
    /// When it was last seen.
    pub last_s: f64,
    /// Cycles in which it was taken.
    pub cycles: u64,
    /// Probes to the last hop of it.
    pub sent: u64,
    /// How many of them were answered.
    pub received: u64,
    /// Round trips to the last hop of it.
    pub rtt_s: Option<Distribution>,
}

/// A change of the route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouteChange {
    /// When the new route was first seen, seconds from the start.
    pub at_s: f64,
    /// When the old route was last seen: the change came between.
    pub after_s: f64,
    /// The same moment as `at_s`, RFC 3339 in UTC.
    #[serde(default)]
    pub time: Option<String>,
    /// Number of the old route in `routes`, from 0.
    pub from_route: usize,
    /// Number of the new one.
    pub to_route: usize,
    /// The first hop that differs.
    pub ttl: u8,
}

/// A field of a packet that somebody on the way may change.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AlteredField {
    /// The differentiated services codepoint.
    Dscp,
    /// The ECN field.
    Ecn,
    /// The time to live was not what the hop's distance makes it.
    Ttl,
    /// The source address.
    SourceAddress,
    /// The destination address.
    DestinationAddress,
    /// A port, or the identifier of an echo.
    Ports,
    /// The transport checksum, although nothing that it covers.
    Checksum,
    /// The length of the packet.
    Length,
    /// "Don't fragment".
    DontFragment,
    /// TCP's maximum segment size.
    Mss,
    /// Which TCP options there are.
    TcpOptions,
    /// TCP's request for ECN in a SYN.
    TcpEcn,
    /// The target's answer came from another address than it was asked at.
    AnswerFrom,
}

/// A change that was seen in what routers quoted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alteration {
    /// What was changed.
    pub field: AlteredField,
    /// As it was sent.
    pub sent: String,
    /// As it was seen.
    pub seen: String,
    /// The first hop at which it was seen.
    pub seen_at_ttl: u8,
    /// The last hop before it that still saw what was sent: the change was made behind it.
    pub intact_at_ttl: Option<u8>,
}

/// What a target's SYN-ACK offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SynAckSeen {
    /// Maximum segment size.
    pub mss_bytes: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// ECN, where it was asked for.
    pub ecn: bool,
}

/// How a router shares traffic over equal paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Balancing {
    /// The packets of one flow take one way.
    PerFlow,
    /// They do not.
    PerPacket,
}

/// All ways that flows may take, as far as they pass different routers: several lines between the same two
/// routers show as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Multipath {
    /// The probability that no router was missed at a hop whose next hops are equally likely.
    pub confidence: f64,
    /// Flows that were tried.
    pub flows: u64,
    /// Probes that it took.
    pub probes: u64,
    /// The most addresses at any distance.
    pub width: u64,
    /// What stands at each distance.
    pub nodes: Vec<MultipathNode>,
    /// Whether the search came to its end: not when it ran out of flows, or was stopped.
    pub complete: bool,
}

/// Somebody at a distance, and who comes next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MultipathNode {
    /// Distance; 0 is this host.
    pub ttl: u8,
    /// Address; absent where nobody answered.
    pub address: Option<String>,
    /// Addresses at the next distance that its flows went on to; null for one that does not answer.
    pub next: Vec<Option<String>>,
    /// How it shares, where there are several next.
    pub balancing: Option<Balancing>,
}

/// The length of the path over the places that are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathDistance {
    /// Along the places of the hops, in metres.
    pub along_path_m: f64,
    /// From the first to the last known place, in metres.
    pub direct_m: f64,
    /// The least round trip that light in fibre takes over the direct distance.
    pub light_rtt_s: f64,
    /// The same along the places of the hops.
    #[serde(default)]
    pub along_light_rtt_s: f64,
    /// The least round trip to the last hop whose place is known.
    pub rtt_s: Option<f64>,
    /// The hop that lies furthest off the direct way, where there is a detour.
    pub detour_ttl: Option<u8>,
}
