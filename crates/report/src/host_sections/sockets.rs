//! Every connection that was read, with what TCP knows of it; the sums of all sockets; what TCP remembers of
//! connections that ended.

use plumb_model::results::host::{CachedMetrics, Connection, SocketMemoryUse, Sockets};

use crate::kinds::host::owner;
use crate::number;
use crate::table::{Facts, Table, blank, list};

pub(super) fn tables(sockets: &Sockets, memory: &SocketMemoryUse) -> [Table; 2] {
    [sums(sockets, memory), connections(sockets)]
}

fn sums(sockets: &Sockets, memory: &SocketMemoryUse) -> Table {
    let mut facts = Facts::new("Sockets");
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

fn connections(sockets: &Sockets) -> Table {
    let left_out = sockets.connections_left_out;
    Table::of(
        "Established connections, those that carried most first",
        &sockets.connections,
    )
    .text("local", |c| c.local.clone())
    .text("remote", |c| c.remote.clone())
    .text("owner", |c| owner(c.owner.as_ref()))
    .sentence("TCP knows", |c| tcp_info(c))
    .noting((left_out > 0).then(|| format!("{left_out} more are not listed.")))
}

/// Everything that TCP remembers of addresses.
pub(super) fn cached(all: &[CachedMetrics]) -> Table {
    let time = |value: Option<f64>| blank(value.map(number::seconds));
    Table::of("What TCP remembers of addresses", all)
        .text("remote", |cached| cached.remote.clone())
        .text("local", |cached| blank(cached.local.as_ref()))
        .num("RTT", |cached| time(cached.rtt_s))
        .num("varies", |cached| time(cached.rttvar_s))
        .num("cwnd", |cached| blank(cached.cwnd_segments))
        .num("ssthresh", |cached| blank(cached.ssthresh_segments))
        .num("reorder", |cached| blank(cached.reordering_segments))
        .num("age", |cached| blank(cached.age_s.map(number::length)))
        .done()
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
