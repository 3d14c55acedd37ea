//! This machine in short: what was looked at, its interfaces, its counters, its sockets. All that was
//! read of it is in `host_sections.rs`.

use plumb_model::counter::{Counter, Sense, meaning};
use plumb_model::order::sort_few;
use plumb_model::results::host::{
    CachedMetrics, CheckState, HostResult, Interface, Listener, Owner, Qdisc,
};
use plumb_model::run::Run;

use crate::map::{Map, note};
use crate::number;
use crate::registry::results;
use crate::show::{Place, Show, Tables};
use crate::table::{Facts, Table, blank, list};

/// Connections that are shown; the Run has more.
const MOST_CONNECTIONS: usize = 10;

/// Addresses of which TCP remembers something that are shown.
const MOST_CACHED: usize = 5;

impl Show for HostResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = hosts(run).collect();
        let qdiscs = all.iter().flat_map(|host| &host.qdiscs);
        let interfaces = all.iter().flat_map(|host| &host.interfaces);
        tables.detail(
            Place::Machine,
            [
                audit(&all),
                counters(&all),
                self::interfaces(interfaces),
                queues(qdiscs.filter(|qdisc| qdisc.kind != "noqueue")),
                connections(&all),
                listeners(all.iter().flat_map(|host| &host.sockets.listeners)),
                cached(&all),
                machine(&all),
            ],
        );
    }

    fn on_map(&self, map: &mut Map) {
        note(&mut map.here, self.machine.product.clone());
        note(&mut map.here, self.cpus.model.clone());
        let in_use = self.interfaces.iter().filter(|each| each.is_in_use());
        for interface in in_use {
            note(&mut map.link, on_map(interface));
        }
    }

    /// What could not be read; how much is fine the headline says.
    fn sentences(&self, run: &Run) -> Vec<String> {
        let checks = hosts(run).flat_map(|host| &host.audit);
        let unknown = checks.filter(|check| check.state == CheckState::Unknown);
        let unknown: Vec<&str> = unknown.map(|check| check.subject.as_str()).collect();
        let unknown =
            (!unknown.is_empty()).then(|| format!("Could not read: {}.", unknown.join(", ")));
        unknown.into_iter().collect()
    }
}

/// An interface in a line.
fn on_map(interface: &Interface) -> String {
    let link = interface.link.as_ref();
    let wifi = interface.wifi.as_ref();
    list([
        Some(interface.name.clone()),
        wifi.map(|_| "Wi-Fi".to_owned()),
        wifi.and_then(|wifi| wifi.send.as_ref()?.bps)
            .map(|bps| format!("sends at {}", number::rate(bps))),
        wifi.and_then(|wifi| wifi.signal_dbm)
            .map(|dbm| format!("signal {} dBm", number::plain(dbm.into()))),
        link.and_then(|link| link.speed_bps).map(number::rate),
        link.and_then(|link| link.duplex)
            .map(|duplex| format!("{} duplex", duplex.name())),
        Some(format!("MTU {} B", interface.mtu_bytes)),
    ])
}

/// The machines of a Run.
pub(crate) fn hosts(run: &Run) -> impl Iterator<Item = &HostResult> {
    results(run)
}

/// What is fine, and what is not known; the findings stand above.
fn audit(all: &[&HostResult]) -> Table {
    let checks = all.iter().flat_map(|host| &host.audit);
    let told = checks.filter_map(|check| {
        let state = match check.state {
            CheckState::Fine => "fine",
            CheckState::Unknown => "not known",
            // Said in full by its finding.
            CheckState::Found => return None,
        };
        Some((state, check))
    });
    Table::of("Looked at", told)
        .text("", |(state, _)| *state)
        .text("", |(_, check)| check.subject.clone())
        .sentence("", |(_, check)| check.summary.clone())
        .done()
}

