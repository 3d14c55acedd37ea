//! What a comparison shows before people.

use super::document::{Change, Comparison};
use super::quantity::ChangeUnit;
use crate::number::{self, ABSENT};
use crate::table::Kind::{Number, Text};
use crate::table::{Row, Table};
use plumb_model::context::Phase;

/// The numbers that decide, by phase.
pub(crate) fn changes(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        "What changed",
        &[
            ("", Text),
            ("", Text),
            ("before", Number),
            ("after", Number),
            ("change", Number),
            ("", Number),
        ],
    );
    let mut last = "";
    for change in comparison.rows.iter().filter(|change| shown(change)) {
        let (before, after) = before_and_after(change);
        let ratio = change
            .change_ratio
            .filter(|_| change.unit != ChangeUnit::Ratio);
        let title = match change.phase.parse() {
            // The short word: this is the widest table.
            Ok(Phase::Both) | Err(_) => change.phase.as_str(),
            Ok(phase) => phase.shown(),
        };
        table.rows.push(Row {
            cells: vec![
                if title == last {
                    String::new()
                } else {
                    title.to_owned()
                },
                what(change),
                before,
                after,
                change.change.map_or_else(
                    || ABSENT.to_owned(),
                    |v| number::signed(v, in_unit(change.unit, v)),
                ),
                ratio.map_or_else(String::new, |v| number::signed(v, number::percent(v))),
            ],
            better: change.better,
        });
        last = title;
    }
    table
}

/// Not what is in the JSON besides, and loss where there was any.
pub(super) fn shown(change: &Change) -> bool {
    let counts = |least: f64| {
        let values = [change.before, change.after];
        values.into_iter().flatten().any(|v| v > least)
    };
    match change.name.as_str() {
        "rtt_s.max" | "increase_s.p95" | "steady_bps" => false,
        "loss_ratio" | "failed" | "objects_failed" | "playback.stalled_ratio" => counts(0.0),
        _ => true,
    }
}

pub(crate) fn in_unit(unit: ChangeUnit, value: f64) -> String {
    match unit {
        ChangeUnit::S => number::seconds(value),
        ChangeUnit::Bps => number::rate(value),
        ChangeUnit::Ratio => number::percent(value),
        ChangeUnit::Count | ChangeUnit::Mos => number::plain(value),
        ChangeUnit::PerSecond => format!("{} /s", number::whole(value)),
        ChangeUnit::PerMinute => number::whole(value),
        // A packet's size is exact.
        ChangeUnit::Bytes => format!("{} B", number::plain(value)),
    }
}

/// Both numbers in their unit.
pub(crate) fn before_and_after(change: &Change) -> (String, String) {
    let show =
        |value: Option<f64>| value.map_or_else(|| ABSENT.to_owned(), |v| in_unit(change.unit, v));
    (show(change.before), show(change.after))
}

/// The words for a field, and what it is of.
pub(crate) fn what(change: &Change) -> String {
    let field = match change.name.as_str() {
        "rtt_s.p50" => "RTT p50",
        "rtt_s.p95" => "RTT p95",
        "loss_ratio" => "loss",
        "bps" => "rate",
        "tcp.retransmits" => "retransmits",
        "connect_s.p50" => "TCP connect p50",
        "first_byte_s" => "first byte",
        "html_s" => "HTML",
        "load_s" => "page load time",
        "objects_failed" => "objects failed",
        "first_byte_s.p50" => "first byte p50",
        "latency_s.p50" => "time p50",
        "latency_s.p95" => "time p95",
        "rate_tps" => "transactions",
        "one_way_delay_s.p50" => "one-way delay p50",
        "one_way_delay_s.p95" => "one-way delay p95",
        "jitter_s.mean" => "jitter",
        "pdv_s.p95" => "delay variation p95",
        "voice.mos" => "MOS",
        "playback.stalled_ratio" => "stalled",
        "rpm" => "RPM",
        "path_mtu_bytes" => "path MTU",
        other => other,
    };
    let of = [
        change.of.as_deref(),
        change.protocol.map(|p| p.name()),
        change.direction.map(|d| d.name()),
    ];
    let of: Vec<&str> = of.into_iter().flatten().collect();
    [&[field], &of[..]].concat().join(", ")
}
