//! The counters of IP, TCP and UDP, and the counters of interfaces.

use std::collections::BTreeMap;

use plumb_model::results::host::LinkCounters;
use plumb_net::netlink::link::links;

use super::Source;

/// Counters of the network namespace of the calling thread, by the names of nstat(8).
pub fn counters(source: &mut Source) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    for file in ["snmp", "netstat"] {
        if let Some(text) = source.text(&format!("/proc/thread-self/net/{file}")) {
            all.extend(pairs_of_lines(&text));
        }
    }
    // Absent where the kernel has no IPv6.
    if let Some(text) = source.optional("/proc/thread-self/net/snmp6") {
        all.extend(lines(&text));
    }
    all
}

/// Names and counters of the interfaces by their numbers.
pub fn link_counters(source: &mut Source) -> BTreeMap<u32, (String, LinkCounters)> {
    let links = source.asked("interfaces", links());
    let named = links.into_iter().map(|l| (l.index, (l.name, l.counters)));
    named.collect()
}

/// `Tcp: RtoMin OutSegs` and below it `Tcp: 200 17` (`net/ipv4/proc.c`).
fn pairs_of_lines(text: &str) -> impl Iterator<Item = (String, i64)> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs: Vec<_> = lines
        .chunks_exact(2)
        .filter_map(|pair| match pair {
            [names, values] => Some((names.split_once(':')?, values.split_once(':')?)),
            _ => None,
        })
        .filter(|((group, _), (again, _))| group == again)
        .flat_map(|((group, names), (_, values))| {
            let values = values.split_whitespace().map(|value| value.parse().ok());
            names
                .split_whitespace()
                .zip(values)
                .filter_map(move |(name, value)| Some((format!("{group}{name}"), value?)))
        })
        .collect();
    pairs.into_iter()
}

/// `Ip6InReceives 17` (`net/ipv6/proc.c`).
fn lines(text: &str) -> impl Iterator<Item = (String, i64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_shapes_are_read() {
        let text = "Tcp: RtoMin MaxConn OutSegs\nTcp: 200 -1 17\nTcpExt: ListenDrops\nTcpExt: 3\n";
        let read: BTreeMap<_, _> = pairs_of_lines(text).collect();
        assert_eq!(read.get("TcpMaxConn"), Some(&-1));
        assert_eq!(read.get("TcpOutSegs"), Some(&17));
        assert_eq!(read.get("TcpExtListenDrops"), Some(&3));
        let read: BTreeMap<_, _> = lines("Ip6InReceives   \t12\nrubbish\n").collect();
        assert_eq!(read.len(), 1);
        assert_eq!(read.get("Ip6InReceives"), Some(&12));
    }

    #[test]
    fn lines_that_do_not_belong_together_are_left_out() {
        assert_eq!(pairs_of_lines("Tcp: A\nUdp: 1\n").count(), 0);
        assert_eq!(pairs_of_lines("Tcp: A B\nTcp: 1\n").count(), 1);
    }

    #[test]
    fn every_counter_that_is_explained_is_one_of_the_kernels() {
        // Of a kernel as new as this one or newer.
        let known = counters(&mut Source::system());
        let missing: Vec<_> = plumb_model::counter::COUNTERS
            .iter()
            .map(|counter| counter.name)
            .filter(|name| !known.contains_key(*name))
            .collect();
        assert_eq!(missing, [""; 0]);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(\\PC{0,40}\n){0,6}") {
            let _ = pairs_of_lines(&text).count() + lines(&text).count();
        }
    }
}
