//! Each interface: hardware, driver, link, what it takes over, queues, counters.

use plumb_model::results::host::{
    Bus, Channels, Coalescing, Interface, LinkMode, Module, Offload, Pause, Rings,
};

use crate::number;
use crate::table::{Facts, Table, list, on_off};

pub(super) fn tables(all: &[Interface]) -> Vec<Table> {
    all.iter().map(|interface| table(interface, all)).collect()
}

fn table(interface: &Interface, all: &[Interface]) -> Table {
    let mut facts = Facts::new(format!("Interface {}", interface.name));
    identity(&mut facts, interface, all);
    facts.fact("bus", interface.bus.as_ref().map(bus));
    facts.fact("link", interface.link.as_ref().map(link));
    facts.fact("pause frames", interface.pause.map(pause));
    let energy = interface.energy_efficient;
    facts.fact(
        "energy-efficient Ethernet",
        energy.map(|on| on_off(on).to_owned()),
    );
    facts.fact("module", interface.module.as_ref().map(module));
    offloads(&mut facts, &interface.offloads);
    queues(&mut facts, interface);
    counters(&mut facts, interface);
    facts.into_table()
}

fn identity(facts: &mut Facts, interface: &Interface, all: &[Interface]) {
    let kind = interface.kind.as_ref().unwrap_or(&interface.hardware);
    let physical = if interface.is_paravirtual() {
        "a card that a hypervisor makes"
    } else if interface.is_physical() {
        "hardware"
    } else {
        "virtual"
    };
    facts.fact("kind", format!("{kind}, {physical}"));
    facts.fact("note", interface.alias.clone());
    let carrier = match (interface.up, interface.carrier) {
        (false, _) => "down",
        (true, false) => "up, no carrier",
        (true, true) => "up, with a carrier",
    };
    let changes = interface.carrier_changes;
    facts.fact(
        "state",
        list([
            Some(carrier.to_owned()),
            changes.map(|times| format!("the carrier came or went {times} times")),
        ]),
    );
    facts.fact(
        "part of",
        interface.controller.map(|index| {
            let controller = all.iter().find(|other| other.index == index);
            controller.map_or_else(|| format!("interface {index}"), |other| other.name.clone())
        }),
    );
    facts.fact("addresses", interface.addresses.join(", "));
    facts.fact("neighbours known", interface.neighbours.to_string());
    facts.fact(
        "MTU",
        list([
            Some(format!("{} bytes", interface.mtu_bytes)),
            interface
                .max_mtu_bytes
                .map(|most| format!("at most {most}")),
        ]),
    );
    let firmware = interface.firmware.as_ref();
    facts.fact(
        "driver",
        list([
            interface.driver.clone(),
            firmware.map(|version| format!("firmware {version}")),
        ]),
    );
}

fn bus(bus: &Bus) -> String {
    let speed = bus.speed_bps.map(number::rate);
    let best = bus.best_speed_bps.map(number::rate);
    list([
        Some(match &bus.address {
            Some(address) => format!("{} at {address}", bus.kind),
            None => bus.kind.clone(),
        }),
        speed,
        best.map(|best| format!("in a better slot {best}")),
    ])
}

fn link(link: &LinkMode) -> String {
    let rate =
        |what: &str, bps: Option<f64>| bps.map(|bps| format!("{what} {}", number::rate(bps)));
    list([
        link.speed_bps.map(number::rate),
        link.duplex
            .map(|duplex| format!("{} duplex", duplex.name())),
        link.autonegotiation
            .map(|on| if on { "negotiated" } else { "set by hand" }.to_owned()),
        rate("this end could do", link.best_speed_bps),
        rate("this end offers", link.offered_speed_bps),
        rate("the other end offers", link.partner_speed_bps),
    ])
}

fn pause(pause: Pause) -> String {
    let way = |what: &str, on: bool| Some(format!("{what} {}", on_off(on)));
    list([
        way("receiving", pause.receive),
        way("sending", pause.send),
        way("negotiation", pause.autonegotiation),
    ])
}

fn module(module: &Module) -> String {
    let light = |what: &str, lanes: &[Option<f64>]| {
        let lanes: Vec<_> = lanes.iter().flatten().copied().map(number::plain).collect();
        (!lanes.is_empty()).then(|| format!("{what} {} dBm", lanes.join(" / ")))
    };
    let limit =
        |what: &str, dbm: Option<f64>| dbm.map(|dbm| format!("{what} {} dBm", number::plain(dbm)));
    list([
        Some(module.standard.clone()),
        module
            .temperature_c
            .map(|degrees| format!("{} °C", number::plain(degrees))),
        light("receives", &module.receive_dbm),
        light("sends", &module.send_dbm),
        limit("warns of receiving below", module.receive_low_dbm),
        limit("above", module.receive_high_dbm),
    ])
}

