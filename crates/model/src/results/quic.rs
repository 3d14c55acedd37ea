//! What QUIC carried (RFC 9000).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CpuUse, Direction};
use crate::protocol::Protocol;

/// What QUIC connections carried in one direction of a load phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuicResult {
    /// Direction of the data.
    pub direction: Direction,
    /// Protocol of the streams, always `quic`.
    pub protocol: Protocol,
    /// Payload in bit/s that reached the receiving program, over the whole phase, handshake and slow start included.
    /// Null where the receiving end's record was lost.
    pub bps: Option<f64>,
    /// The same in bit/s without the first two seconds. Null in a phase shorter than four seconds.
    pub steady_bps: Option<f64>,
    /// Payload in bytes that reached the receiving program. Null where the receiving end's record was lost.
    pub bytes: Option<u64>,
    /// Congestion control that the senders ran: the library's own, not the kernel's.
    pub cc: String,
    /// Each connection by itself; one stream of payload in each.
    pub streams: Vec<QuicStream>,
    /// Processor use of both ends during the phase.
    pub cpu: CpuUse,
}

/// One QUIC connection with one stream of payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuicStream {
    /// Number of the stream, from 0.
    pub id: u32,
    /// Payload in bytes that the receiving program read.
    pub bytes: u64,
    /// Payload in bit/s that the receiving program read.
    pub bps: f64,
    /// Time in seconds from the client's first packet until both ends had completed the handshake: one round trip and
    /// the computing of both. Null where it was not completed.
    pub handshake_s: Option<f64>,
    /// What the sender reports. Null where its record was lost.
    pub sender: Option<QuicSender>,
    /// Packets, or trains of them, that the receiving host's own socket dropped for want of buffer. They count as lost
    /// for the sender, and were not lost on the path. Null where the receiving end did not report it.
    pub dropped_here: Option<u64>,
    /// Packets that came to the receiving host with a wrong checksum: the path corrupted them, and the sender takes
    /// them for lost. Null where the receiving end did not report it.
    pub corrupted: Option<u64>,
    /// Why the connection ended early. Null where it did not.
    pub error: Option<String>,
}

/// What the sending end of a QUIC connection says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuicSender {
    /// Packets that the sender sent.
    pub sent_packets: u64,
    /// Packets declared lost (RFC 9002, section 6).
    pub lost_packets: u64,
    /// Bytes of the packets declared lost.
    pub lost_bytes: u64,
    /// Times that the congestion control took something for a sign of congestion.
    pub congestion_events: u64,
    /// Smallest round-trip time in seconds. Null where there was no sample.
    pub min_rtt_s: Option<f64>,
    /// Largest smoothed round-trip time at any sample, in seconds. Null where there was no sample.
    pub max_rtt_s: Option<f64>,
    /// Largest congestion window at any sample, in bytes.
    pub max_cwnd_bytes: u64,
    /// Most payload in bytes that the connection itself lets be in flight, whatever the congestion control allows. Null
    /// in Runs that did not record it.
    pub window_bytes: Option<u64>,
    /// UDP payload of a full packet in bytes, as path MTU discovery left it (RFC 8899).
    pub datagram_bytes: u64,
    /// Bytes of UDP payload sent, those retransmitted included.
    pub sent_bytes: u64,
}

/// Part of its own window that a connection keeps under way at least where nothing else holds it back:
/// acknowledgements and new credit take time of their own.
const WINDOW_IN_USE: f64 = 0.4;

impl QuicSender {
    /// Most payload that could be under way: by congestion control, or by the connection's own window.
    pub fn most_under_way_bytes(&self) -> u64 {
        self.window_bytes
            .map_or(self.max_cwnd_bytes, |own| own.min(self.max_cwnd_bytes))
    }
}

impl QuicStream {
    /// The window of its own, where that limited it: congestion control would have let more be under
    /// way, and about as much was as that window lets.
    pub fn limiting_window_bytes(&self) -> Option<u64> {
        let sender = self.sender.as_ref()?;
        let own = sender.window_bytes?;
        let under_way = self.bps / 8.0 * sender.min_rtt_s?;
        (sender.max_cwnd_bytes > own && under_way >= own as f64 * WINDOW_IN_USE).then_some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_its_own_is_named_where_it_was_in_use() {
        let stream = |bps: f64, max_cwnd_bytes| QuicStream {
            id: 0,
            bytes: 0,
            bps,
            handshake_s: None,
            sender: Some(QuicSender {
                min_rtt_s: Some(0.07),
                max_cwnd_bytes,
                window_bytes: Some(8 << 20),
                ..QuicSender::default()
            }),
            dropped_here: None,
            corrupted: None,
            error: None,
        };
        let fast = stream(488e6, 125_000_000);
        assert_eq!(fast.limiting_window_bytes(), Some(8 << 20));
        // Congestion control held it back, or something else.
        assert_eq!(stream(488e6, 5_000_000).limiting_window_bytes(), None);
        assert_eq!(stream(100e6, 125_000_000).limiting_window_bytes(), None);
        let under_way = |s: QuicStream| s.sender.map(|s| s.most_under_way_bytes());
        assert_eq!(under_way(fast), Some(8 << 20));
        assert_eq!(under_way(stream(1e6, 5_000_000)), Some(5_000_000));
    }
}
