//! What round-trip probes saw beyond their times: how the probing went, sizes, losses.

use std::collections::BTreeMap;

use plumb_model::results::{Outcome, PingResult, TimestampSource};
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::{self, ABSENT, Scale};
use crate::view::{self, Phase};

/// How well the probing itself went.
pub(super) fn probes(run: &Run) -> Table {
    let mut table = Table::new(
        "Probes",
        &[
            ("", Text),
            ("probe", Text),
            ("sent", Number),
            ("answered", Number),
            ("dup", Number),
            ("reord", Number),
            ("late", Number),
            ("TTL", Text),
            ("answers", Text),
            ("unsent", Number),
            ("dropped", Number),
            ("late p99", Number),
            ("stamps", Text),
        ],
    );
    for (measurement, ping) in view::pings(run) {
        table.row([
            Phase::of(measurement).title().to_owned(),
            ping.protocol.name().to_owned(),
            ping.sent.to_string(),
            ping.received.to_string(),
            ping.duplicates.to_string(),
            ping.reordered.to_string(),
            some(ping.late),
            hop_limits(ping),
            answers(&ping.answers),
            ping.send_errors.to_string(),
            ping.dropped_here.to_string(),
            ping.lateness_s
                .map_or_else(|| ABSENT.to_owned(), |d| number::seconds(d.p99)),
            match ping.timestamps {
                TimestampSource::Kernel => "kernel".to_owned(),
                TimestampSource::User => "user".to_owned(),
            },
        ]);
    }
    table
}

/// A count that is only worth a column where it is not zero.
fn some(count: u64) -> String {
    match count {
        0 => String::new(),
        count => count.to_string(),
    }
}

/// What the answers were, by how often.
pub(super) fn answers(answers: &BTreeMap<String, u64>) -> String {
    let each = answers.iter();
    each.map(|(what, times)| format!("{what} ×{times}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The hop limits that answers bore, and how often that changed.
fn hop_limits(ping: &PingResult) -> String {
    let mut text = match ping.hop_limits.as_slice() {
        [] => return String::new(),
        [only] => only.hop_limit.to_string(),
        [first, .., last] => format!("{}–{}", first.hop_limit, last.hop_limit),
    };
    match ping.hop_limit_changes {
        0 => {}
        1 => text.push_str(", 1 change"),
        changes => text.push_str(&format!(", {changes} changes")),
    }
    text
}

/// Whether nothing but probes was measured, so that there is room to say more of them.
fn nothing_else(run: &Run) -> bool {
    run.measurements
        .iter()
        .all(|m| matches!(m.outcome, Outcome::Ping(_)))
}

/// The figures that ping prints, and more of them.
pub(super) fn spread(run: &Run) -> Table {
    let rows = || view::pings(run).filter_map(|(_, ping)| ping.rtt_s.map(|rtt| (ping, rtt)));
    let scale = Scale::seconds(
        rows()
            .map(|(_, rtt)| rtt.p50)
            .collect::<Vec<_>>()
            .into_iter(),
    );
    let mut table = Table::new(
        format!("Spread of the round trips, {}", scale.unit),
        &[
            ("", Text),
            ("min", Number),
            ("p5", Number),
            ("p25", Number),
            ("mean", Number),
            ("p75", Number),
            ("max", Number),
            ("deviation", Number),
        ],
    );
    if nothing_else(run) {
        for (ping, rtt) in rows() {
            let name = ping.protocol.name().to_owned();
            let figures = [
                rtt.min, rtt.p5, rtt.p25, rtt.mean, rtt.p75, rtt.max, rtt.stddev,
            ];
            table.row(
                [name]
                    .into_iter()
                    .chain(figures.map(|value| scale.show(Some(value)))),
            );
        }
    }
    table
}

/// The parts of requests over connections of their own.
pub(super) fn phases(run: &Run) -> Table {
    let parts = || {
        let phases = view::pings(run).filter_map(|(_, ping)| Some((ping, ping.phases.as_deref()?)));
        phases.flat_map(|(ping, phases)| {
            let name = ping.protocol.name();
            [
                (name, "connect", phases.connect_s),
                (name, "TLS", phases.tls_s),
                (name, "first byte", phases.first_byte_s),
            ]
        })
    };
    let typical: Vec<f64> = parts().filter_map(|(.., d)| d.map(|d| d.p50)).collect();
    let scale = Scale::seconds(typical.iter().copied());
    let mut table = Table::new(
        format!("Parts of the requests, {}", scale.unit),
        &[
            ("", Text),
            ("part", Text),
            ("min", Number),
            ("p50", Number),
            ("p95", Number),
            ("max", Number),
        ],
    );
    for (name, part, times) in parts() {
        let Some(times) = times else {
            continue;
        };
        let figures = [times.min, times.p50, times.p95, times.max];
        table.row(
            [name.to_owned(), part.to_owned()]
                .into_iter()
                .chain(figures.map(|value| scale.show(Some(value)))),
        );
    }
    table
}

/// Round trips by the size of the probe.
pub(super) fn sizes(run: &Run) -> Table {
    let rows = || view::pings(run).flat_map(|(_, ping)| &ping.sizes);
    let typical: Vec<f64> = rows().filter_map(|s| s.rtt_s.map(|d| d.p50)).collect();
    let scale = Scale::seconds(typical.iter().copied());
    let mut table = Table::new(
        format!("By size of the probe, {}", scale.unit),
        &[
            ("payload", Number),
            ("sent", Number),
            ("answered", Number),
            ("min", Number),
            ("p50", Number),
            ("p95", Number),
            ("max", Number),
        ],
    );
    for size in rows() {
        let figures = [
            size.rtt_s.map(|d| d.min),
            size.rtt_s.map(|d| d.p50),
            size.rtt_s.map(|d| d.p95),
            size.rtt_s.map(|d| d.max),
        ];
        let counts = [size.size_bytes, size.sent, size.received].map(|n| n.to_string());
        table.row(
            counts
                .into_iter()
                .chain(figures.map(|value| scale.show(value))),
        );
    }
    table
}

/// How losses follow each other, and what ICMP said.
pub(super) fn losses(run: &Run) -> Table {
    let mut table = Table::new(
        "Probes lost one after the other (RFC 3357)",
        &[
            ("", Text),
            ("probe", Text),
            ("lost", Number),
            ("runs", Number),
            ("mean run", Number),
            ("longest", Number),
            ("mean distance", Number),
            ("least", Number),
            ("ICMP said", Text),
        ],
    );
    for (measurement, ping) in view::pings(run) {
        if ping.losses.periods == 0 && ping.icmp_errors.is_empty() {
            continue;
        }
        let plain = |value: Option<f64>| value.map_or_else(|| ABSENT.to_owned(), number::plain);
        let (run, distance) = (ping.losses.period_length, ping.losses.distance);
        let said = ping.icmp_errors.iter();
        table.row([
            Phase::of(measurement).title().to_owned(),
            ping.protocol.name().to_owned(),
            ping.sent.saturating_sub(ping.received).to_string(),
            ping.losses.periods.to_string(),
            plain(run.map(|d| d.mean)),
            plain(run.map(|d| d.max)),
            plain(distance.map(|d| d.mean)),
            plain(distance.map(|d| d.min)),
            said.map(|(what, times)| format!("{what} ×{times}"))
                .collect::<Vec<_>>()
                .join(", "),
        ]);
    }
    table
}
