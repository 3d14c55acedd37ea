//! The hops of a path, the routes that it took, and what it does to packets.

mod both_directions;
mod chart;
mod on_map;

use plumb_model::context::Phase;
use plumb_model::results::path::{
    ArrivedMarks, Balancing, HopAnswers, MarksBetweenEnds, PathHop, PathResult,
};
use plumb_model::run::{Measurement, Run};

use crate::compare::quantity::{ChangeUnit, Quantities, Quantity, RTT};
use crate::map::Map;
use crate::number::{self, Scale};
use crate::registry::all;
use crate::show::{Chart, ChartGroup, Ends, Place, Show, Tables};
use crate::table::{P50, Table, blank};

impl Show for PathResult {
    /// The tables of each path stand together.
    fn tables(&self, run: &Run, tables: &mut Tables) {
        for found in all::<Self>(run) {
            let path = found.result;
            let back = path.way_back.as_deref().zip(path.symmetry.as_ref());
            let back =
                back.map(|(back, symmetry)| both_directions::table(&path.hops, back, symmetry));
            tables.add(Place::Path, [hops(found.measurement, path)]);
            tables.add(Place::Path, back);
            tables.add(
                Place::Path,
                [alterations(path), changes(path), multipath(path)],
            );
            tables.detail(Place::Path, [routes(path)]);
        }
    }

    fn sentences(&self, run: &Run) -> Vec<String> {
        all::<Self>(run)
            .map(|found| sentence(found.result))
            .collect()
    }

    fn bears(&self) -> Ends {
        Ends::CLOCK_SOURCE
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        let target = self.hops.last().filter(|_| self.reached);
        let count = self.reached.then_some(self.hops.len() as f64);
        Quantities::of(phase, "path".to_owned())
            .time(RTT, target.and_then(|hop| hop.rtt_s.as_ref()))
            .number("hops", ChangeUnit::Count, count)
            .found
    }

    fn on_map(&self, map: &mut Map) {
        on_map::of(&self.hops, self.loss.as_ref(), self.reached, map);
    }

    fn chart(&self, measurement: &Measurement, _phase: Phase) -> Option<Chart> {
        Some(Chart {
            group: ChartGroup::Hops,
            of: None,
            svg: chart::render(measurement, &self.hops)?,
        })
    }
}

/// The paths of a Run, for the forms of other programs.
pub(crate) fn paths(run: &Run) -> impl Iterator<Item = (&Measurement, &PathResult)> {
    all(run).map(|found| (found.measurement, found.result))
}

/// How far the target is, and whether packets are lost.
fn sentence(path: &PathResult) -> String {
    let loss = match &path.loss {
        Some(loss) => format!(
            "{} of {} probes to hop {} and beyond were lost",
            loss.lost_beyond, loss.sent_beyond, loss.begins_at_ttl
        ),
        None => match path
            .hops
            .last()
            .filter(|hop| path.reached && hop.received < hop.sent)
        {
            Some(hop) => format!(
                "{} of {} probes to it were not answered, too few to say from which hop on",
                hop.sent.saturating_sub(hop.received),
                hop.sent
            ),
            None => "none of the probes to it was lost".to_owned(),
        },
    };
    let last = path.hops.last().filter(|_| path.reached);
    match last.and_then(|hop| Some((hop.ttl, hop.rtt_s?.p50))) {
        Some((hops, rtt_s)) => format!(
            "{} answers at hop {hops} in {} (median); {loss}.",
            path.address,
            number::seconds(rtt_s)
        ),
        None => format!("{} did not answer; {loss}.", path.address),
    }
}

fn hops(measurement: &Measurement, path: &PathResult) -> Table {
    let probes = match path.port {
        Some(port) => format!("{} port {port}", path.protocol.name().to_uppercase()),
        None => path.protocol.name().to_uppercase(),
    };
    let title = format!("The path to {}, by {probes}", path.address);
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
    notes.extend(path.marks.as_ref().map(marks_between_ends));
    notes.push(format!(
        "It took {}.",
        number::seconds(measurement.duration_s)
    ));
    hop_table(&title, &path.hops, notes)
}

/// With which marks packets arrive at the far end, and their replies here.
fn marks_between_ends(marks: &MarksBetweenEnds) -> String {
    let arrived = |all: &[ArrivedMarks]| {
        let count: u64 = all.iter().map(|of| of.packets).sum();
        let changed = all.iter().filter_map(|of| {
            let cleared = of.sent_ecn.filter(|sent| *sent != of.ecn);
            let ecn = cleared.map(|sent| format!("{} for {}", of.ecn.shown(), sent.shown()));
            let dscp = (of.dscp != marks.dscp).then(|| format!("DSCP {}", of.dscp));
            let words: Vec<String> = dscp.into_iter().chain(ecn).collect();
            (!words.is_empty()).then(|| format!("{} with {}", of.packets, words.join(" and ")))
        });
        let changed: Vec<String> = changed.collect();
        match changed.as_slice() {
            [] if count == 0 => "0".to_owned(),
            [] => format!("{count} as they were sent"),
            _ => format!("{count}, of them {}", changed.join(", ")),
        }
    };
    format!(
        "Of {} packets with DSCP {}, with ECT(0) or ECT(1), the far end received {}; of replies with that DSCP this host received {}.",
        marks.sent,
        marks.dscp,
        arrived(&marks.up),
        arrived(&marks.down)
    )
}

