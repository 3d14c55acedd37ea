//! What a browser shows of a Run that it made: the answer first, and last what no browser can exclude.

use plumb_diagnose::outcomes;
use plumb_model::context::Phase;
use plumb_model::finding::{Cause, Clearance, Severity};
use plumb_model::grade::Grade;
use plumb_model::results::Direction;
use plumb_model::run::Run;
use serde::Serialize;

use crate::outcome::{self, Use};
use crate::{heading, latency, number, registry};

/// The sentences of the page, in its order.
#[derive(Debug, Clone, Serialize)]
pub struct Visited {
    /// What it comes to.
    headline: String,
    /// The worst grade of latency under the loads that a browser makes.
    grade: Option<&'static str>,
    /// How applications fare on that line.
    outcomes: Vec<Fares>,
    /// What was not measured, a sentence each.
    not_excluded: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Fares {
    what: &'static str,
    /// `good`, `fair` or `bad`; a dash where it was not measured.
    fares: &'static str,
    why: String,
}

/// What the page shows of that Run.
pub fn visited(run: &Run) -> Visited {
    let fares = outcomes::outcomes(run).into_iter().map(|found| Fares {
        what: outcome::what(found.application),
        fares: Use::of(&found.fares).name(),
        why: outcome::why(&found.fares),
    });
    Visited {
        headline: healthy(run).unwrap_or_else(|| {
            let verdict = run.verdict.as_ref();
            verdict.map_or_else(String::new, |verdict| verdict.headline.clone())
        }),
        grade: worst(run).map(Grade::name),
        outcomes: fares.collect(),
        not_excluded: heading::all_missing(run),
    }
}

/// The answer where nothing is wrong with what a browser measures: both rates and latency under both loads. An all-clear needs
/// more.
fn healthy(run: &Run) -> Option<String> {
    let verdict = run.verdict.as_ref()?;
    let is_open = verdict.clearance == Some(Clearance::NotMeasured);
    let is_found = run.findings.iter().any(|f| f.severity > Severity::Info);
    if !is_open || is_found {
        return None;
    }
    let increase = |direction: Direction| {
        let all = latency::latencies(run).into_iter();
        let mut all = all.filter(|(phase, _)| *phase == Phase::from(direction));
        all.find_map(|(_, round_trips)| Some(round_trips.increase_s?.p95))
    };
    let grows_s = increase(Direction::Down)?
        .max(increase(Direction::Up)?)
        .max(0.0);
    Some(format!(
        "No fault seen: {} down and {} up, round trips grow by {} under load.",
        number::rate(rate(run, Direction::Down)?),
        number::rate(rate(run, Direction::Up)?),
        number::seconds(grows_s)
    ))
}

fn rate(run: &Run, direction: Direction) -> Option<f64> {
    let rates = run.measurements.iter();
    let mut rates = rates.filter_map(|measurement| registry::shown(measurement).rate());
    rates.find_map(|(of, bps)| (of == direction).then_some(bps))
}

/// Of each direction alone: a browser does not load both at once, which may be worse. None where something is unexplained.
fn worst(run: &Run) -> Option<Grade> {
    if run.findings.iter().any(|f| f.cause == Cause::Unexplained) {
        return None;
    }
    let grades = run.measurements.iter();
    let grades = grades.filter_map(|measurement| registry::shown(measurement).round_trips()?.grade);
    grades.max()
}
