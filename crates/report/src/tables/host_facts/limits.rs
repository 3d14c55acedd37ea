//! What a busy machine runs out of: files, neighbours, queues of connections; and fragments, which wait
//! for their others in bounded memory.

use plumb_model::counter::meaning;
use plumb_model::results::host::HostResult;

use super::Facts;
use crate::number;
use crate::tables::Table;

/// Kernel variables that bound something, and what.
const BOUNDS: [(&str, &str); 9] = [
    ("net.core.somaxconn", "connections that wait to be accepted"),
    ("net.ipv4.tcp_max_syn_backlog", "half-open connections"),
    (
        "net.core.netdev_max_backlog",
        "packets that wait for a processor",
    ),
    (
        "net.ipv4.tcp_limit_output_bytes",
        "bytes of a connection below TCP (TSQ)",
    ),
    (
        "net.ipv4.tcp_min_tso_segs",
        "least segments in a piece (TSO)",
    ),
    (
        "net.ipv4.ip_local_port_range",
        "ports of connections begun here",
    ),
    ("net.ipv4.tcp_max_tw_buckets", "connections in TIME_WAIT"),
    ("net.ipv4.tcp_max_orphans", "connections without an owner"),
    ("net.ipv4.tcp_mem", "memory of TCP, pages of 4 KiB"),
];

/// Kernel variables of fragments.
const OF_FRAGMENTS: [(&str, &str); 2] = [
    ("net.ipv4.ipfrag_high_thresh", "memory for them, bytes"),
    ("net.ipv4.ipfrag_time", "they wait, seconds"),
];

pub(super) fn tables(host: &HostResult) -> Vec<Table> {
    vec![limits(host), fragments(host)]
}

fn limits(host: &HostResult) -> Table {
    let mut facts = Facts::new("Limits");
    let files = &host.files;
    let of = |used: Option<u64>, most: Option<u64>| {
        let used = used?;
        Some(match most {
            Some(most) => format!("{used} of at most {most}"),
            None => used.to_string(),
        })
    };
    facts.fact("open files", of(files.open, files.open_max));
    facts.fact(
        "files that a program may open",
        files.per_process.map(|now| match files.per_process_max {
            Some(most) => format!("{now}, which it may raise to {most}"),
            None => now.to_string(),
        }),
    );
    for table in &host.neighbours {
        let entries = of(Some(table.entries), table.max_entries);
        facts.fact(
            &format!("neighbours of IPv{}", table.ip_version),
            entries.map(|entries| format!("{entries}, {} of them did not answer", table.failed)),
        );
    }
    let tracked = host.sysctl("net.netfilter.nf_conntrack_count");
    let most = host.sysctl("net.netfilter.nf_conntrack_max");
    facts.fact(
        "tracked connections",
        tracked
            .zip(most)
            .map(|(now, most)| format!("{now} of at most {most}")),
    );
    variables(&mut facts, host, &BOUNDS);
    facts.into_table()
}

fn fragments(host: &HostResult) -> Table {
    let mut facts = Facts::new("Fragments");
    let memory = &host.socket_memory;
    facts.fact(
        "being put together",
        memory.fragments.map(|n| match memory.fragment_bytes {
            Some(bytes) => format!("{n}, in {}", number::bytes(bytes as f64)),
            None => n.to_string(),
        }),
    );
    variables(&mut facts, host, &OF_FRAGMENTS);
    for (name, value) in &host.counters {
        let name = name.as_str();
        if name.contains("Reasm") || name.contains("Frag") {
            let text = match meaning(name) {
                Some(counter) => format!("{value}: {}", counter.meaning),
                None => value.to_string(),
            };
            facts.fact(name, text);
        }
    }
    facts.into_table()
}

fn variables(facts: &mut Facts, host: &HostResult, keys: &[(&str, &str)]) {
    for (key, what) in keys {
        let value = host.sysctl(key);
        facts.fact(what, value.map(|value| format!("{value} ({key})")));
    }
}