fn interfaces<'a>(all: impl Iterator<Item = &'a Interface>) -> Table {
    Table::of("Interfaces", all)
        .text("", |i| i.name.clone())
        .text("kind", |i| {
            i.kind.clone().unwrap_or_else(|| i.hardware.clone())
        })
        .text("driver", |i| blank(i.driver.as_ref()))
        .text("bus", |i| {
            blank(i.bus.as_ref().map(|bus| match bus.speed_bps {
                Some(bps) => format!("{} {}", bus.kind, number::rate(bps)),
                None => bus.kind.clone(),
            }))
        })
        .text("link", |i| link(i))
        .num("MTU", |i| i.mtu_bytes.to_string())
        .num("rings rx/tx", |i| {
            blank(
                i.rings
                    .map(|r| format!("{}/{}", r.receive_packets, r.send_packets)),
            )
        })
        .num("queues", |i| {
            let steering = i.steering.iter();
            steering.filter(|s| s.queue.starts_with("rx-")).count()
        })
        .num("GSO max", |i| {
            blank(i.gso_max_bytes.map(|b| number::bytes(b.into())))
        })
        .num("received", |i| number::bytes(i.counters.rx_bytes as f64))
        .num("sent", |i| number::bytes(i.counters.tx_bytes as f64))
        .num("errors", |i| {
            i.counters.rx_errors.saturating_add(i.counters.tx_errors)
        })
        .num("dropped", |i| {
            i.counters.rx_dropped.saturating_add(i.counters.tx_dropped)
        })
        .done()
}

/// Why an interface carries nothing, or how fast its link is.
fn link(interface: &Interface) -> String {
    match (interface.up, interface.carrier) {
        (false, _) => "down".to_owned(),
        (true, false) => "no carrier".to_owned(),
        (true, true) => blank(interface.link.as_ref().and_then(|link| {
            let speed = number::rate(link.speed_bps?);
            Some(match link.duplex {
                Some(duplex) => format!("{speed} {}", duplex.name()),
                None => speed,
            })
        })),
    }
}

/// Queueing disciplines, and what they counted.
pub(crate) fn queues<'a>(qdiscs: impl Iterator<Item = &'a Qdisc>) -> Table {
    Table::of("Queues", qdiscs)
        .text("", |qdisc| qdisc.interface.clone())
        .text("at", |qdisc| qdisc.parent.clone())
        .text("kind", |qdisc| qdisc.kind.clone())
        .num("sent", |qdisc| number::bytes(qdisc.bytes as f64))
        .num("packets", |qdisc| qdisc.packets.to_string())
        .num("dropped", |qdisc| qdisc.drops.to_string())
        .num("overlimit", |qdisc| qdisc.overlimits.to_string())
        .num("requeued", |qdisc| qdisc.requeues.to_string())
        .num("waiting", |qdisc| number::bytes(qdisc.backlog_bytes as f64))
        .done()
}

/// Counters that have counted something worth a look, with what it means.
fn counters(all: &[&HostResult]) -> Table {
    let of = |host: &&HostResult| -> Vec<(&Counter, i64)> {
        let telling = host.counters.iter().filter(|(_, value)| **value != 0);
        let mut telling: Vec<_> = telling
            .filter_map(|(name, value)| Some((meaning(name)?, *value)))
            .filter(|(counter, _)| matches!(counter.sense, Sense::Bad | Sense::Watch))
            .collect();
        sort_few(&mut telling, |(a, _), (b, _)| {
            (a.sense != Sense::Bad).cmp(&(b.sense != Sense::Bad))
        });
        telling
    };
    Table::of("Error counters since boot", all.iter().flat_map(of))
        .text("", |(counter, _)| counter.name)
        .num("", |(_, value)| *value)
        .text("", |(counter, _)| counter.sense.name())
        .sentence("", |(counter, _)| counter.meaning)
        .done()
}