/// What probes that were not answered say where no loss was found.
fn no_loss(path: &PathResult) -> Option<String> {
    let unclear = |hop: &&PathHop| hop.answers == HopAnswers::Unclear;
    if let Some(hop) = path.hops.iter().rev().find(unclear) {
        return Some(format!(
            "Whether packets are lost is unknown: hop {} left {} of {} probes unanswered, as those do that limit \
             their ICMP errors, and no hop beyond it shows it.",
            hop.ttl,
            hop.sent - hop.received.min(hop.sent),
            hop.sent
        ));
    }
    let too_few = |hop: &&PathHop| hop.answers == HopAnswers::TooFew;
    if let Some(hop) = path.hops.iter().rev().find(too_few) {
        return Some(format!(
            "Too few probes to show whether packets are lost: hop {} left {} of {} unanswered, and those beyond it \
             none. More cycles (-c) show it.",
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

fn hop_table(title: &str, hops: &[PathHop], notes: Vec<String>) -> Table {
    let scale = Scale::seconds(hops.iter().filter_map(|hop| hop.rtt_s.map(|rtt| rtt.p50)));
    Table::of(format!("{title}, {}", scale.unit), hops)
        .num("hop", |hop| hop.ttl)
        .text("address", |hop| hop.address.as_deref().unwrap_or("*"))
        .text("name", |hop| blank(hop.name.as_ref()))
        .text("AS", |hop| match (hop.asn, &hop.as_name) {
            (Some(asn), Some(name)) => format!("AS{asn} {name}"),
            (Some(asn), None) => format!("AS{asn}"),
            _ => String::new(),
        })
        .text("place", |hop| {
            blank(hop.place.map(|place| place.to_string()))
        })
        .num("sent", |hop| hop.sent)
        .num("unanswered", |hop| number::percent(hop.unanswered_ratio))
        .num("last", |hop| scale.show(hop.last_rtt_s))
        .figures(
            [
                ("best", |d| d.min),
                P50,
                ("worst", |d| d.max),
                ("stddev", |d| d.stddev),
            ],
            |hop| hop.rtt_s,
            |v| scale.show(v),
        )
        .text("", |hop| remarks(hop))
        .noting(notes)
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
    Table::of("What the path changes in packets", &path.alterations)
        .text("what", |change| change.field.shown())
        .text("sent", |change| change.sent.clone())
        .text("seen", |change| change.seen.clone())
        .num("first seen at hop", |change| change.seen_at_ttl)
        .num("intact at hop", |change| change.intact_at_ttl)
        .done()
}

fn routes(path: &PathResult) -> Table {
    let typical = path.routes.iter();
    let scale = Scale::seconds(typical.filter_map(|r| r.rtt_s.map(|rtt| rtt.p50)));
    // One is the table of hops.
    let several = path.routes.iter().filter(|_| path.routes.len() > 1);
    Table::of(
        format!("Routes that packets took, {}", scale.unit),
        several.enumerate(),
    )
    .num("route", |(number, _)| *number)
    .num("from", |(_, route)| number::length(route.first_s))
    .num("to", |(_, route)| number::length(route.last_s))
    .num("cycles", |(_, route)| route.cycles.to_string())
    .num("sent", |(_, route)| route.sent.to_string())
    .num("received", |(_, route)| route.received.to_string())
    .num("p50", |(_, route)| scale.show(route.rtt_s.map(|d| d.p50)))
    .num("worst", |(_, route)| scale.show(route.rtt_s.map(|d| d.max)))
    .text("hops", |(_, route)| {
        let hops = route.addresses.iter();
        let hops: Vec<&str> = hops.map(|a| a.as_deref().unwrap_or("*")).collect();
        hops.join(" ")
    })
    .done()
}

fn changes(path: &PathResult) -> Table {
    Table::of("Changes of the route", &path.changes)
        .text("when", |change| blank(change.time.as_ref()))
        .num("after", |change| number::length(change.at_s))
        .text("route", |change| {
            format!("{} → {}", change.from_route, change.to_route)
        })
        .num("from hop", |change| change.ttl)
        .done()
}

fn multipath(path: &PathResult) -> Table {
    let all = path.multipath.as_ref();
    let name = |address: &Option<String>| address.clone().unwrap_or_else(|| "*".to_owned());
    let note = all.map(|all| {
        format!(
            "At most {} routers side by side; {} probes of {} flows; {} sure at each hop that no router as likely as the others is \
             missing{}. Several lines between the same two routers are not distinguished.",
            all.width,
            all.probes,
            all.flows,
            number::percent(all.confidence),
            if all.complete { "" } else { ", and not complete" }
        )
    });
    Table::of(
        "All paths that flows take",
        all.iter().flat_map(|all| &all.nodes),
    )
    .num("hop", |node| node.ttl)
    .text("address", |node| match node.ttl {
        0 => "this host".to_owned(),
        _ => name(&node.address),
    })
    .text("next", |node| {
        let next: Vec<String> = node.next.iter().map(name).collect();
        next.join(" ")
    })
    .text("shares", |node| match node.balancing {
        None => "",
        Some(Balancing::PerFlow) => "by flow",
        Some(Balancing::PerPacket) => "by packet",
    })
    .noting(note)
}
