//! The hops of a path, the ways that it took, and what it does to packets.

use plumb_model::distribution::Distribution;
use plumb_model::results::path::{AlteredField, Balancing, HopAnswers, PathHop, PathResult};
use plumb_model::run::{Measurement, Run};

use super::Kind::{Number, Text};
use super::Table;
use super::way_back::both_ways;
use crate::number::{self, ABSENT, Scale};
use crate::view;

/// The columns of a hop.
const HOP_COLUMNS: [(&str, super::Kind); 13] = [
    ("hop", Number),
    ("address", Text),
    ("name", Text),
    ("AS", Text),
    ("place", Text),
    ("sent", Number),
    ("unanswered", Number),
    ("last", Number),
    ("best", Number),
    ("p50", Number),
    ("worst", Number),
    ("stddev", Number),
    ("", Text),
];

/// Every path's tables.
pub(super) fn tables(run: &Run) -> Vec<Table> {
    let mut tables = Vec::new();
    for (measurement, path) in view::paths(run) {
        tables.push(hops(measurement, path));
        tables.push(both_ways(path));
        tables.push(alterations(path));
        tables.push(routes(path));
        tables.push(changes(path));
        tables.push(multipath(path));
    }
    tables
}

fn hops(measurement: &Measurement, path: &PathResult) -> Table {
    let probes = match path.port {
        Some(port) => format!("{} port {port}", path.protocol.name().to_uppercase()),
        None => path.protocol.name().to_uppercase(),
    };
    let title = format!("The path to {}, by {probes}", path.address);
    let mut table = hop_table(title, &path.hops);
    let mut notes = Vec::new();
    if !path.reached {
        notes.push(format!("{} did not answer.", path.address));
    }
    match &path.loss {
        Some(loss) => {
            let where_ = if loss.earliest_ttl == loss.latest_ttl {
                format!("begins at hop {}", loss.begins_at_ttl)
            } else {
                format!(
                    "begins between hop {} and hop {}",
                    loss.earliest_ttl, loss.latest_ttl
                )
            };
            notes.push(format!(
                "Packets are lost: {} of {} probes to hop {} and beyond ({}, and of all packets at least {}), of those to the \
                 last hop {} of {}; it {where_}.",
                loss.lost_beyond,
                loss.sent_beyond,
                loss.begins_at_ttl,
                number::percent(loss.ratio),
                number::percent(loss.at_least_ratio),
                loss.lost,
                loss.sent
            ));
        }
        None => notes.extend(no_loss(path)),
    }
    let differs = path.changes.iter().map(|change| change.ttl).min();
    if let (Some(first), Some(last)) = (differs, path.changes.last()) {
        notes.push(format!(
            "Round trips from hop {first} on are of the route in use at the end, number {} since {}.",
            last.to_route,
            number::length(last.at_s)
        ));
    }
    if let Some(distance) = &path.distance {
        notes.push(format!(
            "The known places are {} km apart along the path and {} km directly, which light in fibre goes to and fro in {} \
             and {}.",
            kilometres(distance.along_path_m),
            kilometres(distance.direct_m),
            number::seconds(distance.along_light_rtt_s),
            number::seconds(distance.light_rtt_s)
        ));
    }
    if let Some(offer) = &path.syn_ack {
        let mss = offer
            .mss_bytes
            .map_or_else(|| "none".to_owned(), |mss| mss.to_string());
        let has = |yes: bool| if yes { "yes" } else { "no" };
        notes.push(format!(
            "The target's SYN-ACK offers: MSS {mss}, SACK {}, timestamps {}, window scale {}, ECN {}.",
            has(offer.sack),
            has(offer.timestamps),
            has(offer.window_scale.is_some()),
            has(offer.ecn)
        ));
    }
    notes.push(format!(
        "It took {}.",
        number::seconds(measurement.duration_s)
    ));
    table.note = Some(notes.join(" "));
    table
}

/// What probes that were not answered say where no loss was found.
fn no_loss(path: &PathResult) -> Option<String> {
    let unclear = |hop: &&PathHop| hop.answers == HopAnswers::Unclear;
    if let Some(hop) = path.hops.iter().rev().find(unclear) {
        return Some(format!(
            "Whether packets are lost cannot be told: hop {} left {} of {} probes unanswered, as those do that limit \
             their ICMP errors, and nobody beyond it tells.",
            hop.ttl,
            hop.sent - hop.received.min(hop.sent),
            hop.sent
        ));
    }
    let last = path.hops.last().filter(|_| path.reached)?;
    let any = path.hops.iter().any(|hop| hop.unanswered_ratio > 0.0);
    any.then(|| {
        format!(
            "Of the {} probes to the target none was seen to be lost: those unanswered at a hop and answered beyond it \
             were forwarded.",
            last.sent
        )
    })
}

fn kilometres(metres: f64) -> String {
    format!("{:.0}", metres / 1000.0)
}

fn hop_table(title: String, hops: &[PathHop]) -> Table {
    let scale = Scale::seconds(hops.iter().filter_map(|hop| hop.rtt_s.map(|rtt| rtt.p50)));
    let mut table = Table::new(format!("{title}, {}", scale.unit), &HOP_COLUMNS);
    for hop in hops {
        let rtt = |get: fn(&Distribution) -> f64| scale.show(hop.rtt_s.as_ref().map(get));
        let network = match (hop.asn, &hop.as_name) {
            (Some(asn), Some(name)) => format!("AS{asn} {name}"),
            (Some(asn), None) => format!("AS{asn}"),
            _ => String::new(),
        };
        table.row([
            hop.ttl.to_string(),
            hop.address.clone().unwrap_or_else(|| "*".to_owned()),
            hop.name.clone().unwrap_or_default(),
            network,
            hop.place
                .map_or_else(String::new, |place| place.to_string()),
            hop.sent.to_string(),
            number::percent(hop.unanswered_ratio),
            scale.show(hop.last_rtt_s),
            rtt(|d| d.min),
            rtt(|d| d.p50),
            rtt(|d| d.max),
            rtt(|d| d.stddev),
            remarks(hop),
        ]);
    }
    table
}

