//! Messages of the control connection.
//!
//! Each is a frame ([`frame`]) of JSON, an object whose `type` names the message. Unknown
//! fields are ignored, so that later versions may add some; unknown messages are errors.

pub mod flow;
pub mod frame;
mod hex;
mod refusal;
pub mod report;
pub mod session;
pub mod silence;
pub mod trace;

use plumb_model::run::HostFacts;
use serde::{Deserialize, Serialize};

use super::key::{CODE_BYTES, NONCE_BYTES};
use flow::{Flow, Flows};
pub use hex::{Fingerprint, Hex, Token};
use plumb_model::direction::OneDirection;
pub use refusal::Refusal;
use report::quic::{QuicReceiverLog, QuicSample, QuicSenderLog};
use report::udp::{UdpReceiverLog, UdpSenderLog};
use report::{Count, ReportTail, TcpSample};
use trace::{TraceReport, TraceRequest};

/// What a client says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ClientMessage {
    Hello {
        /// Version of the protocol.
        version: u16,
        plumb: String,
        /// How long the client waits for a place, and for its turn with each phase and trace, where it
        /// knows [`ServerMessage::Queued`]; not at all when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits_s: Option<u32>,
        /// Whether the client reads packed bodies (`frame`).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unpacks: bool,
    },
    /// The answer to [`ServerMessage::Challenge`].
    Proof {
        /// A number of the client's own.
        nonce: Hex<NONCE_BYTES>,
        /// The code of both numbers, made with the key.
        code: Hex<CODE_BYTES>,
    },
    /// Asks for a phase of load.
    Start(Start),
    Stop {
        phase: u32,
    },
    /// Asks for the path from the server to the client; between phases only.
    Trace(TraceRequest),
    /// Says that the client is there.
    Ping {
        /// Comes back in the Pong.
        id: u64,
    },
}

/// A phase of load, as asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Number of the phase, greater than the number of the phase before.
    pub phase: u32,
    pub flows: Vec<Flows>,
    pub duration_s: f64,
    /// Payload, of all streams, after which the server neither sends nor accepts more.
    pub byte_limit: Option<u64>,
}

impl Start {
    /// How many streams it has, both directions together.
    pub fn streams(&self) -> u64 {
        flow::count(&self.flows, OneDirection::Down) + flow::count(&self.flows, OneDirection::Up)
    }

    /// Whether all of them yield to other traffic.
    pub fn yields(&self) -> bool {
        let background = |flows: &Flows| matches!(&flows.flow, Flow::Tcp(tcp) if tcp.background);
        self.flows.iter().all(background)
    }
}

/// What a server says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The client is to prove that it has the key, before anything else.
    Challenge {
        nonce: Hex<NONCE_BYTES>,
    },
    /// The answer to Hello.
    Welcome(Box<Welcome>),
    /// Other clients are served first; the Hello, the Start or the Trace will be answered later. Repeated until then.
    Queued {
        ahead: u32,
        /// In how much time it is this client's turn, as far as that is known.
        after_s: Option<f64>,
    },
    /// The phase will be granted, with so much payload at most.
    Limited {
        phase: u32,
        byte_limit: u64,
    },
    /// The phase is granted: open its data connections.
    Ready {
        phase: u32,
    },
    /// All data connections are attached; the load runs from now on.
    Started {
        phase: u32,
    },
    /// The phase does not take place; the session continues.
    Refused {
        phase: u32,
        reason: Refusal,
        message: String,
    },
    /// A part of the log of one stream that the server sent.
    Samples {
        phase: u32,
        stream: u32,
        /// In order of time.
        samples: Vec<TcpSample>,
    },
    /// A part of the log of one stream that the server received.
    Counts {
        phase: u32,
        stream: u32,
        /// In order of time.
        counts: Vec<Count>,
    },
    /// All of one UDP stream that the server sent.
    UdpSent {
        phase: u32,
        log: Box<UdpSenderLog>,
    },
    /// All of one UDP stream that the server received; its Counts come before.
    UdpReceived {
        phase: u32,
        log: Box<UdpReceiverLog>,
    },
    /// A part of the log of one QUIC connection that the server sent on.
    QuicSamples {
        phase: u32,
        stream: u32,
        /// In order of time.
        samples: Vec<QuicSample>,
    },
    /// The rest of it.
    QuicSent {
        phase: u32,
        log: Box<QuicSenderLog>,
    },
    /// All of one QUIC connection that the server received on; its Counts come before.
    QuicReceived {
        phase: u32,
        log: Box<QuicReceiverLog>,
    },
    /// The end of the log: the phase is over.
    Result {
        phase: u32,
        /// What is said once for each stream, and of the phase.
        report: Box<ReportTail>,
    },
    /// The path from the server to the client.
    Traced(Box<TraceReport>),
    /// The path is not traced; the session continues.
    TraceRefused {
        /// The `id` of the request.
        id: u32,
        reason: Refusal,
        message: String,
    },
    /// The answer to Ping.
    Pong {
        /// The `id` of the Ping.
        id: u64,
    },
    Error {
        code: ErrorCode,
        message: String,
    },
}

/// What a server reports about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// Names the session in the preambles of its data connections.
    pub token: Token,
    /// What the server allows.
    pub limits: Limits,
    /// Facts of its machine.
    pub host: HostFacts,
    /// Where it echoes probes over UDP, if it does.
    pub udp_port: Option<u16>,
    /// The certificate that it shows where a data connection becomes TLS.
    pub certificate: Fingerprint,
}

/// What a server allows in one phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    pub max_duration_s: f64,
    /// Most streams, both directions together.
    pub max_streams: u32,
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The server speaks another version of the protocol.
    Version,
    /// A message that cannot be read, or that makes no sense at this point.
    Protocol,
    /// The server has as many clients as it may.
    Full,
    /// The server serves only other clients, or only clients with its key.
    Denied,
    /// The server shuts down.
    ShuttingDown,
    /// A reason of a later version.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_look_as_specified() {
        let hello = ClientMessage::Hello {
            version: 1,
            plumb: "0.1.0".into(),
            waits_s: None,
            unpacks: false,
        };
        let json = serde_json::to_string(&hello).unwrap();
        assert_eq!(json, r#"{"type":"hello","version":1,"plumb":"0.1.0"}"#);
        assert_eq!(serde_json::from_str::<ClientMessage>(&json).unwrap(), hello);
        let later = r#"{"type":"start","phase":1,"flows":[],"duration_s":1.5,"colour":"red"}"#;
        let ClientMessage::Start(start) = serde_json::from_str(later).unwrap() else {
            panic!("not a Start")
        };
        assert_eq!((start.flows, start.byte_limit), (Vec::new(), None));
        assert!(serde_json::from_str::<ClientMessage>(r#"{"type":"dance"}"#).is_err());
        let refused = r#"{"type":"refused","phase":1,"reason":"of_a_later_version","message":""}"#;
        assert!(matches!(
            serde_json::from_str(refused).unwrap(),
            ServerMessage::Refused {
                reason: Refusal::Unknown,
                ..
            }
        ));
    }
}
