//! What `plumb host` reads of this machine, and what its audit says of it.

mod cipher;
mod disk;
mod interface;
mod rates;
mod socket;
mod system;
mod wifi;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cipher::{CipherResult, CipherSpeed, CipherUse};
pub use disk::{DiskPass, DiskResult, FileAccess, FileWork, PageCache};
pub use interface::{
    Bus, ByteLimit, Channels, Coalescing, Duplex, FAST_BPS, Interface, LinkCounters, LinkMode,
    Module, OVERRUN_RATIO, Offload, Pause, Rings, Steering,
};
pub use rates::RatesResult;
pub use socket::{CachedMetrics, Connection, Listener, Owner, Sockets};
pub use system::{
    Clock, Cpus, FileLimits, InterruptLine, Machine, NeighbourTable, Qdisc, SocketMemoryUse,
    SoftnetCpu, Sysctl,
};
pub use wifi::{Wifi, WifiAirtime, WifiProtocol, WifiRate};

/// What is known of this host. What it did not report is null or empty, and `unread` has the reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostResult {
    /// What was looked at and what came of it, in the order of the audit.
    pub audit: Vec<Check>,
    /// The machine as a whole.
    pub machine: Machine,
    /// Network interfaces of this network namespace, in the kernel's order.
    pub interfaces: Vec<Interface>,
    /// Queueing disciplines and what they counted.
    pub qdiscs: Vec<Qdisc>,
    /// Kinds of queueing disciplines that the kernel has or could load. Null where that is unknown.
    pub queue_kinds: Option<Vec<String>>,
    /// Kernel variables that bear on the network.
    pub sysctls: Vec<Sysctl>,
    /// Counters of this namespace's IP, TCP and UDP since it began, by their names in nstat(8), such as
    /// `TcpRetransSegs`, `TcpExtListenOverflows` and `Ip6InDiscards`.
    pub counters: BTreeMap<String, i64>,
    /// Processing of received packets by each processor of the machine.
    pub softnet: Vec<SoftnetCpu>,
    /// Metrics that TCP remembers of addresses it was connected with.
    pub cached_metrics: Vec<CachedMetrics>,
    /// Sockets and who owns them.
    pub sockets: Sockets,
    /// Kernel memory that sockets use.
    pub socket_memory: SocketMemoryUse,
    /// Processors with their speed and power saving.
    pub cpus: Cpus,
    /// Interrupts of network interfaces by processor.
    pub interrupts: Vec<InterruptLine>,
    /// Limits of open files, of the machine and of a program.
    pub files: FileLimits,
    /// Neighbours known on the links, and the limits of their table.
    pub neighbours: Vec<NeighbourTable>,
    /// The clock and its synchronisation.
    pub clock: Clock,
    /// Names of those fields that are of the whole machine though this network namespace is only a part of it. Empty in
    /// the machine's first namespace.
    pub of_the_machine: Vec<String>,
    /// What could not be read, and the reason.
    pub unread: Vec<Unread>,
}

/// One thing that the audit looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What was looked at, such as `duplex` or `send buffer`.
    pub subject: String,
    /// What came of the check.
    pub state: CheckState,
    /// One sentence with the numbers in it.
    pub summary: String,
}

/// What came of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// There is nothing to do.
    Fine,
    /// A finding of the Run describes it.
    Found,
    /// The machine did not report it.
    Unknown,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unread {
    /// What could not be read: a file, or a question to the kernel.
    pub what: String,
    /// Reason why it could not be read.
    pub why: String,
}

impl HostResult {
    /// The counter of that name; `None` where the kernel has none.
    pub fn counter(&self, name: &str) -> Option<i64> {
        self.counters.get(name).copied()
    }

    /// The value of a kernel variable; `None` where it is absent or was not read.
    pub fn sysctl(&self, key: &str) -> Option<&str> {
        let found = self.sysctls.iter().find(|sysctl| sysctl.key == key)?;
        found.value.as_deref()
    }

    /// The numbers of a kernel variable; `None` where it is absent or no list of numbers.
    pub fn sysctl_numbers(&self, key: &str) -> Option<Vec<i64>> {
        let words = self.sysctl(key)?.split_whitespace();
        words.map(|word| word.parse().ok()).collect()
    }

    /// Whether the machine forwards packets between interfaces (either family).
    pub fn forwards(&self) -> bool {
        ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"]
            .iter()
            .any(|key| self.sysctl(key).is_some_and(|value| value != "0"))
    }
}
