//! Requests and their answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CpuUse;
use crate::distribution::Distribution;
use crate::protocol::Protocol;

/// How many transactions were carried out, and how long each took. A transaction is a request and
/// its whole answer; with `connect`, the connection that it was made for, too, but not its end.
///
/// Times are between system calls of the program, as netperf's are. Their quantiles are exact to
/// a thousandth; smallest, largest, mean and deviation are exact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransactionsResult {
    /// What carried them.
    pub transport: Protocol,
    /// Whether each had a connection of its own (netperf's CRR), or all of a stream one (RR).
    pub connect: bool,
    /// Payload of a request.
    pub request_bytes: u64,
    /// Payload of an answer.
    pub response_bytes: u64,
    /// Streams, each with one transaction at a time.
    pub concurrency: u64,
    /// Transactions that were to begin each second, all streams together; absent where each began
    /// when the one before it had ended.
    pub offered_tps: Option<f64>,
    /// Transactions that ended well within the phase.
    pub completed: u64,
    /// Transactions that failed: no connection, a broken one, or over UDP no answer within a second.
    pub failed: u64,
    /// Transactions under way when the phase ended; they count nowhere.
    pub unfinished: u64,
    /// Transactions that began late because the one before had not ended; only with a rate.
    /// Their time counts from when they were due.
    pub delayed: u64,
    /// Completed transactions a second.
    pub rate_tps: f64,
    /// Time of a transaction; absent when none was completed.
    pub latency_s: Option<Distribution>,
    /// Part of it until TCP was connected; only with `connect`.
    pub connect_s: Option<Distribution>,
    /// Part of it for the TLS handshake; only with `connect` over TLS.
    pub tls_handshake_s: Option<Distribution>,
    /// Part of it from the request to the end of the answer; only with `connect`.
    pub response_s: Option<Distribution>,
    /// What the last failure said.
    pub error: Option<String>,
    /// Processor use of both ends during the phase.
    pub cpu: CpuUse,
}
