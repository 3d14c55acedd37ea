//! What a path looks like: its hops, where packets are lost on it, how it changed, and what it
//! does to packets.

use std::fmt;

use crate::vocabulary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::protocol::Protocol;

mod marks;
mod symmetry;

pub use marks::{ArrivedMarks, EcnField, MarksBetweenEnds};
pub use symmetry::{Comparison, LineBothWays, PathSymmetry, Sameness};

/// A path, as probes whose time to live ends on the way saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathResult {
    /// What the probes were made of.
    pub protocol: Protocol,
    /// Destination port of UDP and TCP. Null for ICMP.
    pub port: Option<u16>,
    /// IP address of the target.
    pub address: String,
    /// Whether the target itself answered.
    pub reached: bool,
    /// Probes to each hop, at most.
    pub cycles: u64,
    /// Hops from the nearest on. The last is the target when it was reached.
    pub hops: Vec<PathHop>,
    /// Where packets are lost. Null where none are, or where the place is unknown.
    pub loss: Option<PathLoss>,
    /// Routes that packets of one flow took, in the order in which they were first seen.
    pub routes: Vec<PathRoute>,
    /// Changes from one route to another.
    pub changes: Vec<RouteChange>,
    /// What routers showed to have been changed in the packets that reached them.
    pub alterations: Vec<Alteration>,
    /// Hops that quoted the probes, so that a change of them would have shown. Null in Runs of versions that did not
    /// count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoting_hops: Option<u64>,
    /// Marks of packets as both ends see them. Null where no STAMP reflector at the target reported any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<MarksBetweenEnds>,
    /// TCP options in the target's SYN-ACK. Null where none came.
    pub syn_ack: Option<SynAckSeen>,
    /// All paths that flows may take. Null where they were not asked for.
    pub multipath: Option<Multipath>,
    /// Length of the path on the map. Null where too few places are known.
    pub distance: Option<PathDistance>,
    /// The reverse path. Null where no responder at the target reported it.
    pub way_back: Option<Box<WayBack>>,
    /// The forward path compared with the reverse path. Null where the reverse path is unknown.
    pub symmetry: Option<PathSymmetry>,
}

/// The path from a responder at the target to this host, as probes of the responder saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WayBack {
    /// IP address of the responder.
    pub from: String,
    /// The address that it traced towards: this host's, or the address of a NAT before it.
    pub address: String,
    /// What its probes were made of.
    pub protocol: Protocol,
    /// Destination port of UDP. Null for ICMP.
    pub port: Option<u16>,
    /// Whether the traced address itself answered.
    pub reached: bool,
    /// Probes to each hop, at most.
    pub cycles: u64,
    /// Hops from the responder on. The last is `address` when it was reached. Round trips are the responder's.
    pub hops: Vec<PathHop>,
    /// Where packets of the responder are lost. Null where none are, or where the place is unknown.
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
    /// Less often than it was asked, and no hop beyond shows whether it declines to answer or packets are lost.
    Unclear,
    /// It never answers any probe.
    Silent,
}

/// A hop and its answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathHop {
    /// The time to live that ends there, from 1.
    pub ttl: u8,
    /// Address that answered last, on the route that was in use last. Null without an answer.
    pub address: Option<String>,
    /// Every address that answered there, in the order in which they were first seen.
    pub addresses: Vec<String>,
    /// Host name of `address`. Null where it has none, or none was looked up.
    pub name: Option<String>,
    /// Number of the autonomous system of `address`. Null where no database has it.
    pub asn: Option<u32>,
    /// Name of that autonomous system. Null where no database has it.
    pub as_name: Option<String>,
    /// Where `address` is. Null where no database has it, or its round trips exclude the place.
    pub place: Option<MapPlace>,
    /// Probes whose time to live ended there.
    pub sent: u64,
    /// Probes among them that were answered.
    pub received: u64,
    /// Share of the probes, 0 to 1, that were not answered. It is loss on the path only as far as `loss` of the whole
    /// path has it.
    pub unanswered_ratio: f64,
    /// How reliably the hop answers.
    pub answers: HopAnswers,
    /// Round-trip times in seconds; from the first hop at which the route changed on, of the route that was in use
    /// last. Null where nothing was answered.
    pub rtt_s: Option<Distribution>,
    /// Latest round-trip time in seconds. Null where nothing was answered.
    pub last_rtt_s: Option<f64>,
    /// The mark that traceroute gives the hop, such as `!H`, `!N` or `!X`. Null unless a router refused to forward.
    pub annotation: Option<String>,
    /// Whether it is the host that traces, which marks its own packets: it could not send them on.
    #[serde(default)]
    pub this_host: bool,
    /// MPLS labels that probes bore there, the outermost first.
    pub mpls: Vec<MplsEntry>,
    /// Hops that its answers took, computed from the time to live on arrival (64, 128 or 255 at their start). Null
    /// where nothing was answered.
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
    /// MPLS label of the entry.
    pub label: u32,
    /// Traffic class of the entry, 0 to 7.
    pub traffic_class: u8,
    /// Time to live of the entry.
    pub ttl: u8,
}

/// Where something is on the map.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapPlace {
    /// Latitude in degrees, positive to the north.
    pub latitude_deg: f64,
    /// Longitude in degrees, positive to the east.
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

