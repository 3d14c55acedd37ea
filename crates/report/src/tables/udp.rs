//! What became of the datagrams of UDP streams.

use plumb_model::distribution::Distribution;
use plumb_model::results::udp::{UdpReceiver, UdpResult};
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::{Table, or_absent};
use crate::number;
use crate::view::{self, Phase};

/// Every stream with the name of its row.
fn rows(run: &Run) -> Vec<(String, &UdpResult)> {
    let several = view::udp(run).any(|(_, udp)| udp.stream > 0);
    view::udp(run)
        .map(|(measurement, udp)| {
            let flow = view::flow_in_phase(Phase::of(measurement), udp.direction);
            let name = if several {
                format!("{flow} {}", udp.stream)
            } else {
                flow
            };
            (name, udp)
        })
        .collect()
}

/// What was sent and what came.
pub(super) fn packets(run: &Run) -> Table {
    let mut table = Table::new(
        "UDP",
        &[
            ("", Text),
            ("received", Number),
            ("asked", Number),
            ("packets", Number),
            ("lost", Number),
            ("loss", Number),
            ("here", Number),
            ("dup", Number),
            ("reordered", Number),
            ("CE", Number),
            ("late p99", Number),
            ("missed", Number),
            ("trains", Text),
        ],
    );
    for (name, udp) in rows(run) {
        let sender = udp.sender.as_ref();
        let receiver = udp.receiver.as_ref();
        let count = |value: Option<u64>| or_absent(value, |v| v.to_string());
        table.row([
            name,
            or_absent(udp.bps, number::rate),
            udp.asked_bps.map_or_else(|| "max".to_owned(), number::rate),
            count(sender.map(|s| s.sent)),
            count(receiver.map(|r| r.lost)),
            or_absent(receiver, |r| number::percent(r.path_loss_ratio())),
            or_absent(receiver, |r| here(udp, r)),
            count(receiver.map(|r| r.duplicates)),
            count(receiver.map(|r| r.reordering.reordered)),
            count(receiver.map(|r| r.ecn.ce)),
            or_absent(sender.and_then(|s| s.lateness_s), |d| {
                number::seconds(d.p99)
            }),
            count(sender.map(|s| s.missed + s.refused)),
            trains(udp),
        ]);
    }
    table.note = (!table.rows.is_empty()).then(|| {
        "Payload; lost: packets sent and never received, of them 'here' dropped by the receiving socket (≤: at most, where it took trains); loss: the others, lost on the path; late: departures against the schedule; missed: left out because the sender was late."
            .to_owned()
    });
    table
}

/// Packets that the receiving socket dropped; of trains, as many as they can have been.
fn here(udp: &UdpResult, receiver: &UdpReceiver) -> String {
    let packets = receiver.lost_here();
    let bound = if udp.gro && packets > 0 { "≤ " } else { "" };
    format!("{bound}{packets}")
}

fn trains(udp: &UdpResult) -> String {
    match (udp.gso_segments, udp.gro) {
        (0 | 1, false) => String::new(),
        (0 | 1, true) => "GRO".to_owned(),
        (segments, gro) => format!("GSO {segments}{}", if gro { ", GRO" } else { "" }),
    }
}

/// How long packets took, and by how much that varied.
pub(super) fn delays(run: &Run) -> Table {
    let mut table = Table::new(
        "UDP delay and its variation",
        &[
            ("", Text),
            ("one way p50", Number),
            ("p99", Number),
            ("known to", Number),
            ("jitter", Number),
            ("IPDV p99", Number),
            ("PDV p50", Number),
            ("PDV p99", Number),
            ("PDV max", Number),
        ],
    );
    for (name, udp) in rows(run) {
        let Some(receiver) = udp.receiver.as_ref().filter(|r| r.pdv_s.is_some()) else {
            continue;
        };
        let time = |d: Option<Distribution>, of: fn(&Distribution) -> f64| {
            or_absent(d, |d| number::seconds(of(&d)))
        };
        let one_way = udp.one_way_delay.map(|d| d.delay_s);
        table.row([
            name,
            time(one_way, |d| d.p50),
            time(one_way, |d| d.p99),
            or_absent(udp.one_way_delay, |d| {
                format!("±{}", number::seconds(d.uncertainty_s))
            }),
            time(receiver.jitter_s, |d| d.mean),
            time(receiver.ipdv_s, |d| d.p99),
            time(receiver.pdv_s, |d| d.p50),
            time(receiver.pdv_s, |d| d.p99),
            time(receiver.pdv_s, |d| d.max),
        ]);
    }
    table.note = (!table.rows.is_empty()).then(|| {
        "Jitter: RFC 3550, mean. IPDV: against the packet sent before; PDV: against the smallest delay (RFC 5481)."
            .to_owned()
    });
    table
}

/// How losses and overtaking follow each other, where there were any.
pub(super) fn order(run: &Run) -> Table {
    let mut table = Table::new(
        "UDP losses and reordering",
        &[
            ("", Text),
            ("loss periods", Number),
            ("mean length", Number),
            ("longest", Number),
            ("median distance", Number),
            ("reordered", Number),
            ("extent p50", Number),
            ("extent max", Number),
            ("late by max", Number),
        ],
    );
    for (name, udp) in rows(run) {
        let Some(receiver) = udp
            .receiver
            .as_ref()
            .filter(|r| r.lost > 0 || r.reordering.reordered > 0)
        else {
            continue;
        };
        let plain = |d: Option<Distribution>, of: fn(&Distribution) -> f64| {
            or_absent(d, |d| number::plain(of(&d)))
        };
        let (losses, reordering) = (&receiver.losses, &receiver.reordering);
        table.row([
            name,
            losses.periods.to_string(),
            plain(losses.period_length, |d| d.mean),
            plain(losses.period_length, |d| d.max),
            plain(losses.distance, |d| d.p50),
            number::percent(reordering.reordered_ratio),
            plain(reordering.extent, |d| d.p50),
            plain(reordering.extent, |d| d.max),
            or_absent(reordering.late_s, |d| number::seconds(d.max)),
        ]);
    }
    table.note = (!table.rows.is_empty()).then(|| {
        "Loss periods and distances: RFC 3357; reordering and its extent in packets: RFC 4737."
            .to_owned()
    });
    table
}
