//! Sockets, who owns them, and the memory they use.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use plumb_model::protocol::Transport;
use plumb_model::results::host::{Connection, Listener, Owner, SocketMemoryUse, Sockets};
use plumb_net::netlink::socket::{ESTABLISHED, InetSocket, LISTEN, sockets as ask, state_name};

use super::Source;

/// Connections that are listed one by one.
const MOST_CONNECTIONS: usize = 200;

/// How long /proc is searched for the owners: a machine may have hundreds of thousands of files open.
const OWNERS_WITHIN: Duration = Duration::from_millis(50);

/// The sockets of the network namespace of the calling thread.
pub(super) fn sockets(source: &mut Source) -> Sockets {
    let tcp = source.asked("TCP sockets", ask(Transport::Tcp));
    let udp = source.asked("UDP sockets", ask(Transport::Udp));
    let owners = if tcp.is_empty() {
        HashMap::new()
    } else {
        owners(source)
    };
    let mut sockets = arrange(&tcp, &owners);
    sockets.udp = udp.len() as u64;
    let drops = udp.iter().filter_map(|socket| socket.memory);
    sockets.udp_drops = drops.map(|(_, _, drops)| u64::from(drops)).sum();
    sockets
}

fn arrange(tcp: &[InetSocket], owners: &HashMap<u32, Owner>) -> Sockets {
    let mut sockets = Sockets::default();
    for socket in tcp {
        *sockets
            .tcp_states
            .entry(state_name(socket.state).to_owned())
            .or_default() += 1;
        let owner = owners.get(&socket.inode).cloned();
        match socket.state {
            ESTABLISHED => sockets.connections.push(connection(socket, owner)),
            LISTEN => sockets.listeners.push(Listener {
                local: socket.local.to_string(),
                owner,
                waiting: socket.receive_queue.into(),
                backlog: socket.send_queue.into(),
            }),
            _ => {}
        }
    }
    let carried = |c: &Connection| c.bytes_acked.saturating_add(c.bytes_received);
    sockets
        .connections
        .sort_by_key(|c| std::cmp::Reverse(carried(c)));
    let left_out = sockets.connections.len().saturating_sub(MOST_CONNECTIONS);
    sockets.connections_left_out = left_out as u64;
    sockets.connections.truncate(MOST_CONNECTIONS);
    sockets
}

fn connection(socket: &InetSocket, owner: Option<Owner>) -> Connection {
    let mut connection = Connection {
        local: socket.local.to_string(),
        remote: socket.remote.to_string(),
        owner,
        congestion_control: socket.congestion_control.clone(),
        send_queue_bytes: socket.send_queue.into(),
        receive_queue_bytes: socket.receive_queue.into(),
        receive_buffer_bytes: socket.memory.map(|(receive, _, _)| receive.into()),
        send_buffer_bytes: socket.memory.map(|(_, send, _)| send.into()),
        drops: socket.memory.map(|(_, _, drops)| drops.into()),
        ..Connection::default()
    };
    if let Some(info) = socket.info {
        let busy = |part: u64| (info.busy_us > 0).then(|| part as f64 / info.busy_us as f64);
        connection.rtt_s = f64::from(info.srtt_us) / 1e6;
        connection.min_rtt_s = info.min_rtt_us.map(|us| f64::from(us) / 1e6);
        connection.cwnd_segments = info.cwnd_segments;
        connection.mss_bytes = info.snd_mss_bytes;
        connection.path_mtu_bytes = info.path_mtu_bytes;
        connection.delivery_bps = info.delivery_bytes_per_s as f64 * 8.0;
        connection.pacing_bps = info.pacing_bytes_per_s.map(|rate| rate as f64 * 8.0);
        connection.bytes_acked = info.bytes_acked;
        connection.bytes_received = info.bytes_received;
        connection.retransmits = info.total_retransmits;
        connection.rwnd_ratio = busy(info.rwnd_limited_us).map(|ratio| ratio.min(1.0));
        connection.sndbuf_ratio = busy(info.sndbuf_limited_us).map(|ratio| ratio.min(1.0));
    }
    connection
}

