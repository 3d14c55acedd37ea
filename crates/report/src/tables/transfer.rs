//! How a rate came about: its beginning, what it cost, and what a file had to do with it.

use plumb_model::results::{SlowStartEnd, ThroughputResult};
use plumb_model::run::Run;
use plumb_model::units::si;

use super::Kind::{Number, Text};
use super::Table;
use crate::number;
use crate::view;

pub(crate) fn transfer(run: &Run) -> Table {
    let rows = view::rates(run);
    let mut table = Table::new(
        "Beginning, cost and files",
        &[
            ("", Text),
            ("slow start", Number),
            ("data in it", Number),
            ("rate after", Number),
            ("CPU here", Number),
            ("CPU far", Number),
            ("file read", Number),
            ("file written", Number),
        ],
    );
    let per_gb = |seconds: Option<f64>| {
        seconds.map_or_else(String::new, |seconds| {
            format!("{} s/GB", number::plain(seconds))
        })
    };
    let share = |ratio: Option<f64>| ratio.map_or_else(String::new, number::percent);
    for row in &rows {
        let result = row.result;
        let start = result.slow_start;
        table.row([
            view::flow_in_phase(row.phase, result.direction),
            start.map_or_else(String::new, |start| {
                format!(
                    "{}{}",
                    number::seconds(start.duration_s),
                    sign(start.ended_by)
                )
            }),
            start.map_or_else(String::new, |start| number::bytes(start.bytes as f64)),
            start
                .and_then(|start| start.rate_after_bps)
                .map_or_else(String::new, |rate| si(rate, "bit/s")),
            per_gb(result.cpu.local_s_per_gb),
            per_gb(result.cpu.remote_s_per_gb),
            share(result.files.and_then(|files| files.read_wait_ratio)),
            share(result.files.and_then(|files| files.write_wait_ratio)),
        ]);
    }
    // Runs of before have none of this.
    table
        .rows
        .retain(|row| row.cells.iter().skip(1).any(|cell| !cell.is_empty()));
    let results: Vec<_> = rows.iter().map(|row| row.result).collect();
    table.note = notes(&results);
    table
}

/// A mark for an end of slow start that nothing but the rate shows.
fn sign(ended_by: SlowStartEnd) -> &'static str {
    match ended_by {
        SlowStartEnd::Ssthresh => "",
        SlowStartEnd::RatePlateau => " *",
    }
}

/// What must be known to read the rates.
fn notes(results: &[&ThroughputResult]) -> Option<String> {
    let mut notes = Vec::new();
    let any = |holds: fn(&ThroughputResult) -> bool| results.iter().any(|result| holds(result));
    if any(|r| r.files.is_some_and(|files| files.limits())) {
        notes.push("The disk limits: more than half of the time a file was waited for.");
    }
    if any(|r| r.zero_copy_send) {
        notes.push("Zero-copy send (sendfile): the result does not stand for an application that writes what it made.");
    }
    if any(|r| r.discard_receive) {
        notes.push("Received data was dropped unseen (MSG_TRUNC): the result does not stand for an application that reads.");
    }
    if any(|r| {
        r.slow_start
            .is_some_and(|start| start.ended_by == SlowStartEnd::RatePlateau)
    }) {
        notes.push("* No loss or delay ended slow start; the rate just stopped growing.");
    }
    if any(|r| r.files.is_some()) {
        notes.push("Files: share of time in which they were waited for.");
    }
    (!notes.is_empty()).then(|| notes.join(" "))
}
