//! What a comparison shows before people.

use super::Kind::{Number, Text};
use super::{Row, Table};
use crate::compare::{Change, ChangeUnit, Comparison};
use crate::number::{self, ABSENT};
use crate::view::Phase;

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
        let show = |value: Option<f64>| {
            value.map_or_else(|| ABSENT.to_owned(), |v| in_unit(change.unit, v))
        };
        let ratio = change
            .change_ratio
            .filter(|_| change.unit != ChangeUnit::Ratio);
        let phase = Phase::ALL
            .into_iter()
            .find(|phase| phase.name() == change.phase);
        let title = match phase {
            // The short word: this is the widest table.
            Some(Phase::Both) | None => change.phase.as_str(),
            Some(phase) => phase.title(),
        };
        table.rows.push(Row {
            cells: vec![
                if title == last {
                    String::new()
                } else {
                    title.to_owned()
                },
                what(change),
                show(change.before),
                show(change.after),
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

/// Latency at its median and 95th percentile, loss where there was any, rates, retransmits.
fn shown(change: &Change) -> bool {
    match change.name.as_str() {
        "rtt_s.p50" | "rtt_s.p95" | "bps" | "tcp.retransmits" | "connect_s.p50" => true,
        "loss_ratio" => [change.before, change.after]
            .into_iter()
            .flatten()
            .any(|v| v > 0.0),
        _ => false,
    }
}

fn in_unit(unit: ChangeUnit, value: f64) -> String {
    match unit {
        ChangeUnit::S => number::seconds(value),
        ChangeUnit::Bps => number::rate(value),
        ChangeUnit::Ratio => number::percent(value),
        ChangeUnit::Count => number::plain(value),
    }
}

fn what(change: &Change) -> String {
    let probe = change.protocol.map_or("", |p| p.name());
    let direction = change.direction.map_or("", |d| d.name());
    match change.name.as_str() {
        "rtt_s.p50" => format!("RTT p50, {probe}"),
        "rtt_s.p95" => format!("RTT p95, {probe}"),
        "loss_ratio" => format!("loss, {probe}"),
        "bps" => format!("rate, {direction}"),
        "tcp.retransmits" => format!("retransmits, {direction}"),
        "connect_s.p50" => "TCP connect p50".to_owned(),
        other => other.to_owned(),
    }
}
