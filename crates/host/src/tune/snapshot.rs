//! What a host has at present, as far as a plan needs it: this one's, or another's that somebody pasted.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use plumb_model::run::HostFacts;
use plumb_model::tune::{Kind, Os};
use plumb_net::{netlink, route, sysctl};

use crate::knobs::Catalogue;

/// Congestion controls that the kernel has at hand.
pub const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
/// Congestion controls that a network namespace may choose.
pub const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";

/// A variable that only the first network namespace shows.
const MACHINE_ONLY: &str = "/proc/sys/net/core/netdev_max_backlog";

/// Whether the calling thread's network is that of the whole machine, and not a namespace within it such as
/// a container's or a laboratory's.
pub fn is_whole_machine() -> bool {
    Path::new(MACHINE_ONLY).exists()
}

/// An interface that leads to the path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Largest IP packet.
    pub mtu_bytes: Option<u32>,
    /// Its outermost queueing discipline, and its handle: `0:` where the kernel chose it.
    pub qdisc: Option<(String, String)>,
    /// Offloads, by ethtool's names, and whether they are on.
    pub offloads: BTreeMap<String, bool>,
    /// Receive ring: packets that it holds, and that it could hold.
    pub ring_rx: Option<(u64, u64)>,
}

/// What a host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its system.
    pub os: Os,
    /// Release of the system.
    pub release: Option<String>,
    /// Its memory.
    pub memory_bytes: Option<u64>,
    /// Values by the names of the catalogue.
    pub values: BTreeMap<String, String>,
    /// The interface that leads to the path.
    pub interface: Option<Interface>,
    /// Whether what belongs to the machine may be changed too.
    pub whole_machine: bool,
    /// Whether its kernel has the queueing discipline fq, where that is known.
    pub has_fq: Option<bool>,
    /// Where this is from, for people.
    pub from: String,
}

impl Snapshot {
    /// A host of which nothing is known but its system.
    pub fn unknown(os: Os) -> Self {
        Self {
            os,
            release: None,
            memory_bytes: None,
            values: BTreeMap::new(),
            interface: None,
            whole_machine: true,
            has_fq: None,
            from: format!("the defaults of {os}"),
        }
    }

    /// This host, in the network namespace of the calling thread. `towards` is an address on the path, for
    /// the interface.
    pub fn here(catalogue: &Catalogue, towards: Option<IpAddr>) -> Self {
        let keys = catalogue
            .of(Os::Linux)
            .filter(|knob| knob.kind == Kind::Sysctl)
            .map(|knob| knob.name.as_str())
            .chain([AVAILABLE, ALLOWED]);
        let values = keys
            .filter_map(|key| Some((key.to_owned(), sysctl::read(key).ok()?)))
            .collect();
        let release = sysctl::read("kernel.osrelease").ok();
        Self {
            os: Os::Linux,
            has_fq: release.as_deref().and_then(has_fq),
            release,
            memory_bytes: memory(),
            values,
            interface: interface(towards),
            whole_machine: is_whole_machine(),
            from: "this host".to_owned(),
        }
    }

    /// What a Run tells of one of its ends.
    pub fn of_run(facts: &HostFacts, from: &str) -> Self {
        let (system, release) = facts.kernel.split_once(' ').unwrap_or((&facts.kernel, ""));
        let os = match system {
            "Darwin" => Os::Macos,
            "FreeBSD" => Os::Freebsd,
            "OpenBSD" => Os::Openbsd,
            "Windows" => Os::Windows,
            _ => Os::Linux,
        };
        let triple =
            |numbers: Option<[u64; 3]>| numbers.map(|n| n.map(|n| n.to_string()).join(" "));
        let told = [
            ("net.ipv4.tcp_rmem", triple(facts.tcp_rmem_bytes)),
            ("net.ipv4.tcp_wmem", triple(facts.tcp_wmem_bytes)),
            (
                "net.ipv4.tcp_congestion_control",
                facts.congestion_control.clone(),
            ),
            (
                AVAILABLE,
                (!facts.congestion_controls.is_empty())
                    .then(|| facts.congestion_controls.join(" ")),
            ),
            (
                "net.ipv4.tcp_window_scaling",
                facts.window_scaling.map(|on| u8::from(on).to_string()),
            ),
        ];
        Self {
            release: (!release.is_empty()).then(|| release.to_owned()),
            values: told
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value?)))
                .collect(),
            from: from.to_owned(),
            ..Self::unknown(os)
        }
    }

    /// A value by the name of the catalogue.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Congestion controls that may be chosen here, where it is known.
    pub fn choosable(&self) -> Option<&str> {
        self.value(if self.whole_machine {
            AVAILABLE
        } else {
            ALLOWED
        })
    }
}

/// Whether this kernel has fq: as a module that it could load, or in itself, which its symbols tell. `None`
/// where it shows neither.
fn has_fq(release: &str) -> Option<bool> {
    let lists = ["modules.builtin", "modules.dep"];
    let listed = lists.iter().any(|list| {
        std::fs::read_to_string(format!("/lib/modules/{release}/{list}"))
            .is_ok_and(|text| text.contains("/sch_fq.ko"))
    });
    if listed {
        return Some(true);
    }
    let symbols = std::fs::read_to_string("/proc/kallsyms").ok()?;
    let has = |name: &str| {
        symbols
            .lines()
            .any(|line| line.split_whitespace().nth(2) == Some(name))
    };
    // Every kernel that schedules packets has the second.
    has("pfifo_enqueue").then(|| has("fq_enqueue"))
}

/// MemTotal of /proc/meminfo (proc(5)), in bytes.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Somewhere far away, whose first step is that of most paths (RFC 5737).
const FAR_AWAY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

fn interface(towards: Option<IpAddr>) -> Option<Interface> {
    let hop = route::next_hop(towards.unwrap_or(FAR_AWAY)).ok()??;
    let name = netlink::interface_name(hop.interface).ok()?;
    let mtu = std::fs::read_to_string(format!("/sys/class/net/{name}/mtu"));
    Some(Interface {
        mtu_bytes: mtu.ok().and_then(|text| text.trim().parse().ok()),
        qdisc: plumb_net::tc::qdiscs(&name)
            .ok()
            .and_then(|all| all.into_iter().find(|q| q.root))
            .map(|q| (q.kind, q.handle)),
        name,
        ..Interface::default()
    })
}
