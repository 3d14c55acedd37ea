//! What a capture shows of one TCP connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion::CongestionResult;
use crate::distribution::Distribution;
use crate::vocabulary;

vocabulary! {
    /// What held a connection back.
    pub enum CaptureLimit {
        /// The handshake had not ended.
        Handshake = "handshake",
        /// The sender's application had nothing to send.
        Application = "application",
        /// The server had a request and had not begun to answer.
        Server = "server" as "server's thinking time",
        /// The receiver's window was full.
        ReceiveWindow = "receive_window" as "receiver's window",
        /// Data was on its way: the congestion window, and the round trip itself.
        Path = "path",
    }
}

vocabulary! {
    /// A side of a connection.
    pub enum CaptureSide {
        /// Who asked for the connection.
        Client = "client",
        /// Who was asked for the connection.
        Server = "server",
    }
}

/// A TCP connection, and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionResult {
    /// IP address and port of the client: who sent the SYN, or else who has the higher port.
    pub client: String,
    /// IP address and port of the server.
    pub server: String,
    /// When its first packet was captured, in seconds from the beginning of the capture.
    pub at_s: f64,
    /// Time from its first packet to its last, in seconds.
    pub duration_s: f64,
    /// Whether its handshake is in the capture, to its end.
    pub handshake_seen: bool,
    /// Whether it ended within the capture, by a FIN of each side or a reset.
    pub ended: bool,
    /// The side that reset it. Null where neither did.
    pub reset_by: Option<CaptureSide>,
    /// Time of the handshake in seconds, from the first SYN to the ACK. Null where it was not seen.
    pub handshake_s: Option<f64>,
    /// SYNs that had to be retransmitted, of both sides.
    pub repeated_syns: u64,
    /// Options of the handshake that a side lacks, although the other may have offered them.
    pub lacking: Vec<Lacking>,
    /// Where its time went; the shares sum to 1.
    pub limited: LimitedBy,
    /// What held it back most, by time. Null where all of its packets came at one time.
    pub limit: Option<CaptureLimit>,
    /// What the client sent.
    pub up: HalfResult,
    /// What the server sent.
    pub down: HalfResult,
    /// How often the direction of payload changed from the client's to the server's: requests with an answer.
    pub turns: u64,
    /// Time from the end of a request to the beginning of its answer at the server in seconds, the round trip from the
    /// capture to the server taken off. Null without a request that was answered.
    pub server_think_s: Option<Distribution>,
    /// Errors by ICMP that were about it.
    pub icmp_errors: u64,
    /// Its handshake of TLS. Null where it does not begin with one, or its beginning was not captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsResult>,
}

/// A handshake of TLS, with times as they passed the place of the capture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TlsResult {
    /// The server that the client asked for (SNI). Null where it named none, or not all of its ClientHello was captured.
    pub server_name: Option<String>,
    /// The version that the server chose, such as `1.3`. Null where not all of its ServerHello was captured.
    pub version: Option<String>,
    /// Time from the ClientHello to the ServerHello in seconds. Null where none was captured.
    pub server_hello_s: Option<f64>,
    /// Time from the ClientHello to the client's first record of application data in seconds: of version 1.3 the first that
    /// follows its Finished, or early data. Null where none was captured, or the version is unknown.
    pub application_data_s: Option<f64>,
    /// Whether the server asked for a second ClientHello, which takes a round trip more.
    pub retried: bool,
}

/// An option of the handshake that a side lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lacking {
    /// Name of the option, such as `window scaling`.
    pub option: String,
    /// The side that did not offer it, or before which a middlebox took it away.
    pub side: CaptureSide,
}

/// Shares of a connection's time in which it was held back by each of five things. They sum to 1, but where all of its
/// packets came at one time: then all are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitedBy {
    /// Share of the time, 0 to 1, before the handshake ended.
    pub handshake_ratio: f64,
    /// Share of the time, 0 to 1, in which a sender's application had nothing to send.
    pub app_ratio: f64,
    /// Share of the time, 0 to 1, in which the server had a request and had not begun to answer.
    pub server_ratio: f64,
    /// Share of the time, 0 to 1, in which the receiver's window was full.
    pub rwnd_ratio: f64,
    /// Share of the time, 0 to 1, in which data was on its way: the congestion window, losses, and the round trip itself.
    pub path_ratio: f64,
}

