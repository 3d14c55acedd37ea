//! Each way by itself.

use plumb_model::distribution::Distribution;
use plumb_model::results::owd::{ClockMethod, ClockState, OwdWay};
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::{Table, or_absent};
use crate::number;
use crate::view;

/// Both ways of every measurement.
fn ways(run: &Run) -> impl Iterator<Item = (&'static str, &OwdWay)> {
    view::owds(run).flat_map(|(_, owd)| [("there", &owd.up), ("back", &owd.down)])
}

/// How long packets took.
pub(super) fn delays(run: &Run) -> Table {
    let mut table = Table::new(
        "One-way delay",
        &[
            ("", Text),
            ("min", Number),
            ("p50", Number),
            ("p95", Number),
            ("max", Number),
            ("known to", Number),
            ("PDV p95", Number),
            ("IPDV p95", Number),
            ("jitter", Number),
        ],
    );
    for (name, way) in ways(run) {
        let delay = way.delay.map(|d| d.delay_s);
        let time = |d: Option<Distribution>, of: fn(&Distribution) -> f64| {
            or_absent(d, |d| number::seconds(of(&d)))
        };
        table.row([
            name.to_owned(),
            time(delay, |d| d.min),
            time(delay, |d| d.p50),
            time(delay, |d| d.p95),
            time(delay, |d| d.max),
            or_absent(way.delay, |d| {
                format!("±{}", number::seconds(d.uncertainty_s))
            }),
            time(way.pdv_s, |d| d.p95),
            time(way.ipdv_s, |d| d.p95),
            time(way.jitter_s, |d| d.mean),
        ]);
    }
    table.note = (!table.rows.is_empty()).then(|| {
        "PDV: against the smallest delay, IPDV: against the packet before (RFC 5481); both do not depend on what the clocks are off by. Jitter: RFC 3550, mean."
            .to_owned()
    });
    table
}

/// What became of the packets.
pub(super) fn packets(run: &Run) -> Table {
    let mut table = Table::new(
        "Packets of each way",
        &[
            ("", Text),
            ("sent", Number),
            ("lost", Number),
            ("loss", Number),
            ("loss periods", Number),
            ("longest", Number),
            ("dup", Number),
            ("reordered", Number),
            ("hop limit", Text),
        ],
    );
    for (name, way) in ways(run) {
        let count = |value: Option<u64>| or_absent(value, |v| v.to_string());
        table.row([
            name.to_owned(),
            count(way.sent),
            count(way.lost),
            or_absent(way.loss_ratio, number::percent),
            count(way.losses.as_ref().map(|l| l.periods)),
            way.losses
                .as_ref()
                .and_then(|l| l.period_length)
                .map_or_else(String::new, |d| number::plain(d.max)),
            count(way.duplicates),
            way.reordering.reordered.to_string(),
            match way.hop_limits {
                Some([low, high]) if low == high => low.to_string(),
                Some([low, high]) => format!("{low} to {high}"),
                None => String::new(),
            },
        ]);
    }
    let unplaced: u64 = view::owds(run).map(|(_, owd)| owd.lost_unplaced).sum();
    table.note = (unplaced > 0).then(|| {
        format!("{unplaced} probes without an answer of which it is not known on which way they were lost.")
    });
    table
}

/// What the delays rest on.
pub(super) fn clocks(run: &Run) -> Table {
    let mut table = Table::new(
        "Clocks",
        &[
            ("delays rest on", Text),
            ("far less here", Number),
            ("known to", Number),
            ("skew", Number),
            ("here", Text),
            ("far", Text),
            ("PTP clocks here", Text),
        ],
    );
    for (_, owd) in view::owds(run) {
        let clocks = &owd.clocks;
        table.row([
            match clocks.method {
                ClockMethod::Compared => "a comparison over the path",
                ClockMethod::Synchronised => "both hosts' word",
                ClockMethod::Same => "one clock, as you said",
                ClockMethod::None => "nothing",
            }
            .to_owned(),
            or_absent(clocks.offset_s, number::seconds),
            or_absent(clocks.uncertainty_s, |s| format!("±{}", number::seconds(s))),
            clocks
                .skew_ratio
                .map_or_else(String::new, |skew| format!("{:.2} ppm", skew * 1e6)),
            state(clocks.here),
            state(clocks.far),
            clocks.ptp_devices.join(" "),
        ]);
    }
    table
}

fn state(state: Option<ClockState>) -> String {
    let Some(state) = state else {
        return "says nothing".to_owned();
    };
    let error = state
        .max_error_s
        .map_or_else(String::new, |s| format!(" to {}", number::seconds(s)));
    if state.synchronised {
        format!("synchronised{error}")
    } else {
        "not synchronised".to_owned()
    }
}
