//! The vocabulary of queue management: schemes, classes, and the documents of `plumb shape`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::direction::OneDirection;
use crate::finding::Action;
use crate::vocabulary;

vocabulary! {
    /// What shapes and manages the queue.
    pub enum Scheme {
        /// CAKE, one discipline for all of it.
        Cake = "cake",
        /// HTB with a class for each host and FQ-CoDel in each.
        Htb = "htb",
    }
}

vocabulary! {
    /// Which traffic has a class of its own, by its DSCP.
    pub enum ShapeClasses default Besteffort {
        /// One class for all traffic.
        Besteffort = "besteffort",
        /// Voice, video, best effort and bulk, as CAKE's diffserv4 has them.
        Diffserv4 = "diffserv4",
        /// Premium IP: expedited forwarding before best effort, up to a quarter of the rate.
        Premium = "premium",
        /// Best effort, and a class that takes what is left of it: CS1 and LE.
        LessThanBestEffort = "less-than-best-effort",
    }
}

/// Version of the plan.
pub const PLAN_SCHEMA: &str = "plumb.shape-plan/1";

/// What would be done to manage the queues of an interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapePlan {
    /// Version of the document, always `plumb.shape-plan/1`.
    pub schema: String,
    /// Name of the interface to the line.
    pub device: String,
    /// Name of the device through which received packets pass. Absent where only what is sent is shaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ifb: Option<String>,
    /// What shapes and manages the queue.
    pub scheme: Scheme,
    /// Which traffic has a class of its own.
    pub classes: ShapeClasses,
    /// The shaper of each direction.
    pub actions: Vec<Action>,
    /// The same as commands for a shell.
    pub commands: Vec<String>,
    /// Commands that undo it.
    pub undo: Vec<String>,
    /// What else must be known of the plan.
    pub notes: Vec<String>,
}

/// Version of the status document.
pub const STATUS_SCHEMA: &str = "plumb.shape-status/1";

/// The queues of an interface as the kernel counts them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapeStatus {
    /// Version of the document, always `plumb.shape-status/1`.
    pub schema: String,
    /// Name of the interface to the line.
    pub device: String,
    /// Whether plumb shapes the interface.
    pub applied: bool,
    /// Whether all of it was made.
    pub complete: bool,
    /// When it was applied, RFC 3339 in UTC. Null where it is not.
    pub started: Option<String>,
    /// When it is undone unless it is confirmed, RFC 3339 in UTC. Null where it stays.
    pub until: Option<String>,
    /// What stands there at present that plumb did not make, in a sentence each.
    pub changed: Vec<String>,
    /// Each direction that is shaped.
    pub directions: Vec<ShapedDirection>,
}

/// A direction that is shaped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapedDirection {
    /// Direction of the traffic, from this side of the line.
    pub direction: OneDirection,
    /// Name of the device whose queue is managed.
    pub device: String,
    /// Rate of the shaper, in bits a second.
    pub rate_bps: u64,
    /// Each class of traffic.
    pub classes: Vec<ShapedClass>,
}

/// A class of traffic with what the kernel counted since the shaper was applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShapedClass {
    /// Name of the class.
    pub name: String,
    /// Rate up to which the class is served before others, in bits a second.
    pub assured_bps: u64,
    /// Rate of what the class sent between two readings, in bits a second. Null where there is one reading.
    pub sent_bps: Option<f64>,
    /// Bytes that the class sent.
    pub sent_bytes: u64,
    /// Packets that the class sent.
    pub sent_packets: u64,
    /// Packets that the queue dropped.
    pub dropped_packets: u64,
    /// Packets that the queue marked with congestion experienced.
    pub marked_packets: u64,
    /// Acknowledgements that the filter dropped. Null where the scheme has no such filter.
    pub acks_dropped: Option<u64>,
    /// Bytes in the queue now.
    pub backlog_bytes: u64,
    /// Packets in the queue now.
    pub backlog_packets: u64,
    /// Delay in the queue, in seconds: of CAKE the average of all packets, of FQ-CoDel the longest that the last packet of
    /// a busy flow had. Null where no flow is busy.
    pub delay_s: Option<f64>,
    /// Peak of the delay, in seconds. Null where the scheme does not report it.
    pub peak_delay_s: Option<f64>,
}
