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
    /// Protocol that carried the transactions.
    pub transport: Protocol,
    /// Whether each had a connection of its own (netperf's CRR), or all of a stream one (RR).
    pub connect: bool,
    /// Payload of a request in bytes.
    pub request_bytes: u64,
    /// Payload of an answer in bytes.
    pub response_bytes: u64,
    /// Streams, each with one transaction at a time.
    pub concurrency: u64,
    /// Transactions that were to begin each second, all streams together. Null where each began when the one before it
    /// had ended.
    pub offered_tps: Option<f64>,
    /// Transactions that ended well within the phase.
    pub completed: u64,
    /// Transactions that failed: no connection, a broken one, or over UDP no answer within a second.
    pub failed: u64,
    /// Transactions that had not ended when the phase did. They count nowhere else.
    pub unfinished: u64,
    /// Transactions that began late because the one before had not ended; only with a rate.
    /// Their time counts from when they were due.
    pub delayed: u64,
    /// Transactions completed a second.
    pub rate_tps: f64,
    /// Time of a transaction in seconds. Null where none was completed.
    pub latency_s: Option<Distribution>,
    /// Part of that time until TCP was connected, in seconds. Null unless each had a connection of its own.
    pub connect_s: Option<Distribution>,
    /// Part of that time for the TLS handshake, in seconds. Null unless each had a TLS connection of its own.
    pub tls_handshake_s: Option<Distribution>,
    /// Part of that time from the request to the end of the answer, in seconds. Null unless each had a connection of
    /// its own.
    pub response_s: Option<Distribution>,
    /// What the last failure reported. Null where none failed.
    pub error: Option<String>,
    /// Processor use of both ends during the phase.
    pub cpu: CpuUse,
}
