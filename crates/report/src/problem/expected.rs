//! What was expected beside what was measured.

use plumb_model::context::Phase;
use plumb_model::direction::OneDirection;
use plumb_model::results::Direction;
use plumb_model::run::Run;

use crate::latency::{latencies, leading_protocol};
use crate::number;
use crate::phase::when;
use crate::registry::{self, shown};
use crate::table::Table;

/// In the place of an absent expectation: a column that is left out looks like a defect.
const NOTHING: &str = "-";

struct Row {
    what: String,
    expected: Option<String>,
    measured: String,
}

/// A row for each number that a path is judged by, and what was asked of it.
pub(super) fn table(run: &Run) -> Table {
    let mut rows: Vec<Row> = [Direction::Down, Direction::Up]
        .into_iter()
        .filter_map(|direction| rate(run, direction))
        .collect();
    rows.extend(round_trips(run));
    Table::of("Expected and measured", rows)
        .text("", |row| row.what.clone())
        .num("expected", |row| {
            row.expected.clone().unwrap_or_else(|| NOTHING.to_owned())
        })
        .num("measured", |row| row.measured.clone())
        .done()
}

/// What a direction alone carried, and what is paid for or asked for.
fn rate(run: &Run, direction: Direction) -> Option<Row> {
    let one = match direction {
        Direction::Up => OneDirection::Up,
        Direction::Down | Direction::Both => OneDirection::Down,
    };
    let asked = run.asked.as_ref();
    let wanted = asked.and_then(|asked| asked.expected_bps(one));
    let wanted = wanted.map(|(bps, _)| bps);
    let of_phase = run.measurements.iter().filter(|measurement| {
        let is_plain = measurement.context.experiment.is_none();
        is_plain && registry::phase(measurement) == Phase::from(direction)
    });
    let rates = of_phase.filter_map(|measurement| shown(measurement).rate());
    let measured = rates.map(|(_, bps)| bps).reduce(f64::max);
    (wanted.is_some() || measured.is_some()).then(|| Row {
        what: format!("{} rate", Phase::from(direction).shown()),
        expected: wanted.map(number::rate),
        measured: measured.map_or_else(|| "not measured".to_owned(), number::rate),
    })
}

/// Round trips and losses of each phase, by the probes that lead.
fn round_trips(run: &Run) -> Vec<Row> {
    let leading = leading_protocol(run);
    let wanted = run.asked.as_ref().and_then(|asked| asked.rtt_s);
    let mut rows: Vec<Row> = Vec::new();
    let mut seen = Vec::new();
    for (phase, row) in latencies(run) {
        if row.protocol != leading || seen.contains(&phase) {
            continue;
        }
        seen.push(phase);
        let is_loaded = phase.direction().is_some();
        if let Some(rtt) = row.rtt_s {
            let (name, value) = match is_loaded {
                true => ("round trip, 95 %", rtt.p95),
                false => ("round trip, median", rtt.p50),
            };
            rows.push(Row {
                what: format!("{name}, {}", when(phase)),
                expected: wanted.filter(|_| is_loaded).map(number::seconds),
                measured: number::seconds(value),
            });
        }
        if let Some(loss) = row.loss_ratio {
            rows.push(Row {
                what: format!("loss {}", when(phase)),
                expected: None,
                measured: number::percent(loss),
            });
        }
    }
    rows
}
