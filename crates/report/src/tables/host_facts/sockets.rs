//! Every connection that was read, with what TCP knows of it; the sums of all sockets; what TCP remembers of
//! connections that ended.

use plumb_model::results::host::{Connection, HostResult};

use super::{Facts, list};
use crate::number;
use crate::tables::Kind::{Number, Sentence, Text};
use crate::tables::{Table, host::owner};

pub(super) fn tables(host: &HostResult) -> Vec<Table> {
    vec![sums(host), connections(host)]
}

fn sums(host: &HostResult) -> Table {
    let mut facts = Facts::new("Sockets");
    let (sockets, memory) = (&host.sockets, &host.socket_memory);
    let states = sockets.tcp_states.iter();
    let states: Vec<_> = states
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    facts.fact("TCP", states.join(", "));
    let count = |what: &str, n: Option<u64>| n.map(|n| format!("{n} {what}"));
    let bytes = |n: Option<u64>| n.map(|n| format!("{} of memory", number::bytes(n as f64)));
    facts.fact(
        "TCP by the kernel's count",
        list([
            count("in use", memory.tcp_in_use),
            count("without an owner", memory.tcp_orphans),
            count("in TIME_WAIT", memory.tcp_time_wait),
            bytes(memory.tcp_bytes),
        ]),
    );
    facts.fact(
        "UDP",
        list([
            count("sockets", Some(sockets.udp)),
            count("in use", memory.udp_in_use),
            count(
                "datagrams dropped by those that live",
                Some(sockets.udp_drops),
            ),
            bytes(memory.udp_bytes),
        ]),
    );
    facts.into_table()
}

fn connections(host: &HostResult) -> Table {
    let sockets = &host.sockets;
    let mut table = Table::new(
        "Established connections, those that carried most first",
        &[
            ("local", Text),
            ("remote", Text),
            ("owner", Text),
            ("TCP knows", Sentence),
        ],
    );
    for connection in &sockets.connections {
        table.row([
            connection.local.clone(),
            connection.remote.clone(),
            owner(connection.owner.as_ref()),
            tcp_info(connection),
        ]);
    }
    table.note = (sockets.connections_left_out > 0)
        .then(|| format!("{} more are not listed.", sockets.connections_left_out));
    table
}

/// Everything that TCP remembers of addresses.
pub(super) fn cached(host: &HostResult) -> Vec<Table> {
    let mut table = Table::new(
        "What TCP remembers of addresses",
        &[
            ("remote", Text),
            ("local", Text),
            ("RTT", Number),
            ("varies", Number),
            ("cwnd", Number),
            ("ssthresh", Number),
            ("reorder", Number),
            ("age", Number),
        ],
    );
    for cached in &host.cached_metrics {
        let count = |value: Option<u32>| value.map_or_else(String::new, |v| v.to_string());
        let time = |value: Option<f64>| value.map_or_else(String::new, number::seconds);
        table.row([
            cached.remote.clone(),
            cached.local.clone().unwrap_or_default(),
            time(cached.rtt_s),
            time(cached.rttvar_s),
            count(cached.cwnd_segments),
            count(cached.ssthresh_segments),
            count(cached.reordering_segments),
            cached.age_s.map_or_else(String::new, number::length),
        ]);
    }
    vec![table]
}

fn tcp_info(c: &Connection) -> String {
    let bytes = |what: &str, n: u64| Some(format!("{what} {}", number::bytes(n as f64)));
    let share = |what: &str, ratio: Option<f64>| {
        ratio.map(|ratio| format!("{what} {} of its busy time", number::percent(ratio)))
    };
    list([
        c.congestion_control.clone(),
        Some(format!("RTT {}", number::seconds(c.rtt_s))),
        c.min_rtt_s
            .map(|least| format!("at least {}", number::seconds(least))),
        Some(format!("cwnd {} × {} bytes", c.cwnd_segments, c.mss_bytes)),
        Some(format!("path MTU {}", c.path_mtu_bytes)),
        Some(format!("delivers {}", number::rate(c.delivery_bps))),
        c.pacing_bps
            .map(|bps| format!("paced at {}", number::rate(bps))),
        bytes("sent", c.bytes_acked),
        bytes("received", c.bytes_received),
        Some(format!("{} segments again", c.retransmits)),
        bytes("unsent or unacknowledged", c.send_queue_bytes),
        bytes("unread", c.receive_queue_bytes),
        c.send_buffer_bytes.and_then(|n| bytes("send buffer", n)),
        c.receive_buffer_bytes
            .and_then(|n| bytes("receive buffer", n)),
        c.drops.map(|drops| format!("{drops} packets dropped")),
        share("waited for the receiver's window", c.rwnd_ratio),
        share("for its send buffer", c.sndbuf_ratio),
    ])
}