/// What is on, what is off, and what of it the driver has fixed.
fn offloads(facts: &mut Facts, offloads: &[Offload]) {
    let named = |wanted: fn(&Offload) -> bool| {
        let names = offloads.iter().filter(|offload| wanted(offload));
        let names: Vec<_> = names.map(|offload| offload.name.as_str()).collect();
        names.join(", ")
    };
    facts.fact("offloads on", named(|o| o.on && !o.fixed));
    facts.fact("offloads on, fixed", named(|o| o.on && o.fixed));
    facts.fact("offloads off", named(|o| !o.on && !o.fixed));
    facts.fact("offloads off, fixed", named(|o| !o.on && o.fixed));
}

fn queues(facts: &mut Facts, interface: &Interface) {
    facts.fact("rings", interface.rings.map(rings));
    facts.fact("hardware queues", interface.channels.map(channels));
    facts.fact("coalescing", interface.coalescing.map(coalescing));
    let length = interface.tx_queue_packets;
    facts.fact(
        "txqueuelen",
        length.map(|packets| format!("{packets} packets")),
    );
    facts.fact(
        "pieces (GSO)",
        list([
            interface
                .gso_max_bytes
                .map(|bytes| format!("at most {bytes} bytes")),
            interface
                .gso_max_segments
                .map(|segments| format!("{segments} segments")),
        ]),
    );
    let limits = interface.byte_limits.iter().map(|limit| {
        let most = limit.limit_max_bytes.map_or_else(String::new, |most| {
            format!(", at most {}", number::bytes(most as f64))
        });
        format!(
            "tx-{} {} bytes, {} in flight{most}",
            limit.queue, limit.limit_bytes, limit.inflight_bytes
        )
    });
    facts.fact("driver queue (BQL)", limits.collect::<Vec<_>>().join("; "));
    let steering = interface.steering.iter().map(|steering| {
        let flows = steering
            .flows
            .map_or_else(String::new, |flows| format!(", {flows} flows"));
        format!("{} mask {}{flows}", steering.queue, steering.cpus)
    });
    facts.fact(
        "steering (RPS, XPS, RFS)",
        steering.collect::<Vec<_>>().join("; "),
    );
}

fn rings(rings: Rings) -> String {
    format!(
        "receive {} of at most {}, send {} of at most {}",
        rings.receive_packets,
        rings.receive_max_packets,
        rings.send_packets,
        rings.send_max_packets
    )
}

fn channels(channels: Channels) -> String {
    let some = |count: u32, what: &str| (count > 0).then(|| format!("{count} {what}"));
    list([
        Some(format!(
            "{} of at most {} combined",
            channels.combined, channels.combined_max
        )),
        some(channels.receive, "only receive"),
        some(channels.send, "only send"),
    ])
}

fn coalescing(c: Coalescing) -> String {
    let adaptive = match (c.adaptive_receive, c.adaptive_receive_possible) {
        (true, _) => "on",
        (false, Some(false)) => "not possible",
        (false, _) => "off",
    };
    format!(
        "receive after {} or {} packets, adaptive {adaptive}; send after {} or {} packets, adaptive {}",
        number::seconds(c.receive_s),
        c.receive_packets,
        number::seconds(c.send_s),
        c.send_packets,
        on_off(c.adaptive_send)
    )
}

/// Traffic, errors and drops, and what the driver counts of its own.
fn counters(facts: &mut Facts, interface: &Interface) {
    let counters = &interface.counters;
    let traffic =
        |bytes: u64, packets: u64| format!("{} in {packets} packets", number::bytes(bytes as f64));
    facts.fact("received", traffic(counters.rx_bytes, counters.rx_packets));
    facts.fact("sent", traffic(counters.tx_bytes, counters.tx_packets));
    let others = counters.named();
    let others = others
        .iter()
        .filter(|(name, _)| !name.ends_with("_packets") && !name.ends_with("_bytes"));
    let counted: Vec<_> = others
        .clone()
        .filter(|(_, value)| *value > 0)
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    facts.fact(
        "errors and drops",
        if counted.is_empty() {
            format!("none: {} counters are 0", others.count())
        } else {
            counted.join(", ")
        },
    );
    let own = interface.driver_counters.iter();
    let own: Vec<_> = own.map(|(name, value)| format!("{name} {value}")).collect();
    facts.fact("the driver's own", own.join(", "));
}
