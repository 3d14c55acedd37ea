//! What the kernel's counters of IP, TCP and UDP mean, by the names of nstat(8): the table of
//! /proc/net/snmp, snmp6 and netstat that a counter stands in, and its name there.
//!
//! From Documentation/networking/snmp_counter.rst, and where that is silent from the places in
//! `net/ipv4`, `net/ipv6` and `net/mptcp` that count (`LINUX_MIB_*` of `linux/snmp.h`).

mod kind;
mod table;

pub use kind::{Counter, Sense};
pub use table::COUNTERS;

/// The meaning of a counter; `None` for those that are rarely of use.
pub fn meaning(name: &str) -> Option<&'static Counter> {
    COUNTERS.iter().find(|counter| counter.name == name)
}

/// Every counter that goes by a name: nstat's, or the kernel's own, which is without the table.
pub fn named(name: &str) -> impl Iterator<Item = &'static Counter> {
    const TABLES: [&str; 9] = [
        "TcpExt", "IpExt", "MPTcpExt", "Tcp", "Udp6", "Udp", "Ip6", "Ip", "Icmp",
    ];
    COUNTERS.iter().filter(move |counter| {
        let own = TABLES
            .iter()
            .find_map(|table| counter.name.strip_prefix(table));
        [Some(counter.name), own]
            .into_iter()
            .flatten()
            .any(|own| own.eq_ignore_ascii_case(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_counter_is_explained_once() {
        let names: BTreeSet<_> = COUNTERS.iter().map(|c| c.name).collect();
        assert_eq!(names.len(), COUNTERS.len());
        assert_eq!(
            meaning("TcpRetransSegs").map(|c| c.sense),
            Some(Sense::Watch)
        );
        assert_eq!(meaning("NoSuchCounter"), None);
    }
}
