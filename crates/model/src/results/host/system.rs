//! The machine around the interfaces: queues, settings, processors, memory, clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tune::Scope;

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Who made it, and what they call it (DMI).
    pub product: Option<String>,
    /// The hypervisor that it runs under, or `yes` when the processor only says that there is one;
    /// absent on hardware of its own.
    pub hypervisor: Option<String>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Whether this is the machine's first network namespace, which has its network cards.
    pub first_network_namespace: bool,
}

/// A queueing discipline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Qdisc {
    /// Interface that it belongs to.
    pub interface: String,
    /// The kernel's name for it: `fq_codel`, `pfifo_fast`, `noqueue` …
    pub kind: String,
    /// Handle as tc writes it: `8001:`.
    pub handle: String,
    /// `root`, `ingress`, or the class that it serves.
    pub parent: String,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Times that a packet had to wait for its rate.
    pub overlimits: u64,
    /// Packets that the driver gave back.
    pub requeues: u64,
    /// Bytes that wait now.
    pub backlog_bytes: u64,
    /// Packets that wait now.
    pub queue_packets: u64,
}

/// A kernel variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sysctl {
    /// Name, with dots.
    pub key: String,
    /// Its value; absent where this kernel or this namespace has none.
    pub value: Option<String>,
    /// How far it reaches.
    pub scope: Scope,
    /// Why this value is never good advice; absent where it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_because: Option<String>,
}

/// A processor's processing of received packets (/proc/net/softnet_stat, `net/core/net-procfs.c`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SoftnetCpu {
    /// Number of the processor.
    pub cpu: u32,
    /// Packets processed.
    pub processed: u32,
    /// Packets dropped because the backlog was full.
    pub dropped: u32,
    /// Times that the budget or the time ended before the packets did.
    pub squeezed: u32,
    /// Times that another processor woke this one to process packets (RPS).
    pub steered: u32,
    /// Packets dropped by the flow limit.
    pub flow_limited: u32,
    /// Packets that wait now.
    pub backlog_packets: u32,
}

/// Memory that sockets use (/proc/net/sockstat; pages made bytes).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SocketMemoryUse {
    /// TCP connections in use.
    pub tcp_in_use: Option<u64>,
    /// Connections without an owner.
    pub tcp_orphans: Option<u64>,
    /// Connections that wait out their time (TIME_WAIT).
    pub tcp_time_wait: Option<u64>,
    /// Memory of TCP.
    pub tcp_bytes: Option<u64>,
    /// UDP sockets in use.
    pub udp_in_use: Option<u64>,
    /// Memory of UDP.
    pub udp_bytes: Option<u64>,
    /// Fragments being put together.
    pub fragments: Option<u64>,
    /// Memory of those.
    pub fragment_bytes: Option<u64>,
}

/// The processors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpus {
    /// Model, as the processor names itself.
    pub model: Option<String>,
    /// How many are online.
    pub online: u32,
    /// Driver of the frequency; absent where the frequency is not the kernel's to choose.
    pub frequency_driver: Option<String>,
    /// Governors of the frequency in use, each once.
    pub governors: Vec<String>,
    /// Lowest of the current frequencies.
    pub frequency_hz: Option<f64>,
    /// Highest frequency possible.
    pub max_frequency_hz: Option<f64>,
    /// Preference between energy and speed in use, each once.
    pub energy_preferences: Vec<String>,
    /// Driver of the idle states; `none` where the processor is not put to sleep.
    pub idle_driver: Option<String>,
    /// Time to wake from the deepest idle state that is not disabled.
    pub wake_s: Option<f64>,
}

/// An interrupt of a network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterruptLine {
    /// Number.
    pub number: u32,
    /// What the driver calls it.
    pub name: String,
    /// Interface that it belongs to.
    pub interface: String,
    /// How often each processor served it, in the order of the processors.
    pub counts: Vec<u64>,
    /// Processors that may serve it, as a list such as `0-3`.
    pub allowed_cpus: Option<String>,
}

/// Limits of open files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileLimits {
    /// Files open on the machine (fs.file-nr).
    pub open: Option<u64>,
    /// The most that may be (fs.file-max).
    pub open_max: Option<u64>,
    /// The most that a program started here may open (RLIMIT_NOFILE).
    pub per_process: Option<u64>,
    /// How far it may raise that itself.
    pub per_process_max: Option<u64>,
}

/// The table of neighbours of one address family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeighbourTable {
    /// 4 or 6.
    pub ip_version: u8,
    /// Entries in this namespace.
    pub entries: u64,
    /// Those that did not answer.
    pub failed: u64,
    /// Beyond this many, new neighbours are refused (gc_thresh3).
    pub max_entries: Option<u64>,
}

/// The clock (adjtimex(2)).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// What the kernel counts time with.
    pub source: Option<String>,
    /// Whether something holds it to true time.
    pub synchronised: Option<bool>,
    /// Largest error that the program that holds it allows for.
    pub max_error_s: Option<f64>,
    /// Error that it estimates.
    pub estimated_error_s: Option<f64>,
    /// Rate at which the clock is corrected, in parts of a million.
    pub frequency_ppm: Option<f64>,
}
