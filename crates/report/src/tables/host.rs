//! This machine: what was looked at, its interfaces, its counters, its sockets.

use plumb_model::counter::{Sense, meaning};
use plumb_model::results::Outcome;
use plumb_model::results::host::{CheckState, Connection, HostResult, Interface, Owner, Qdisc};
use plumb_model::run::Run;

use super::Kind::{Number, Sentence, Text};
use super::Table;
use crate::number::{self, ABSENT};

/// Connections that are shown; the Run has more.
const MOST_CONNECTIONS: usize = 10;

/// Addresses of which TCP remembers something that are shown.
const MOST_CACHED: usize = 5;

/// What is fine, and what could not be told; the findings stand above.
pub(super) fn audit(run: &Run) -> Table {
    let mut table = Table::new("Looked at", &[("", Text), ("", Text), ("", Sentence)]);
    for host in results(run) {
        for check in &host.audit {
            let state = match check.state {
                CheckState::Fine => "fine",
                CheckState::Unknown => "not known",
                // Said in full by its finding.
                CheckState::Found => continue,
            };
            table.row([
                state.to_owned(),
                check.subject.clone(),
                check.summary.clone(),
            ]);
        }
    }
    table
}

/// The interfaces.
pub(super) fn interfaces(run: &Run) -> Table {
    let mut table = Table::new(
        "Interfaces",
        &[
            ("", Text),
            ("kind", Text),
            ("driver", Text),
            ("bus", Text),
            ("link", Text),
            ("MTU", Number),
            ("rings rx/tx", Number),
            ("queues", Number),
            ("GSO max", Number),
            ("received", Number),
            ("sent", Number),
            ("errors", Number),
            ("dropped", Number),
        ],
    );
    for host in results(run) {
        for interface in &host.interfaces {
            table.row(interface_cells(interface));
        }
    }
    table
}

fn interface_cells(interface: &Interface) -> [String; 13] {
    let counters = &interface.counters;
    let link = interface.link.as_ref().and_then(|link| {
        let speed = number::rate(link.speed_bps?);
        Some(
            link.duplex
                .map_or(speed.clone(), |duplex| format!("{speed} {}", duplex.name())),
        )
    });
    let state = match (interface.up, interface.carrier) {
        (false, _) => Some("down".to_owned()),
        (true, false) => Some("no carrier".to_owned()),
        (true, true) => link,
    };
    let queues = interface
        .steering
        .iter()
        .filter(|s| s.queue.starts_with("rx-"))
        .count();
    [
        interface.name.clone(),
        interface
            .kind
            .clone()
            .unwrap_or_else(|| interface.hardware.clone()),
        interface.driver.clone().unwrap_or_default(),
        interface
            .bus
            .as_ref()
            .map_or_else(String::new, |bus| match bus.speed_bps {
                Some(bps) => format!("{} {}", bus.kind, number::rate(bps)),
                None => bus.kind.clone(),
            }),
        state.unwrap_or_default(),
        interface.mtu_bytes.to_string(),
        interface.rings.map_or_else(String::new, |r| {
            format!("{}/{}", r.receive_packets, r.send_packets)
        }),
        queues.to_string(),
        interface
            .gso_max_bytes
            .map_or_else(String::new, |b| number::bytes(b.into())),
        number::bytes(counters.rx_bytes as f64),
        number::bytes(counters.tx_bytes as f64),
        counters
            .rx_errors
            .saturating_add(counters.tx_errors)
            .to_string(),
        counters
            .rx_dropped
            .saturating_add(counters.tx_dropped)
            .to_string(),
    ]
}

/// Queueing disciplines that queue.
pub(super) fn queues(run: &Run) -> Table {
    let qdiscs = results(run).flat_map(|host| &host.qdiscs);
    queues_of(qdiscs.filter(|qdisc| qdisc.kind != "noqueue"))
}

/// Those queueing disciplines, and what they counted.
pub(super) fn queues_of<'a>(qdiscs: impl Iterator<Item = &'a Qdisc>) -> Table {
    let mut table = Table::new(
        "Queues",
        &[
            ("", Text),
            ("at", Text),
            ("kind", Text),
            ("sent", Number),
            ("packets", Number),
            ("dropped", Number),
            ("overlimit", Number),
            ("requeued", Number),
            ("waiting", Number),
        ],
    );
    for qdisc in qdiscs {
        table.row([
            qdisc.interface.clone(),
            qdisc.parent.clone(),
            qdisc.kind.clone(),
            number::bytes(qdisc.bytes as f64),
            qdisc.packets.to_string(),
            qdisc.drops.to_string(),
            qdisc.overlimits.to_string(),
            qdisc.requeues.to_string(),
            number::bytes(qdisc.backlog_bytes as f64),
        ]);
    }
    table
}

/// Counters that have counted something worth a look, with what it means.
pub(super) fn counters(run: &Run) -> Table {
    let mut table = Table::new(
        "Counters of loss, refusal and repair since the start",
        &[("", Text), ("", Number), ("", Text), ("", Sentence)],
    );
    for host in results(run) {
        let telling = host.counters.iter().filter(|(_, value)| **value != 0);
        let mut telling: Vec<_> = telling
            .filter_map(|(name, value)| Some((meaning(name)?, *value)))
            .filter(|(counter, _)| matches!(counter.sense, Sense::Bad | Sense::Watch))
            .collect();
        telling.sort_by_key(|(counter, _)| counter.sense != Sense::Bad);
        for (counter, value) in telling {
            table.row([
                counter.name.to_owned(),
                value.to_string(),
                counter.sense.name().to_owned(),
                counter.meaning.to_owned(),
            ]);
        }
    }
    table
}

