//! What round-trip probes of many targets at once found.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TimestampSource;
use crate::distribution::Distribution;
use crate::protocol::Protocol;

/// Round trips of many targets, probed in turn at a bounded rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PingsResult {
    /// Protocol of the probes.
    pub protocol: Protocol,
    /// Packets, or connections, a second that were asked for at most.
    pub asked_pps: f64,
    /// Packets, or connections, a second that left, from the first to the last.
    pub sent_pps: f64,
    /// Probes sent to all targets.
    pub sent: u64,
    /// Probes answered, duplicates not counted.
    pub received: u64,
    /// Share of probes sent that were not answered; absent where none was sent.
    pub loss_ratio: Option<f64>,
    /// Targets that answered at all.
    pub answering: u64,
    /// What the answers were, by how often, where the protocol has several.
    #[serde(default)]
    pub answers: BTreeMap<String, u64>,
    /// Answers from an address that was not asked.
    pub strays: u64,
    /// Answers that our own socket dropped for want of buffer (SO_RXQ_OVFL).
    pub dropped_here: u64,
    /// Answers that this host discarded because their checksum was wrong: the path corrupted them, and they count
    /// as lost. At most so many: of UDP the kernel's counters are of all sockets together.
    #[serde(default)]
    pub corrupted: u64,
    /// Round-trip times of all targets together, in seconds. Null where nothing was answered.
    pub rtt_s: Option<Distribution>,
    /// How late probes left compared with the schedule of the rate, in seconds. Null where none left.
    pub lateness_s: Option<Distribution>,
    /// Whose clock stamped the round trips. Above 20,000 packets a second departures are not
    /// stamped, but known from our own clock before and after each batch.
    pub timestamps: TimestampSource,
    /// Names that could not be looked up, and were not probed.
    pub unresolved: Vec<String>,
    /// Each target, in the order asked for.
    pub targets: Vec<TargetRoundTrips>,
}

/// Round trips of one target of the sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetRoundTrips {
    /// Name of the target as it was given.
    pub name: String,
    /// IP address that was probed.
    pub address: String,
    /// Probes that were sent to it.
    pub sent: u64,
    /// Probes answered, duplicates not counted.
    pub received: u64,
    /// Share of probes sent that were not answered; absent where none was sent.
    pub loss_ratio: Option<f64>,
    /// Answers beyond the first to the same probe.
    pub duplicates: u64,
    /// Answers to a probe sent before one already answered (RFC 4737, type-P-reordered).
    pub reordered: u64,
    /// Answers that came after the timeout; their probes count as lost.
    pub late: u64,
    /// Probes that our own machine refused to send.
    pub send_errors: u64,
    /// Round-trip times in seconds. Null where nothing was answered.
    pub rtt_s: Option<Spread>,
    /// What the latest answer was: `SYN-ACK`, `HTTP 200`, `NOERROR`. Null where the protocol has one answer alone.
    pub answer: Option<String>,
    /// What the latest ICMP error about its probes reported, why its latest connection failed, or why this host did not
    /// send. Null where there was no error.
    pub error: Option<String>,
}

/// What is known of values that were not all kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Smallest of the values, in their unit.
    pub min: f64,
    /// Arithmetic mean of the values, in their unit.
    pub mean: f64,
    /// Largest of the values, in their unit.
    pub max: f64,
    /// Standard deviation of the values as a whole population, in their unit.
    pub stddev: f64,
}