/// The connections that carried most.
fn connections(all: &[&HostResult]) -> Table {
    let shown = all
        .iter()
        .flat_map(|host| host.sockets.connections.iter().take(MOST_CONNECTIONS));
    let share = |ratio: Option<f64>| ratio.map(number::percent);
    let mut more = all.iter().filter_map(|host| {
        let read = host.sockets.connections.len();
        let all = (read as u64).saturating_add(host.sockets.connections_left_out);
        let shown = read.min(MOST_CONNECTIONS);
        (all > shown as u64).then(|| format!("{shown} of {all}."))
    });
    Table::of("Connections that carried most", shown)
        .text("local", |c| c.local.clone())
        .text("remote", |c| c.remote.clone())
        .text("owner", |c| owner(c.owner.as_ref()))
        .text("cc", |c| blank(c.congestion_control.as_ref()))
        .num("RTT", |c| number::seconds(c.rtt_s))
        .num("cwnd", |c| c.cwnd_segments.to_string())
        .num("sent", |c| number::bytes(c.bytes_acked as f64))
        .num("received", |c| number::bytes(c.bytes_received as f64))
        .num("again", |c| c.retransmits.to_string())
        .num("rwnd", |c| share(c.rwnd_ratio))
        .num("sndbuf", |c| share(c.sndbuf_ratio))
        .noting(more.next_back())
}

pub(crate) fn owner(owner: Option<&Owner>) -> String {
    owner.map_or_else(String::new, |owner| {
        format!("{} ({})", owner.program, owner.pid)
    })
}

/// Who waits for connections.
pub(crate) fn listeners<'a>(all: impl Iterator<Item = &'a Listener>) -> Table {
    Table::of("Listening", all)
        .text("", |listener| listener.local.clone())
        .text("owner", |listener| owner(listener.owner.as_ref()))
        .num("waiting", |listener| listener.waiting.to_string())
        .num("at most", |listener| listener.backlog.to_string())
        .done()
}

/// What TCP remembers of other ends.
fn cached(all: &[&HostResult]) -> Table {
    let shown = all
        .iter()
        .flat_map(|host| host.cached_metrics.iter().take(MOST_CACHED));
    let mut more = all
        .iter()
        .map(|host| host.cached_metrics.len())
        .filter(|all| *all > MOST_CACHED);
    Table::of("What TCP remembers of addresses", shown)
        .text("", |cached: &&CachedMetrics| cached.remote.clone())
        .num("RTT", |cached| blank(cached.rtt_s.map(number::seconds)))
        .num("cwnd", |cached| blank(cached.cwnd_segments))
        .num("ssthresh", |cached| blank(cached.ssthresh_segments))
        .num("age", |cached| blank(cached.age_s.map(number::length)))
        .noting(
            more.next_back()
                .map(|all| format!("{MOST_CACHED} of {all}.")),
        )
}

/// The machine around them.
pub(crate) fn machine(all: &[&HostResult]) -> Table {
    let mut facts = Facts::new("Machine");
    for host in all {
        let (machine, cpus) = (&host.machine, &host.cpus);
        facts.fact("product", machine.product.clone());
        facts.fact(
            "virtual",
            Some(machine.hypervisor.as_deref().map_or_else(
                || "no hypervisor seen".to_owned(),
                |name| match name {
                    "yes" => "under a hypervisor".to_owned(),
                    name => format!("under {name}"),
                },
            )),
        );
        facts.fact(
            "processors",
            Some(format!(
                "{} × {}",
                cpus.online,
                cpus.model.as_deref().unwrap_or("unknown")
            )),
        );
        facts.fact(
            "memory",
            machine.memory_bytes.map(|b| number::bytes(b as f64)),
        );
        let sockets = &host.sockets;
        let states = sockets
            .tcp_states
            .iter()
            .map(|(state, count)| format!("{count} {state}"));
        facts.fact("TCP sockets", Some(states.collect::<Vec<_>>().join(", ")));
        facts.fact(
            "UDP sockets",
            Some(format!(
                "{}; {} datagrams dropped by those that live",
                sockets.udp, sockets.udp_drops
            )),
        );
        let memory = host.socket_memory;
        facts.fact(
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
        facts.fact(
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
    facts.into_table()
}