/// The connections that carried most.
pub(super) fn connections(run: &Run) -> Table {
    let mut table = Table::new(
        "Connections that carried most",
        &[
            ("local", Text),
            ("remote", Text),
            ("owner", Text),
            ("cc", Text),
            ("RTT", Number),
            ("cwnd", Number),
            ("sent", Number),
            ("received", Number),
            ("again", Number),
            ("rwnd", Number),
            ("sndbuf", Number),
        ],
    );
    for host in results(run) {
        for connection in host.sockets.connections.iter().take(MOST_CONNECTIONS) {
            table.row(connection_cells(connection));
        }
        let shown = host.sockets.connections.len().min(MOST_CONNECTIONS);
        let all = (host.sockets.connections.len() as u64)
            .saturating_add(host.sockets.connections_left_out);
        if all > shown as u64 {
            table.note = Some(format!("{shown} of {all}."));
        }
    }
    table
}

fn connection_cells(connection: &Connection) -> [String; 11] {
    let share = |ratio: Option<f64>| ratio.map_or_else(|| ABSENT.to_owned(), number::percent);
    [
        connection.local.clone(),
        connection.remote.clone(),
        owner(connection.owner.as_ref()),
        connection.congestion_control.clone().unwrap_or_default(),
        number::seconds(connection.rtt_s),
        connection.cwnd_segments.to_string(),
        number::bytes(connection.bytes_acked as f64),
        number::bytes(connection.bytes_received as f64),
        connection.retransmits.to_string(),
        share(connection.rwnd_ratio),
        share(connection.sndbuf_ratio),
    ]
}

pub(super) fn owner(owner: Option<&Owner>) -> String {
    owner.map_or_else(String::new, |owner| {
        format!("{} ({})", owner.program, owner.pid)
    })
}

/// Who waits for connections.
pub(super) fn listeners(run: &Run) -> Table {
    let mut table = Table::new(
        "Listening",
        &[
            ("", Text),
            ("owner", Text),
            ("waiting", Number),
            ("at most", Number),
        ],
    );
    for listener in results(run).flat_map(|host| &host.sockets.listeners) {
        table.row([
            listener.local.clone(),
            owner(listener.owner.as_ref()),
            listener.waiting.to_string(),
            listener.backlog.to_string(),
        ]);
    }
    table
}

/// What TCP remembers of other ends.
pub(super) fn cached(run: &Run) -> Table {
    let mut table = Table::new(
        "What TCP remembers of addresses",
        &[
            ("", Text),
            ("RTT", Number),
            ("cwnd", Number),
            ("ssthresh", Number),
            ("age", Number),
        ],
    );
    for host in results(run) {
        for cached in host.cached_metrics.iter().take(MOST_CACHED) {
            let count = |value: Option<u32>| value.map_or_else(String::new, |v| v.to_string());
            let time = |value: Option<f64>| value.map_or_else(String::new, number::seconds);
            table.row([
                cached.remote.clone(),
                time(cached.rtt_s),
                count(cached.cwnd_segments),
                count(cached.ssthresh_segments),
                cached.age_s.map_or_else(String::new, number::length),
            ]);
        }
        let all = host.cached_metrics.len();
        if all > MOST_CACHED {
            table.note = Some(format!("{MOST_CACHED} of {all}."));
        }
    }
    table
}

/// The machine around them.
pub(super) fn machine(run: &Run) -> Table {
    let mut table = Table::new("Machine", &[("", Text), ("", Sentence)]);
    for host in results(run) {
        let mut fact = |name: &str, text: Option<String>| {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                table.row([name.to_owned(), text]);
            }
        };
        let (machine, cpus) = (&host.machine, &host.cpus);
        fact("product", machine.product.clone());
        fact(
            "virtual",
            Some(machine.hypervisor.as_deref().map_or_else(
                || "no hypervisor seen".to_owned(),
                |name| match name {
                    "yes" => "under a hypervisor".to_owned(),
                    name => format!("under {name}"),
                },
            )),
        );
        fact(
            "processors",
            Some(format!(
                "{} × {}",
                cpus.online,
                cpus.model.as_deref().unwrap_or("unknown")
            )),
        );
        fact(
            "memory",
            machine.memory_bytes.map(|b| number::bytes(b as f64)),
        );
        let sockets = &host.sockets;
        let states = sockets
            .tcp_states
            .iter()
            .map(|(state, count)| format!("{count} {state}"));
        fact("TCP sockets", Some(states.collect::<Vec<_>>().join(", ")));
        fact(
            "UDP sockets",
            Some(format!(
                "{}; {} datagrams dropped by those that live",
                sockets.udp, sockets.udp_drops
            )),
        );
        let memory = host.socket_memory;
        fact(
            "memory of sockets",
            memory.tcp_bytes.zip(memory.udp_bytes).map(|(tcp, udp)| {
                format!(
                    "TCP {}, UDP {}",
                    number::bytes(tcp as f64),
                    number::bytes(udp as f64)
                )
            }),
        );
        let clock = &host.clock;
        fact(
            "clock",
            clock.max_error_s.map(|error| {
                format!(
                    "{}, error at most {}",
                    if clock.synchronised == Some(true) {
                        "synchronised"
                    } else {
                        "not synchronised"
                    },
                    number::seconds(error)
                )
            }),
        );
    }
    table
}

pub(super) fn results(run: &Run) -> impl Iterator<Item = &HostResult> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Host(host) => Some(host.as_ref()),
        _ => None,
    })
}