/// What must be said of a hop.
fn remarks(hop: &PathHop) -> String {
    let mut words: Vec<String> = hop.annotation.iter().cloned().collect();
    for label in &hop.mpls {
        words.push(format!(
            "[MPLS {} TC {} TTL {}]",
            label.label, label.traffic_class, label.ttl
        ));
    }
    if hop.addresses.len() > 1 {
        let others = hop
            .addresses
            .iter()
            .filter(|a| Some(*a) != hop.address.as_ref());
        let others: Vec<&str> = others.map(String::as_str).collect();
        words.push(format!("also {}", others.join(", ")));
    }
    words.extend(hop.notes.iter().cloned());
    words.join("; ")
}

fn alterations(path: &PathResult) -> Table {
    let mut table = Table::new(
        "What the path does to packets",
        &[
            ("what", Text),
            ("sent", Text),
            ("seen", Text),
            ("first seen at hop", Number),
            ("intact at hop", Number),
        ],
    );
    for change in &path.alterations {
        table.row([
            field(change.field).to_owned(),
            change.sent.clone(),
            change.seen.clone(),
            change.seen_at_ttl.to_string(),
            change
                .intact_at_ttl
                .map_or_else(|| ABSENT.to_owned(), |ttl| ttl.to_string()),
        ]);
    }
    table
}

fn field(field: AlteredField) -> &'static str {
    match field {
        AlteredField::Dscp => "DSCP",
        AlteredField::Ecn => "ECN",
        AlteredField::Ttl => "time to live at its end",
        AlteredField::SourceAddress => "source address (NAT)",
        AlteredField::DestinationAddress => "destination address (NAT)",
        AlteredField::Ports => "ports or identifier (NAT)",
        AlteredField::Checksum => "checksum (NAT)",
        AlteredField::Length => "length",
        AlteredField::DontFragment => "don't fragment",
        AlteredField::Mss => "TCP MSS",
        AlteredField::TcpOptions => "TCP options",
        AlteredField::TcpEcn => "TCP's request for ECN",
        AlteredField::AnswerFrom => "address that answers for the target",
    }
}

fn routes(path: &PathResult) -> Table {
    let scale = Scale::seconds(
        path.routes
            .iter()
            .filter_map(|r| r.rtt_s.map(|rtt| rtt.p50)),
    );
    let mut table = Table::new(
        format!("The ways that packets took, {}", scale.unit),
        &[
            ("route", Number),
            ("from", Number),
            ("to", Number),
            ("cycles", Number),
            ("sent", Number),
            ("received", Number),
            ("p50", Number),
            ("worst", Number),
            ("hops", Text),
        ],
    );
    // One way is the table of hops.
    if path.routes.len() < 2 {
        return table;
    }
    for (number, route) in path.routes.iter().enumerate() {
        let hops: Vec<&str> = route
            .addresses
            .iter()
            .map(|a| a.as_deref().unwrap_or("*"))
            .collect();
        table.row([
            number.to_string(),
            number::length(route.first_s),
            number::length(route.last_s),
            route.cycles.to_string(),
            route.sent.to_string(),
            route.received.to_string(),
            scale.show(route.rtt_s.map(|rtt| rtt.p50)),
            scale.show(route.rtt_s.map(|rtt| rtt.max)),
            hops.join(" "),
        ]);
    }
    table
}

fn changes(path: &PathResult) -> Table {
    let mut table = Table::new(
        "Changes of the route",
        &[
            ("when", Text),
            ("after", Number),
            ("route", Text),
            ("from hop", Number),
        ],
    );
    for change in &path.changes {
        table.row([
            change.time.clone().unwrap_or_default(),
            number::length(change.at_s),
            format!("{} → {}", change.from_route, change.to_route),
            change.ttl.to_string(),
        ]);
    }
    table
}

fn multipath(path: &PathResult) -> Table {
    let mut table = Table::new(
        "All ways that flows take",
        &[
            ("hop", Number),
            ("address", Text),
            ("next", Text),
            ("shares", Text),
        ],
    );
    let Some(all) = &path.multipath else {
        return table;
    };
    for node in &all.nodes {
        let name = |address: &Option<String>| address.clone().unwrap_or_else(|| "*".to_owned());
        let next: Vec<String> = node.next.iter().map(name).collect();
        table.row([
            node.ttl.to_string(),
            if node.ttl == 0 {
                "this host".to_owned()
            } else {
                name(&node.address)
            },
            next.join(" "),
            match node.balancing {
                None => String::new(),
                Some(Balancing::PerFlow) => "by flow".to_owned(),
                Some(Balancing::PerPacket) => "by packet".to_owned(),
            },
        ]);
    }
    table.note = Some(format!(
        "At most {} routers side by side; {} probes of {} flows; {} sure at each hop that no router as likely as the others is \
         missing{}. Several lines between the same two routers are not told apart.",
        all.width,
        all.probes,
        all.flows,
        number::percent(all.confidence),
        if all.complete {
            ""
        } else {
            ", and not complete"
        }
    ));
    table
}
