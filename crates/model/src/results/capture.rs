//! What a capture of packets shows: its TCP connections, and the rest in sums.

mod congestion;
mod connection;
mod graphs;
mod layer;
pub mod sides;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

pub use congestion::{CongestionPhase, CongestionResult, PhaseChange};
pub use connection::{
    CaptureLimit, CaptureSide, ConnectionResult, HalfResult, Lacking, LimitedBy, Offer,
    SegmentCounts, TlsResult,
};
pub use graphs::{CaptureGraphs, ConnectionGraph, HalfGraph, TrafficGraph};
pub use layer::Layer;

/// What a capture of packets shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureResult {
    /// The files that were read, each by itself.
    pub files: Vec<CaptureFile>,
    /// Packets that were read.
    pub packets: u64,
    /// Bytes of the packets on the wire, with the headers of every layer that was captured.
    pub bytes: u64,
    /// When the first packet was captured, in seconds since 1970. Null without a packet.
    pub began_unix_s: Option<f64>,
    /// Time from the earliest packet to the latest, in seconds.
    pub duration_s: f64,
    /// What the capture lacks, and what of it is not the network's doing.
    pub flaws: CaptureFlaws,
    /// Protocols by what lies in what, the heaviest first among those that lie in the same one.
    pub hierarchy: Vec<LayerCount>,
    /// How many packets were how long.
    pub sizes: Vec<SizeCount>,
    /// The hosts that exchanged most, pair by pair, the heaviest first.
    pub conversations: Vec<Conversation>,
    /// How many pairs of hosts exchanged packets.
    pub conversation_count: u64,
    /// The hosts that sent and received most, the heaviest first.
    pub endpoints: Vec<Endpoint>,
    /// How many hosts sent or received packets.
    pub endpoint_count: u64,
    /// The TCP connections that carried most, the heaviest first.
    pub connections: Vec<ConnectionResult>,
    /// All TCP connections together, with those that are not listed.
    pub tcp: TcpSums,
    /// ICMP errors by what they are about.
    pub icmp_errors: Vec<IcmpErrorCount>,
    /// Names that were asked for and how they were answered.
    pub dns: DnsSums,
    /// Packets that ask for the Ethernet address of a host, or answer with it (ARP).
    pub arp_packets: u64,
    /// Packets to everybody or to a group, by their Ethernet address.
    pub broadcast_packets: u64,
    /// Frames of wireless LANs. Null where the capture is of other links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wireless: Option<WirelessSums>,
    /// What there is to draw over time. Null where the Run was not to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphs: Option<Box<CaptureGraphs>>,
    /// Comments in the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<String>,
}

/// A file of packets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureFile {
    /// Name of the file as the user typed it.
    pub name: String,
    /// Format of the file: `pcap` or `pcapng`.
    pub format: String,
    /// Packets that could be read.
    pub packets: u64,
    /// Why the file could not be read to its end. Null where it could.
    pub incomplete: Option<String>,
}

/// What a capture lacks, and what of it is not the network's doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureFlaws {
    /// Packets that the capturing host counted as lost before they were written.
    pub dropped: u64,
    /// Payload of TCP in bytes that was acknowledged and is not in the capture: the capture missed it, the path did not.
    pub missed_bytes: u64,
    /// Packets of which not all bytes were kept.
    pub cut_packets: u64,
    /// Packets whose headers are not whole, or contradict themselves.
    pub malformed_packets: u64,
    /// Packets of a link type or protocol that is not read into.
    pub unread_packets: u64,
    /// Packets that are earlier than the one before them.
    pub backward_packets: u64,
    /// Segments larger than a link carries: the host's network card was to split them, or had joined them.
    pub offloaded_packets: u64,
    /// Fragments of IP beyond the first of their packet, which have no ports.
    pub later_fragments: u64,
    /// Blocks of the file that were passed over since their type is unknown.
    pub unknown_blocks: u64,
    /// Blocks of secrets that decrypt payload, which were passed over.
    pub secret_blocks: u64,
    /// Packets of flows that were no longer tracked, since there were too many.
    pub untracked_packets: u64,
}

