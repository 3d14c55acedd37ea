//! The highest UDP rate of which no more than 1 % is lost, and what it says beside the rates of
//! TCP and of an application.

use crate::vocabulary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Direction, LimitedTime};

/// The highest UDP rate at which no more than 1 % is lost, found in steps (PERT guides, "Available
/// bandwidth measurements").
///
/// This is not the available bandwidth of RFC 5136, which is what a path has left over: UDP at this
/// rate takes its share of what TCP had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AvailableBandwidthResult {
    /// Direction of the data.
    pub direction: Direction,
    /// How the rate was found, always `udp-rate-at-1-percent-loss`.
    pub method: String,
    /// Highest rate that passed, in bit/s of UDP payload. Null where none did, or where it is unknown what the path
    /// does not carry.
    pub bps: Option<f64>,
    /// Lowest rate that did not pass, in bit/s of UDP payload. Null where the search ended before one was found, or
    /// where a host was too slow to show it.
    pub above_bps: Option<f64>,
    /// Rate in bit/s that the path carries at least: the highest that passed, or that a host too slow took without loss
    /// on the path. Null where `bps` is known, or where neither was seen.
    pub at_least_bps: Option<f64>,
    /// Why the search ended.
    pub ended: SearchEnd,
    /// Steps of the search, in order.
    pub steps: Vec<RateStep>,
    /// Payload in bit/s that TCP carried before, in the same direction.
    pub tcp_bps: f64,
    /// What limited TCP's sender, as shares of its time.
    pub tcp_limited: LimitedTime,
    /// Rate in bit/s that an application gets, as the user gave it. Null where none was given.
    pub application_bps: Option<f64>,
    /// Which of the application, TCP and the path is the narrow one.
    pub limit: RateLimit,
}

/// One step of the search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateStep {
    /// UDP payload in bit/s that was asked for.
    pub asked_bps: f64,
    /// Length of the step in seconds.
    pub duration_s: f64,
    /// UDP payload in bit/s that the sender's kernel took.
    pub sent_bps: f64,
    /// UDP payload in bit/s that was received.
    pub received_bps: f64,
    /// Share of the packets sent, 0 to 1, that was lost before it reached the receiving socket.
    pub loss_ratio: f64,
    /// Share of the packets sent, 0 to 1, that the receiving socket dropped.
    pub dropped_here_ratio: f64,
    /// Share of what was sent, 0 to 1, that a growing queue kept: seconds of delay a second. A longer step would have
    /// lost it.
    pub queued_ratio: f64,
    /// What came of the step.
    pub verdict: StepVerdict,
}

vocabulary! {
    /// What became of a step.
    pub enum StepVerdict {
        /// No more than 1 % was lost or held back.
        Passed = "passed",
        /// More than 1 % was lost or held back.
        Lost = "lost" as "too much",
        /// The sending host did not send so fast.
        SenderTooSlow = "sender_too_slow" as "sender too slow",
        /// The receiving host did not take what came.
        ReceiverTooSlow = "receiver_too_slow" as "receiver too slow",
    }
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The rate is known as closely as was wanted.
    Found,
    /// The sending host goes no faster: the path carries at least this.
    SenderTooSlow,
    /// The receiving host takes no more: the path carries at least this.
    ReceiverTooSlow,
    /// As much is lost at a fraction of the rate: the loss does not come from the rate.
    LossAtAnyRate,
    /// What was left of the budget is less than the next step takes.
    OutOfBudget,
    /// As many steps as a search may have were made.
    OutOfSteps,
    /// The user stopped it.
    Cancelled,
    /// The far end went away.
    FarEndLost,
    /// A step could not be made; a note of the Run says why.
    StepFailed,
}

vocabulary! {
    /// Which of application, TCP and path is the narrow one.
    pub enum RateLimit {
        /// TCP carries more than the application gets: look at the application and its host.
        Application = "application" as "application or host",
        /// The path carries more than TCP, whose receiver's window is full.
        TcpReceiveWindow = "tcp_receive_window" as "TCP: receive window",
        /// The path carries more than TCP, whose send buffer is full.
        TcpSendBuffer = "tcp_send_buffer" as "TCP: send buffer",
        /// The path carries more than TCP, which backs off from losses that UDP does not mind, or
        /// from its own bursts.
        TcpCongestionControl = "tcp_congestion_control" as "TCP: congestion control",
        /// TCP carries what the path does.
        Path = "path",
        /// What was measured does not say.
        Unknown = "unknown" as "not known",
    }
}
