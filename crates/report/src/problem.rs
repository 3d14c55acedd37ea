//! The case that is handed over: what was expected and what is there, from where to where, what was measured, what is
//! excluded and by what, and what remains. It has the parts of a problem report to a PERT (PERT Performance Guides,
//! section 2.1).

mod components;
mod expected;
mod possibilities;

use plumb_model::run::Run;
use serde::Serialize;

use crate::table::{Table, blank};
use crate::{heading, number, registry};
use components::Component;
use possibilities::{Excluded, Remaining};

/// What a Run cannot know of its problem, as the user says it.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// Who reports it, and how to reach them.
    pub who: Option<String>,
    /// Since when it is so.
    pub since: Option<String>,
    /// What is expected, or was so before.
    pub expected: Option<String>,
}

/// In the place of what the user did not say.
const UNSAID: &str = "not said";

/// The case, ready to be set in type.
#[derive(Serialize)]
pub(crate) struct Problem {
    /// Who, since when, from where, to where: a name and a text each.
    pub(crate) head: Vec<(&'static str, String)>,
    pub(crate) expected: Table,
    /// From this host to the far end.
    pub(crate) map: Vec<Component>,
    pub(crate) measured: Table,
    pub(crate) excluded: Vec<Excluded>,
    pub(crate) remaining: Vec<Remaining>,
    /// What was not measured, and what was not looked for, a sentence each.
    pub(crate) open: Vec<String>,
}

impl Problem {
    pub(crate) fn of(run: &Run, said: &Said) -> Self {
        Self {
            head: head(run, said),
            expected: expected::table(run),
            map: components::of(run),
            measured: measured(run),
            excluded: possibilities::excluded(run),
            remaining: possibilities::remaining(run),
            open: possibilities::open(run),
        }
    }
}

fn head(run: &Run, said: &Said) -> Vec<(&'static str, String)> {
    let or_unsaid = |text: &Option<String>| text.clone().unwrap_or_else(|| UNSAID.to_owned());
    let asked = run.asked.as_ref();
    let expected = match asked.filter(|_| said.expected.is_none()) {
        Some(asked) if asked.plan.is_some() => "what is paid for, as below".to_owned(),
        Some(asked) if asked.cable.is_some() => {
            "what the ports of a cable between both machines carry, as below".to_owned()
        }
        Some(asked) if asked.rate_bps.or(asked.rtt_s).is_some() => {
            "what was asked for, as below".to_owned()
        }
        _ => or_unsaid(&said.expected),
    };
    let measured = format!(
        "{}, over {}",
        heading::started(&run.started),
        number::length(heading::length_s(run))
    );
    let mut head = vec![
        ("Reported by", or_unsaid(&said.who)),
        ("Since", or_unsaid(&said.since)),
        ("Expected", expected),
        ("From", components::this_host(run)),
        ("To", heading::target(run)),
        ("Measured", measured),
        ("By", run.command.join(" ")),
    ];
    if let Some(verdict) = &run.verdict {
        head.push(("Found", verdict.headline.clone()));
    }
    head
}

/// What was measured, in order of time: a row for each kind in each phase.
fn measured(run: &Run) -> Table {
    struct Row {
        what: String,
        phase: &'static str,
        at_s: f64,
        until_s: f64,
        ids: Vec<String>,
    }
    let mut rows: Vec<Row> = Vec::new();
    for measurement in &run.measurements {
        let phase = registry::phase(measurement).shown();
        let what = measurement.outcome.kind().name().replace('_', " ");
        let what = match measurement.outcome.protocol() {
            Some(protocol) => format!("{what} ({protocol})"),
            None => what,
        };
        let (at_s, until_s) = (measurement.at_s, measurement.at_s + measurement.duration_s);
        let known = rows.iter_mut().find(|row| {
            (&row.what, row.phase) == (&what, phase) && (row.at_s - at_s).abs() < SAME_STEP_S
        });
        match known {
            Some(row) => {
                row.until_s = row.until_s.max(until_s);
                row.ids.push(measurement.id.clone());
            }
            None => rows.push(Row {
                what,
                phase,
                at_s,
                until_s,
                ids: vec![measurement.id.clone()],
            }),
        }
    }
    Table::of("What was measured", rows)
        .text("", |row| row.what.clone())
        .text("phase", |row| row.phase)
        .num("after", |row| number::length(row.at_s))
        .num("for", |row| lasted(row.until_s - row.at_s))
        .text("in the Run", |row| row.ids.join(", "))
        .done()
}

/// A length, of what has one: what is read once has none.
fn lasted(time_s: f64) -> String {
    blank((time_s > 0.0).then(|| number::seconds(time_s)))
}

/// Measurements of a kind that begin within this of each other are of one step, in seconds.
const SAME_STEP_S: f64 = 60.0;