/// Where packets are lost, and how many.
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
    /// Probes among them that were lost.
    #[serde(default)]
    pub lost_beyond: u64,
    /// The first hop of the loss: probes to it and to all hops beyond it are lost. Packets are lost on the line before
    /// it, in the queue of that line, or on the reverse path.
    pub begins_at_ttl: u8,
    /// The first hop for which the probes speak nearly as well (within two units of log-likelihood),
    /// or do not speak at all, because it does not answer well.
    pub earliest_ttl: u8,
    /// The last hop for which the probes speak nearly as well.
    pub latest_ttl: u8,
    /// Probes to the last hop that answers.
    pub sent: u64,
    /// Probes among them that were lost.
    pub lost: u64,
}

/// One route that packets took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathRoute {
    /// The address at each hop, from the first; null for a hop that did not answer.
    pub addresses: Vec<Option<String>>,
    /// When it was first seen, seconds from the start.
    pub first_s: f64,
    /// When the route was last seen, in seconds from the start.
    pub last_s: f64,
    /// Cycles in which it was taken.
    pub cycles: u64,
    /// Probes to the last hop of it.
    pub sent: u64,
    /// Probes among them that were answered.
    pub received: u64,
    /// Round-trip times to the last hop of the route, in seconds. Null where nothing was answered.
    pub rtt_s: Option<Distribution>,
}

/// A change of the route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouteChange {
    /// When the new route was first seen, seconds from the start.
    pub at_s: f64,
    /// When the old route was last seen, in seconds from the start: the change came between.
    pub after_s: f64,
    /// The same moment as `at_s`, RFC 3339 in UTC. Null where it is no such time.
    pub time: Option<String>,
    /// Number of the old route in `routes`, from 0.
    pub from_route: usize,
    /// Number of the new route in `routes`, from 0.
    pub to_route: usize,
    /// The first hop that differs.
    pub ttl: u8,
}

vocabulary! {
    /// A field of a packet that a machine on the path may change.
    pub enum AlteredField {
        /// The differentiated services codepoint.
        Dscp = "dscp" as "DSCP",
        /// The ECN field (RFC 3168).
        Ecn = "ecn" as "ECN",
        /// The time to live was not what the hop's distance makes it.
        Ttl = "ttl" as "time to live at its end",
        /// The source address of the packet.
        SourceAddress = "source_address" as "source address (NAT)",
        /// The destination address of the packet.
        DestinationAddress = "destination_address" as "destination address (NAT)",
        /// A port, or the identifier of an echo.
        Ports = "ports" as "ports or identifier (NAT)",
        /// The transport checksum, although nothing that it covers.
        Checksum = "checksum" as "checksum (NAT)",
        /// The length of the packet.
        Length = "length",
        /// The flag "don't fragment" of IPv4.
        DontFragment = "dont_fragment" as "don't fragment",
        /// TCP's maximum segment size.
        Mss = "mss" as "TCP MSS",
        /// Which TCP options there are.
        TcpOptions = "tcp_options" as "TCP options",
        /// TCP's request for ECN in a SYN.
        TcpEcn = "tcp_ecn" as "TCP's request for ECN",
        /// The target's answer came from another address than it was asked at.
        AnswerFrom = "answer_from" as "address that answers for the target",
    }
}

/// A change that was seen in what routers quoted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alteration {
    /// The field of the packet that was changed.
    pub field: AlteredField,
    /// Value of the field when it was sent.
    pub sent: String,
    /// Value of the field when it was seen.
    pub seen: String,
    /// The first hop at which it was seen.
    pub seen_at_ttl: u8,
    /// The last hop before it that still saw what was sent: the change was made behind it. Null where no hop before it
    /// shows the field.
    pub intact_at_ttl: Option<u8>,
}

/// What a target's SYN-ACK offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SynAckSeen {
    /// Maximum segment size in bytes. Null where the option is missing.
    pub mss_bytes: Option<u16>,
    /// Window scale as a power of two (RFC 7323). Null where the option is missing.
    pub window_scale: Option<u8>,
    /// Whether selective acknowledgements are permitted (RFC 2018).
    pub sack: bool,
    /// Whether timestamps are in use (RFC 7323).
    pub timestamps: bool,
    /// Whether ECN was granted, where it was asked for.
    pub ecn: bool,
}

/// How a router shares traffic over equal paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Balancing {
    /// The packets of one flow take one path.
    PerFlow,
    /// The packets of one flow take several paths.
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
    /// Probes that the search took.
    pub probes: u64,
    /// The most addresses at any distance.
    pub width: u64,
    /// Nodes at each distance from this host.
    pub nodes: Vec<MultipathNode>,
    /// Whether the search came to its end: not when it ran out of flows, or was stopped.
    pub complete: bool,
}

/// A node at a distance from this host, and the nodes that come next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MultipathNode {
    /// Distance in hops; 0 is this host.
    pub ttl: u8,
    /// IP address of the node. Null without an answer.
    pub address: Option<String>,
    /// Addresses at the next distance that its flows went on to; null for one that does not answer.
    pub next: Vec<Option<String>>,
    /// How the node shares traffic. Null where one node alone is next, or where it is unknown.
    pub balancing: Option<Balancing>,
}

/// The length of the path over the places that are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathDistance {
    /// Length along the places of the hops, in metres.
    pub along_path_m: f64,
    /// Distance from the first to the last known place, in metres.
    pub direct_m: f64,
    /// Least round-trip time that light in fibre takes over the direct distance, in seconds.
    pub light_rtt_s: f64,
    /// Least round-trip time that light in fibre takes along the places of the hops, in seconds.
    #[serde(default)]
    pub along_light_rtt_s: f64,
    /// Least round-trip time to the last hop whose place is known, in seconds. Null where it did not answer.
    pub rtt_s: Option<f64>,
    /// The hop that is furthest off the direct line. Null where there is no detour.
    pub detour_ttl: Option<u8>,
}
