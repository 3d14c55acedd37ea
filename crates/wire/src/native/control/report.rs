//! What one end recorded of a phase, which goes by messages (`messages`) and is put together
//! again (`assembly`).
//!
//! Times count from that end's own start of the phase. Counters are the kernel's (TCP_INFO,
//! Linux `include/uapi/linux/tcp.h`), as they stood, not as differences.

mod assembly;
mod count;
mod messages;
pub mod quic;
pub mod udp;

use serde::{Deserialize, Serialize};

pub use assembly::{Assembled, ReportAssembler, ReportError};
pub use count::{Count, DatagramCount, DelayAbove, StreamEnd, clip};
use quic::QuicReport;
use udp::UdpReport;

/// The sending TCP of one stream at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpSample {
    /// Seconds since the start of the phase.
    pub t_s: f64,
    pub bytes_acked: u64,
    /// Payload bytes sent, those sent again included; absent before Linux 4.19.
    pub bytes_sent: Option<u64>,
    /// Payload bytes sent and not acknowledged.
    pub in_flight_bytes: u64,
    /// Part of it that the receiver has, out of order (SACK).
    pub sacked_bytes: u64,
    /// Bytes in the send buffer not sent yet.
    pub notsent_bytes: u64,
    /// Congestion window: segments times the segment size.
    pub cwnd_bytes: u64,
    /// Where slow start ends; absent before something sets it.
    pub ssthresh_bytes: Option<u64>,
    /// Most that leaves a second; absent when nothing limits it.
    pub pacing_bps: Option<u64>,
    /// Payload that the receiver lately acknowledged a second.
    #[serde(default)]
    pub delivery_bps: u64,
    pub srtt_us: u64,
    /// Smallest round trip; absent before the first.
    pub min_rtt_us: Option<u64>,
    pub retransmits: u64,
    /// Segments that the receiver reported to have had twice (D-SACK); absent before Linux 4.19.
    #[serde(default)]
    pub twice: Option<u64>,
    /// Window that the receiver advertised; absent before Linux 5.4.
    pub snd_wnd_bytes: Option<u64>,
    /// Limit of the send buffer.
    pub sndbuf_bytes: Option<u64>,
    /// Time with data outstanding or to send.
    pub busy_us: u64,
    /// Part of it held back by the receiver's window.
    pub rwnd_limited_us: u64,
    /// Part of it held back by the send buffer: the larger of tcpi_sndbuf_limited and the time
    /// that the sending end counted while it waited for room in the buffer.
    pub sndbuf_limited_us: u64,
}

/// The log of a stream that this end sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SenderLog {
    /// What is said once.
    pub tail: SenderTail,
    pub samples: Vec<TcpSample>,
}

/// What is said once of a stream that this end sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SenderTail {
    /// Number of the stream.
    pub stream: u32,
    /// Congestion control that the socket ran.
    pub cc: String,
    pub mss_bytes: u64,
    /// Whether the connection negotiated ECN.
    #[serde(default)]
    pub ecn: bool,
    /// Whether its SYN carried data (Fast Open).
    #[serde(default)]
    pub fast_open: bool,
    /// Whether it ran Multipath TCP.
    #[serde(default)]
    pub mptcp: bool,
    /// Whether it scales windows (RFC 7323); absent where the end is too old to report it. The same holds for the next
    /// two.
    pub window_scaling: Option<bool>,
    /// Whether it has selective acknowledgements (RFC 2018).
    pub sack: Option<bool>,
    /// Whether its segments carry timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// Whether its payload was sent without a copy.
    #[serde(default)]
    pub zero_copy: bool,
    /// Time that it waited for the file that its payload came from; absent without one.
    pub file_wait_us: Option<u64>,
    /// Set when the stream ended by itself.
    pub ended: Option<StreamEnd>,
}

/// The log of a stream that this end received.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReceiverLog {
    /// What is said once.
    pub tail: ReceiverTail,
    pub counts: Vec<Count>,
}

/// What is said once of a stream that this end received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverTail {
    /// Number of the stream.
    pub stream: u32,
    /// Largest limit of the receive buffer.
    pub receive_buffer_bytes: Option<u64>,
    /// Whether its payload was dropped unseen.
    #[serde(default)]
    pub discard: bool,
    /// Time that it waited for the file that its payload went to; absent without one.
    pub file_wait_us: Option<u64>,
    /// Set when the stream ended by itself.
    pub ended: Option<StreamEnd>,
}

/// The whole record of one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Streams that it sent.
    pub senders: Vec<SenderLog>,
    /// Streams that it received.
    pub receivers: Vec<ReceiverLog>,
    pub udp: UdpReport,
    pub quic: QuicReport,
    /// How long its phase took.
    pub elapsed_s: f64,
    /// Processor time that its process used meanwhile.
    pub cpu_s: f64,
    /// What must be known to read the numbers.
    pub notes: Vec<String>,
}

/// The part of a report that ends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportTail {
    /// Streams that the server sent.
    pub senders: Vec<SenderTail>,
    /// Streams that it received.
    pub receivers: Vec<ReceiverTail>,
    /// How long its phase took.
    pub elapsed_s: f64,
    /// Processor time that its process used meanwhile.
    pub cpu_s: f64,
    /// What must be known to read the numbers.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests;
