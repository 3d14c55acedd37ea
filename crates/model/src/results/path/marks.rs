//! What becomes of the marks of packets, DSCP and ECN, between both ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::vocabulary;

vocabulary! {
    /// The ECN field of a packet (RFC 3168, section 5), in the order of its bits.
    pub enum EcnField {
        /// The transport does not use ECN.
        NotEct = "not-ect" as "Not-ECT",
        /// The transport uses ECN as L4S has it (RFC 9331).
        Ect1 = "ect-1" as "ECT(1)",
        /// The transport uses ECN (RFC 3168).
        Ect0 = "ect-0" as "ECT(0)",
        /// A queue marked the packet: congestion experienced.
        Ce = "ce" as "CE",
    }
}

impl EcnField {
    /// By its two bits on the wire; others are not looked at.
    pub const fn of_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Its two bits on the wire.
    pub const fn bits(self) -> u8 {
        self as u8
    }
}

/// Marks of packets between this host and a STAMP reflector at the target (RFC 8972, section 4.4), each as one end sent
/// it and the other received it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MarksBetweenEnds {
    /// DSCP that the packets of both directions were sent with.
    pub dscp: u8,
    /// Packets that this host sent.
    pub sent: u64,
    /// Packets that the reflector received and reported.
    pub up: Vec<ArrivedMarks>,
    /// Replies that this host received. Empty where the reflector did not send them with the DSCP that was asked for.
    pub down: Vec<ArrivedMarks>,
}

/// Packets that were sent with the same marks and arrived with the same marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivedMarks {
    /// ECN field that they were sent with. Null for replies: no reflector reports it.
    pub sent_ecn: Option<EcnField>,
    /// DSCP that they arrived with.
    pub dscp: u8,
    /// ECN field that they arrived with.
    pub ecn: EcnField,
    /// How many they are.
    pub packets: u64,
}