/// The processes that hold sockets, by the sockets' numbers; processes of other users only for root.
fn owners(source: &mut Source) -> HashMap<u32, Owner> {
    let begun = Instant::now();
    let mut owners = HashMap::new();
    for pid in source
        .names("/proc")
        .iter()
        .filter_map(|name| name.parse::<u32>().ok())
    {
        if begun.elapsed() > OWNERS_WITHIN {
            source.note(
                "owners of sockets",
                &"this machine has more open files than can be looked through in 50 ms",
            );
            break;
        }
        let mut program = None;
        for descriptor in source.names(&format!("/proc/{pid}/fd")) {
            let Some(inode) = source
                .link_name(&format!("/proc/{pid}/fd/{descriptor}"))
                .as_deref()
                .and_then(inode)
            else {
                continue;
            };
            let program = program.get_or_insert_with(|| {
                source
                    .optional(&format!("/proc/{pid}/comm"))
                    .unwrap_or_default()
            });
            owners.entry(inode).or_insert_with(|| Owner {
                pid,
                program: program.clone(),
            });
        }
    }
    owners
}

/// `socket:[12345]`.
fn inode(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// /proc/net/sockstat (`sockstat_seq_show`, `net/ipv4/proc.c`), which counts pages.
pub(super) fn memory(source: &mut Source) -> SocketMemoryUse {
    let text = source
        .text("/proc/thread-self/net/sockstat")
        .unwrap_or_default();
    memory_of(&text, plumb_net::file::page_bytes())
}

fn memory_of(text: &str, page_bytes: u64) -> SocketMemoryUse {
    let value = |line: &str, name: &str| -> Option<u64> {
        let rest = text.lines().find_map(|l| l.strip_prefix(line))?;
        let mut words = rest.split_whitespace().skip_while(|word| *word != name);
        words.nth(1)?.parse().ok()
    };
    let pages = |line: &str| value(line, "mem").and_then(|pages| pages.checked_mul(page_bytes));
    SocketMemoryUse {
        tcp_in_use: value("TCP:", "inuse"),
        tcp_orphans: value("TCP:", "orphan"),
        tcp_time_wait: value("TCP:", "tw"),
        tcp_bytes: pages("TCP:"),
        udp_in_use: value("UDP:", "inuse"),
        udp_bytes: pages("UDP:"),
        fragments: value("FRAG:", "inuse"),
        fragment_bytes: value("FRAG:", "memory"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;

    #[test]
    fn our_listener_is_ours() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        let read = sockets(&mut Source::system());
        let ours = read.listeners.iter().find(|l| l.local == at).unwrap();
        assert_eq!(ours.owner.as_ref().map(|o| o.pid), Some(std::process::id()));
        assert_eq!((ours.waiting, ours.backlog > 0), (0, true));
    }

    #[test]
    fn memory_is_bytes() {
        let text = "sockets: used 15\nTCP: inuse 1 orphan 27 tw 3 alloc 33 mem 5\nUDP: inuse 2 mem 26\nFRAG: inuse 4 memory 4096\n";
        let read = memory_of(text, 4096);
        assert_eq!((read.tcp_orphans, read.tcp_time_wait), (Some(27), Some(3)));
        assert_eq!(
            (read.tcp_bytes, read.udp_bytes),
            (Some(20480), Some(106_496))
        );
        assert_eq!(read.fragment_bytes, Some(4096));
        assert_eq!(memory_of("", 4096), SocketMemoryUse::default());
    }

    proptest! {
        #[test]
        fn never_panics(text in "((TCP|UDP|FRAG):[ a-z0-9]{0,30}\n){0,4}", link in "\\PC{0,20}") {
            let _ = (memory_of(&text, u64::MAX), inode(&link));
        }
    }
}