/// Packets of a protocol, in the protocols that carried it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayerCount {
    /// The protocol, after those that it lies in, the outermost first.
    pub layers: Vec<Layer>,
    /// Packets that have it.
    pub packets: u64,
    /// Bytes of these packets on the wire.
    pub bytes: u64,
}

/// Packets of a range of lengths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeCount {
    /// Shortest length of the range, in bytes on the wire.
    pub from_bytes: u64,
    /// Longest length of the range, in bytes on the wire. Null where it has no end.
    pub to_bytes: Option<u64>,
    /// Packets of such a length.
    pub packets: u64,
}

/// What two hosts exchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// IP address of one host.
    pub a: String,
    /// IP address of the other host.
    pub b: String,
    /// Packets from `a` to `b`.
    pub a_packets: u64,
    /// Bytes on the wire from `a` to `b`.
    pub a_bytes: u64,
    /// Packets from `b` to `a`.
    pub b_packets: u64,
    /// Bytes on the wire from `b` to `a`.
    pub b_bytes: u64,
    /// Time from the first packet to the last, in seconds.
    pub duration_s: f64,
}

/// What a host sent and received.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// IP address of the host.
    pub address: String,
    /// Name of the host, as the file has it. Null where it has none.
    pub name: Option<String>,
    /// Packets that the host sent.
    pub sent_packets: u64,
    /// Bytes on the wire that the host sent.
    pub sent_bytes: u64,
    /// Packets that the host received.
    pub received_packets: u64,
    /// Bytes on the wire that the host received.
    pub received_bytes: u64,
}

/// All TCP connections together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpSums {
    /// Connections that were seen.
    pub connections: u64,
    /// Connections whose handshake was seen to its end.
    pub established: u64,
    /// Connections whose SYN was not answered.
    pub unanswered: u64,
    /// Connections whose SYN was answered by a reset.
    pub refused: u64,
    /// Connections that ended in a reset after they were established.
    pub reset: u64,
    /// Payload in bytes, retransmissions not counted.
    pub payload_bytes: u64,
    /// Segments by class, in both directions.
    pub segments: SegmentCounts,
}

/// ICMP errors about one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IcmpErrorCount {
    /// What the error says, such as `port unreachable`.
    pub error: String,
    /// IP address of the host that reports it, the first one.
    pub reporter: String,
    /// The flow that it is about: source and destination with ports.
    pub flow: String,
    /// Packets that the capture has of this flow; 0 where the errors are about packets that were not captured.
    pub flow_packets: u64,
    /// How often it was reported.
    pub count: u64,
}

/// Frames of wireless LANs (IEEE 802.11), by what they are for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WirelessSums {
    /// Frames of every kind.
    pub frames: u64,
    /// Frames that manage the network, such as beacons.
    pub management: u64,
    /// Frames that control who sends, such as acknowledgements.
    pub control: u64,
    /// Frames of the data type, including frames without data.
    pub data: u64,
    /// Frames of data and management that were sent again (the retry bit), as far as they were captured.
    pub retries: u64,
    /// Frames of data that are encrypted, and not read into.
    pub encrypted: u64,
    /// Frames that carry several others (A-MSDU), which are not read into.
    pub aggregated: u64,
    /// Frames whose check sequence was wrong, of which nothing else is counted.
    pub bad: u64,
}

/// Names that were asked for (DNS over UDP).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DnsSums {
    /// Questions, retransmissions counted too.
    pub queries: u64,
    /// Answers, of whatever code they are.
    pub answers: u64,
    /// Questions that were asked once more before an answer came.
    pub repeated: u64,
    /// Questions without an answer.
    pub unanswered: u64,
    /// Answers by their code, such as `NXDOMAIN`.
    pub codes: std::collections::BTreeMap<String, u64>,
    /// Time from question to answer in seconds. Null without an answer.
    pub answer_s: Option<Distribution>,
    /// The names whose answers took longest, the slowest first.
    pub slowest: Vec<DnsAnswer>,
}

/// An answer to a question of DNS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DnsAnswer {
    /// The name that was asked for.
    pub name: String,
    /// IP address of the server.
    pub server: String,
    /// Code of the answer, such as `NOERROR`.
    pub code: String,
    /// Time from question to answer in seconds.
    pub answer_s: f64,
}
