//! What a busy machine runs out of: files, neighbours, queues of connections; and fragments, which wait
//! for their others in bounded memory.

use std::collections::BTreeMap;

use plumb_model::counter::meaning;
use plumb_model::results::host::{FileLimits, NeighbourTable, SocketMemoryUse};

use crate::number;
use crate::table::{Facts, Table};

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

/// What bounds files, neighbours and connections; `variable` reads a kernel variable.
pub(super) fn limits<'a>(
    files: &FileLimits,
    neighbours: &[NeighbourTable],
    variable: impl Fn(&str) -> Option<&'a str>,
) -> Table {
    let mut facts = Facts::new("Limits");
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
    for table in neighbours {
        let entries = of(Some(table.entries), table.max_entries);
        facts.fact(
            &format!("neighbours of IPv{}", table.ip_version),
            entries.map(|entries| format!("{entries}, {} of them did not answer", table.failed)),
        );
    }
    let tracked = variable("net.netfilter.nf_conntrack_count");
    let most = variable("net.netfilter.nf_conntrack_max");
    facts.fact(
        "tracked connections",
        tracked
            .zip(most)
            .map(|(now, most)| format!("{now} of at most {most}")),
    );
    variables(&mut facts, variable, &BOUNDS);
    facts.into_table()
}

/// Fragments, and what their memory is.
pub(super) fn fragments<'a>(
    memory: &SocketMemoryUse,
    counters: &BTreeMap<String, i64>,
    variable: impl Fn(&str) -> Option<&'a str>,
) -> Table {
    let mut facts = Facts::new("Fragments");
    facts.fact(
        "being put together",
        memory.fragments.map(|n| match memory.fragment_bytes {
            Some(bytes) => format!("{n}, in {}", number::bytes(bytes as f64)),
            None => n.to_string(),
        }),
    );
    variables(&mut facts, variable, &OF_FRAGMENTS);
    for (name, value) in counters {
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

fn variables<'a>(
    facts: &mut Facts,
    variable: impl Fn(&str) -> Option<&'a str>,
    keys: &[(&str, &str)],
) {
    for (key, what) in keys {
        let value = variable(key);
        facts.fact(what, value.map(|value| format!("{value} ({key})")));
    }
}
