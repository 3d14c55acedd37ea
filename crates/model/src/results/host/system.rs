//! The machine around the interfaces: queues, settings, processors, memory, clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tune::Scope;

/// The machine as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Maker and product name (DMI). Null where the machine has none.
    pub product: Option<String>,
    /// The hypervisor that it runs under, or `yes` where the processor shows only that there is one. Null on hardware
    /// of its own.
    pub hypervisor: Option<String>,
    /// Main memory in bytes. Null where it could not be read.
    pub memory_bytes: Option<u64>,
    /// Whether this is the machine's first network namespace, which has its network cards.
    pub first_network_namespace: bool,
}

/// A queueing discipline and what it counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Qdisc {
    /// Interface that it belongs to.
    pub interface: String,
    /// The kernel's name for it, such as `fq_codel`, `pfifo_fast` and `noqueue`.
    pub kind: String,
    /// Handle as tc writes it, such as `8001:`.
    pub handle: String,
    /// `root`, `ingress`, or the class that it serves.
    pub parent: String,
    /// Bytes that it sent.
    pub bytes: u64,
    /// Packets that it sent.
    pub packets: u64,
    /// Packets that it dropped.
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

/// A kernel variable and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sysctl {
    /// Name of the variable, with dots.
    pub key: String,
    /// Value of the variable. Null where this kernel or this namespace has none.
    pub value: Option<String>,
    /// What the variable reaches: the network namespace, or the whole machine.
    pub scope: Scope,
    /// Reason why this value is never good advice. Absent where it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_because: Option<String>,
}

/// A processor's processing of received packets (/proc/net/softnet_stat, `net/core/net-procfs.c`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SoftnetCpu {
    /// Number of the processor.
    pub cpu: u32,
    /// Packets that the processor processed.
    pub processed: u32,
    /// Packets dropped because the backlog was full.
    pub dropped: u32,
    /// Times that the budget or the time ended before the packets did.
    pub squeezed: u32,
    /// Times that another processor woke this one to process packets (RPS).
    pub steered: u32,
    /// Packets dropped by the flow limit.
    pub flow_limited: u32,
    /// Packets that wait in its backlog now.
    pub backlog_packets: u32,
}

/// Memory that sockets use (/proc/net/sockstat; pages made bytes).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SocketMemoryUse {
    /// TCP connections in use. Null where it could not be read.
    pub tcp_in_use: Option<u64>,
    /// TCP connections without an owner. Null where it could not be read.
    pub tcp_orphans: Option<u64>,
    /// TCP connections that wait out their time (TIME_WAIT). Null where it could not be read.
    pub tcp_time_wait: Option<u64>,
    /// Memory of TCP in bytes. Null where it could not be read.
    pub tcp_bytes: Option<u64>,
    /// UDP sockets in use. Null where it could not be read.
    pub udp_in_use: Option<u64>,
    /// Memory of UDP in bytes. Null where it could not be read.
    pub udp_bytes: Option<u64>,
    /// Fragments that wait for the rest of their packet. Null where it could not be read.
    pub fragments: Option<u64>,
    /// Memory of those fragments in bytes. Null where it could not be read.
    pub fragment_bytes: Option<u64>,
}

/// Processors with their speed and power saving.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpus {
    /// Model, as the processor names itself. Null where it does not.
    pub model: Option<String>,
    /// Number of processors that are online.
    pub online: u32,
    /// Driver of the frequency. Null where the kernel does not choose the frequency.
    pub frequency_driver: Option<String>,
    /// Governors of the frequency in use, each once.
    pub governors: Vec<String>,
    /// Lowest of the current frequencies in Hz. Null where it could not be read.
    pub frequency_hz: Option<f64>,
    /// Highest possible frequency in Hz. Null where it could not be read.
    pub max_frequency_hz: Option<f64>,
    /// Preference between energy and speed in use, each once.
    pub energy_preferences: Vec<String>,
    /// Driver of the idle states; `none` where the processor is not put to sleep. Null where it could not be read.
    pub idle_driver: Option<String>,
    /// Time to wake from the deepest idle state that is not disabled, in seconds. Null where it could not be read.
    pub wake_s: Option<f64>,
}

/// An interrupt of a network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterruptLine {
    /// Number of the interrupt.
    pub number: u32,
    /// Name that the driver gave it.
    pub name: String,
    /// Interface that it belongs to.
    pub interface: String,
    /// How often each processor served it, in the order of the processors.
    pub counts: Vec<u64>,
    /// Processors that may serve it, as a list such as `0-3`. Null where it could not be read.
    pub allowed_cpus: Option<String>,
}

/// Limits of open files, of the machine and of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileLimits {
    /// Files open on the machine (fs.file-nr). Null where it could not be read.
    pub open: Option<u64>,
    /// The most files that may be open on the machine (fs.file-max). Null where it could not be read.
    pub open_max: Option<u64>,
    /// The most files that a program started here may open (RLIMIT_NOFILE). Null where it could not be read.
    pub per_process: Option<u64>,
    /// The limit to which such a program may raise that itself. Null where it could not be read.
    pub per_process_max: Option<u64>,
}

/// The table of neighbours of one address family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeighbourTable {
    /// Version of IP, 4 or 6.
    pub ip_version: u8,
    /// Entries in this namespace.
    pub entries: u64,
    /// Entries that did not answer.
    pub failed: u64,
    /// Number of entries beyond which new neighbours are refused (gc_thresh3). Null where it could not be read.
    pub max_entries: Option<u64>,
}

/// The clock of the host, by adjtimex(2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// Clock source of the kernel. Null where it could not be read.
    pub source: Option<String>,
    /// Whether a program or a device keeps it at true time. Null where it could not be read.
    pub synchronised: Option<bool>,
    /// Largest error in seconds that the program that keeps it allows for. Null where the clock is not synchronised.
    pub max_error_s: Option<f64>,
    /// Error in seconds that the program that keeps it estimates. Null where the clock is not synchronised.
    pub estimated_error_s: Option<f64>,
    /// Rate at which the clock is corrected, in parts per million. Null where it could not be read.
    pub frequency_ppm: Option<f64>,
}