/// What one side of a connection sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HalfResult {
    /// Packets that it sent, as far as they were captured.
    pub packets: u64,
    /// Bytes of the packets on the wire.
    pub wire_bytes: u64,
    /// Payload in bytes, retransmissions counted too.
    pub sent_bytes: u64,
    /// Payload in bytes, retransmissions not counted.
    pub payload_bytes: u64,
    /// Bits on the wire a second, from the first packet with payload to the last. Null where there was one at most.
    pub throughput_bps: Option<f64>,
    /// Payload in bit/s without retransmissions, over the same time. Null where there was one packet with payload at most.
    pub goodput_bps: Option<f64>,
    /// What its SYN offered. Null where it was not captured.
    pub offer: Option<Offer>,
    /// Largest payload of a segment, in bytes. More than the other side's maximum where the host's card splits segments.
    pub max_segment_bytes: u64,
    /// Segments of each class, in the terms of Wireshark.
    pub segments: SegmentCounts,
    /// Segments that the other side reported to have had already (D-SACK, RFC 2883).
    pub dsacks: u64,
    /// Retransmissions that came after a silence as long as a timeout.
    pub timeouts: u64,
    /// Payload in bytes that the other side acknowledged and that is not in the capture.
    pub missed_bytes: u64,
    /// Round-trip time from the place of the capture to the other side and back in seconds, by sequence numbers: without
    /// segments that were retransmitted. Null without a sample.
    pub rtt_s: Option<Distribution>,
    /// The same by timestamps (RFC 7323). Null without a sample.
    pub rtt_timestamps_s: Option<Distribution>,
    /// Most bytes of payload that were on their way, as the place of the capture saw it.
    pub max_in_flight_bytes: u64,
    /// Smallest window that the other side allowed once it was established, in bytes. Null where the scale of it is
    /// unknown.
    pub min_window_bytes: Option<u64>,
    /// Largest window that the other side allowed, in bytes. Null where the scale of it is unknown.
    pub max_window_bytes: Option<u64>,
    /// Payload in bytes sent before the first acknowledgement of payload could take effect. Null where the beginning was
    /// not captured.
    pub initial_window_bytes: Option<u64>,
    /// Its congestion window. Null where it sent no full segment, where the scale of the other side's window is unknown, or
    /// where the capture is far from it and it sends no timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionResult>,
    /// Packets that had been marked for congestion (CE).
    pub ce_packets: u64,
    /// Whether its packets were sent as capable of ECN.
    pub ecn: bool,
    /// Values of the DSCP that its packets came with, in the order of their coming.
    pub dscps: Vec<u8>,
    /// Values of the time to live that its packets came with, in the order of their coming. More than one means that
    /// the route changed, or that another machine answers too.
    pub ttls: Vec<u8>,
}

/// What a SYN offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    /// Maximum segment size in bytes. Null where it has none, which means 536 (IPv4) or 1220 (IPv6).
    pub mss_bytes: Option<u16>,
    /// Window scale: the power of two. Null where it has none.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements are understood (RFC 2018).
    pub sack: bool,
    /// Timestamps are sent and echoed (RFC 7323).
    pub timestamps: bool,
    /// Fast Open, asked for or used (RFC 7413).
    pub fast_open: bool,
    /// Multipath TCP (RFC 8684).
    pub mptcp: bool,
    /// Explicit congestion notification, by the flags of the handshake (RFC 3168).
    pub ecn: bool,
}

/// Segments by class, in the terms of Wireshark's TCP analysis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SegmentCounts {
    /// Repeated after a timeout, or for a reason that does not show.
    pub retransmissions: u64,
    /// Repeated right after two or more duplicate acknowledgements.
    pub fast_retransmissions: u64,
    /// Repeated although the other side had acknowledged it all.
    pub spurious_retransmissions: u64,
    /// Later than one that was sent after it, and not retransmitted.
    pub out_of_order: u64,
    /// Came after a gap in the sequence numbers ("previous segment not captured").
    pub lost_segments: u64,
    /// Acknowledgements that repeat the one before.
    pub duplicate_acks: u64,
    /// Acknowledgements of data that was not captured.
    pub acked_unseen: u64,
    /// Probes whether the other side is still there.
    pub keep_alives: u64,
    /// Answers to such probes.
    pub keep_alive_acks: u64,
    /// Announcements of a window of zero.
    pub zero_windows: u64,
    /// Probes of a window of zero.
    pub zero_window_probes: u64,
    /// Answers to such probes.
    pub zero_window_probe_acks: u64,
    /// Announcements of another window alone.
    pub window_updates: u64,
    /// Segments that fill the other side's window.
    pub window_full: u64,
    /// SYNs of a new connection between the ports of an old one.
    pub ports_reused: u64,
}

impl SegmentCounts {
    /// Adds the counts of others.
    pub fn add(&mut self, other: &Self) {
        let Self {
            retransmissions,
            fast_retransmissions,
            spurious_retransmissions,
            out_of_order,
            lost_segments,
            duplicate_acks,
            acked_unseen,
            keep_alives,
            keep_alive_acks,
            zero_windows,
            zero_window_probes,
            zero_window_probe_acks,
            window_updates,
            window_full,
            ports_reused,
        } = other;
        self.retransmissions += retransmissions;
        self.fast_retransmissions += fast_retransmissions;
        self.spurious_retransmissions += spurious_retransmissions;
        self.out_of_order += out_of_order;
        self.lost_segments += lost_segments;
        self.duplicate_acks += duplicate_acks;
        self.acked_unseen += acked_unseen;
        self.keep_alives += keep_alives;
        self.keep_alive_acks += keep_alive_acks;
        self.zero_windows += zero_windows;
        self.zero_window_probes += zero_window_probes;
        self.zero_window_probe_acks += zero_window_probe_acks;
        self.window_updates += window_updates;
        self.window_full += window_full;
        self.ports_reused += ports_reused;
    }

    /// Segments that carry what was sent before, for whatever reason.
    pub fn repeated(&self) -> u64 {
        let needed = self
            .retransmissions
            .saturating_add(self.fast_retransmissions);
        needed.saturating_add(self.spurious_retransmissions)
    }
}
