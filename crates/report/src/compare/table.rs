//! What a comparison shows before people.

use super::document::{Change, Comparison};
use super::quantity::ChangeUnit;
use crate::number::{self, ABSENT};
use crate::table::Kind::{Sentence, Text};
use crate::table::{Row, Table};
use plumb_model::context::Phase;

/// The numbers that changed, by phase.
pub(crate) fn changes(comparison: &Comparison) -> Table {
    let columns = [
        ("", Text),
        ("", Text),
        ("before → after (change)", Sentence),
    ];
    let mut table = Table::new("What changed", &columns);
    for change in comparison.rows.iter().filter(|change| changed(change)) {
        let (before, after) = before_and_after(change);
        let by = by(change).map_or_else(String::new, |by| format!(" ({by})"));
        table.rows.push(Row {
            cells: vec![
                title(change),
                what(change),
                format!("{before} → {after}{by}"),
            ],
            better: change.better,
        });
    }
    table.note = of_one_run(comparison);
    table
}

/// So many numbers of one Run alone are named; the others are counted.
const NAMED: usize = 6;

/// The numbers that only one Run has.
fn of_one_run(comparison: &Comparison) -> Option<String> {
    let of = |which: &str, alone: fn(&Change) -> bool| {
        let rows = comparison.rows.iter();
        let rows = rows.filter(|change| shown(change) && alone(change));
        let mut names: Vec<String> = rows
            .map(|change| format!("{} {}", title(change), what(change)))
            .collect();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        (!names.is_empty()).then(|| format!("the Run {which} alone: {}", names.join("; ")))
    };
    let before = of("before", |change| change.after.is_none());
    let after = of("after", |change| change.before.is_none());
    let each: Vec<String> = before.into_iter().chain(after).collect();
    (!each.is_empty()).then(|| format!("Left out (--json has them), of {}.", each.join(". Of ")))
}

/// Whether a number of both Runs differs by more than two measurements of the same path do, or is of things that are
/// counted one by one. Retransmits are not: an AQM signals by dropping.
fn changed(change: &Change) -> bool {
    let Some((before, after)) = change.before.zip(change.after) else {
        return false;
    };
    let differs = match change.unit {
        ChangeUnit::Count => change.name != "tcp.retransmits" && before != after,
        unit => unit.better(before, after).is_some(),
    };
    differs && shown(change)
}

/// The phase of a number.
fn title(change: &Change) -> String {
    match change.phase.parse() {
        // The short word: this column stands before the widest.
        Ok(Phase::Both) | Err(_) => change.phase.clone(),
        Ok(phase) => phase.shown().to_owned(),
    }
}

/// From so many times the value before, a change is shown as a factor: per cent above some hundred say nothing.
const FACTOR_FROM: f64 = 3.0;

/// A factor of two digits, or as many as it has: `3.8`, `4`, `8067`.
fn factor(times: f64) -> String {
    match times {
        few if few < 10.0 => number::plain((few * 10.0).round() / 10.0),
        many => number::whole(many),
    }
}

/// By how much a number changed: a share of the value before, a factor, or where that is zero the difference; of a share, in
/// points of per cent.
fn by(change: &Change) -> Option<String> {
    let difference = change.change?;
    if change.unit == ChangeUnit::Ratio {
        let points = number::percent(difference).replacen(" %", " points", 1);
        return Some(number::signed(difference, points));
    }
    let ratio = change
        .change_ratio
        .filter(|_| change.unit != ChangeUnit::Count);
    Some(match ratio {
        Some(ratio) if ratio + 1.0 >= FACTOR_FROM => {
            format!("{} times", factor(ratio + 1.0))
        }
        Some(ratio) => number::signed(ratio, number::percent(ratio)),
        None => number::signed(difference, in_unit(change.unit, difference)),
    })
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
