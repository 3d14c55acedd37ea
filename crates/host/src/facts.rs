//! What this machine is and does: everything for `plumb host`, and the little of it that bears on
//! every measurement.
//!
//! One subject a file. Parsers are pure; what reads goes through a [`Source`], which keeps account of
//! what could not be read.

mod connection_table;
mod counters;
mod cpu;
mod files;
pub(crate) mod interface;
mod interrupts;
pub(crate) mod machine;
pub(crate) mod modules;
mod neighbours;
pub(crate) mod queues;
mod sockets;
mod softnet;
mod source;
pub(crate) mod sysctls;
mod waits;

use plumb_model::results::host::{CachedMetrics, Clock, HostResult};
use plumb_model::run::HostFacts;
use plumb_net::netlink::tcp_metrics::tcp_metrics;
use plumb_net::sysctl;

use crate::knobs::Catalogue;

pub(crate) use connection_table::dropped_connections;
pub use counters::{counters, link_counters};
pub(crate) use interface::tells_of_trouble;
pub use modules::Modules;
pub use softnet::softnet;
pub use source::Source;
pub(crate) use waits::waits;
pub use waits::{Ticks, processors};

/// Reads the facts of this host that bear on a measurement; facts that it does not report are absent.
///
/// The settings of TCP are read in the network namespace of the calling thread.
pub fn facts() -> HostFacts {
    let text = |key: &str| sysctl::read(key).ok();
    let words =
        |key: &str| text(key).map(|t| t.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let triple = |key: &str| sysctl::read_numbers(key).and_then(|numbers| numbers.try_into().ok());
    let kernel: Vec<String> = ["kernel.ostype", "kernel.osrelease"]
        .into_iter()
        .filter_map(text)
        .collect();
    let clock = clock(&mut Source::system());
    HostFacts {
        plumb: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: kernel.join(" "),
        congestion_control: text("net.ipv4.tcp_congestion_control"),
        congestion_controls: words("net.ipv4.tcp_available_congestion_control").unwrap_or_default(),
        tcp_rmem_bytes: triple("net.ipv4.tcp_rmem"),
        tcp_wmem_bytes: triple("net.ipv4.tcp_wmem"),
        tcp_adv_win_scale: text("net.ipv4.tcp_adv_win_scale").and_then(|t| t.parse().ok()),
        window_scaling: text("net.ipv4.tcp_window_scaling").map(|t| t != "0"),
        sack: text("net.ipv4.tcp_sack").map(|t| t != "0"),
        timestamps: text("net.ipv4.tcp_timestamps").map(|t| t != "0"),
        clock_source: clock.source,
        clock_synchronised: clock.synchronised,
    }
}

/// Reads everything that `plumb host` shows, in the network namespace of the calling thread. What
/// cannot be read is absent and listed; the audit is left empty. The catalogue says which kernel variables
/// bear on the network.
pub fn survey(source: &mut Source, catalogue: &Catalogue) -> HostResult {
    let mut result = HostResult {
        machine: machine::machine(source),
        interfaces: interface::interfaces(source, None),
        qdiscs: queues::qdiscs(source),
        queue_kinds: Modules::here(source).queues(),
        sysctls: sysctls::sysctls(source, catalogue),
        counters: counters(source),
        softnet: softnet(source),
        cached_metrics: cached_metrics(source),
        sockets: sockets::sockets(source),
        socket_memory: sockets::memory(source),
        cpus: cpu::cpus(source),
        files: files::limits(source),
        clock: clock(source),
        ..HostResult::default()
    };
    let limit = |key: &str| {
        let number = result.sysctl_numbers(key)?;
        u64::try_from(*number.first()?).ok()
    };
    let most = [
        limit("net.ipv4.neigh.default.gc_thresh3"),
        limit("net.ipv6.neigh.default.gc_thresh3"),
    ];
    result.neighbours = neighbours::neighbours(source, most, &mut result.interfaces);
    result.interrupts = interrupts::interrupts(source, &result.interfaces);
    if !result.machine.first_network_namespace {
        result.of_the_machine = OF_THE_MACHINE.map(str::to_owned).to_vec();
    }
    result.unread = source.take_unread();
    result
}

/// What a network namespace shares with the rest of the machine.
const OF_THE_MACHINE: [&str; 8] = [
    "machine",
    "softnet",
    "cpus",
    "interrupts",
    "files",
    "clock",
    "socket_memory.tcp_bytes",
    "socket_memory.udp_bytes",
];

fn cached_metrics(source: &mut Source) -> Vec<CachedMetrics> {
    source.asked("cached TCP metrics", tcp_metrics())
}

/// The clock source of Documentation/timers/timekeeping.rst, and what holds the clock.
fn clock(source: &mut Source) -> Clock {
    let discipline = plumb_net::clock::discipline();
    Clock {
        source: source.optional("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        synchronised: discipline.map(|d| d.synchronised),
        max_error_s: discipline.map(|d| d.max_error.as_secs_f64()),
        estimated_error_s: discipline.map(|d| d.estimated_error.as_secs_f64()),
        frequency_ppm: discipline.map(|d| d.frequency_ppm),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tells_what_proc_says() {
        let facts = facts();
        assert!(facts.kernel.starts_with("Linux "), "{}", facts.kernel);
        let rmem = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap_or_default();
        let told = facts
            .tcp_rmem_bytes
            .map(|r| r.map(|n| n.to_string()).join("\t"));
        assert_eq!(told.as_deref(), Some(rmem.trim()));
        assert!(
            facts
                .congestion_control
                .is_some_and(|cc| facts.congestion_controls.contains(&cc))
        );
        assert!(facts.window_scaling.is_some() && facts.tcp_adv_win_scale.is_some());
    }

    #[test]
    fn the_survey_of_this_machine_agrees_with_its_files() {
        let catalogue = Catalogue::built_in().unwrap();
        let result = survey(&mut Source::system(), &catalogue);
        let lo = result.interfaces.iter().find(|i| i.name == "lo").unwrap();
        assert_eq!((lo.mtu_bytes, lo.hardware.as_str()), (65536, "loopback"));
        assert!(lo.addresses.contains(&"127.0.0.1/8".to_owned()));
        assert!(lo.offload("tx-tcp-segmentation").is_some());
        assert!(result.counter("TcpOutSegs").is_some_and(|n| n > 0));
        assert!(result.counter("TcpExtListenOverflows").is_some());
        assert_eq!(result.softnet.len() as u32, result.cpus.online);
        assert_eq!(
            result.sysctl("net.ipv4.tcp_sack"),
            Some(
                std::fs::read_to_string("/proc/sys/net/ipv4/tcp_sack")
                    .unwrap()
                    .trim()
            )
        );
        assert!(result.qdiscs.iter().all(|q| !q.interface.is_empty()));
    }

    #[test]
    fn a_machine_that_tells_nothing_is_no_error() {
        let empty = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::built_in().unwrap();
        let result = survey(&mut Source::below(empty.path()), &catalogue);
        assert!(result.counters.is_empty() && result.softnet.is_empty());
        let unread: Vec<_> = result.unread.iter().map(|u| u.what.as_str()).collect();
        assert!(
            unread.contains(&"/proc/thread-self/net/netstat"),
            "{unread:?}"
        );
        assert!(unread.contains(&"/proc/thread-self/net/softnet_stat"));
        assert!(result.sysctls.iter().all(|s| s.value.is_none()));
    }
}
