//! What the template sets in type: the figures at a glance, the findings, the numbers.

use plumb_diagnose::outcomes;
use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_model::finding::{Cause, Finding, Place};
use plumb_model::printable;
use plumb_model::results::Direction;
use plumb_model::run::Run;
use serde::Serialize;

use crate::compare::FindingRef;
use crate::fixes::{self, Fixes, advice, opening};
use crate::latency::{latencies, leading_protocol, mark};
use crate::outcome::{self, Use};
use crate::phase::flow;
use crate::registry::shown;
use crate::table::Table;
use crate::{contents, ends, evidence, heading, number, registry};

/// A phase at a glance, with one value for each Run.
#[derive(Serialize)]
pub(super) struct Tile {
    title: &'static str,
    /// Class of its colour.
    class: &'static str,
    grades: Vec<String>,
    figures: Vec<Figure>,
}

/// A number of a tile.
#[derive(Serialize)]
struct Figure {
    name: &'static str,
    values: Vec<String>,
}

/// A Run below the charts.
#[derive(Serialize)]
pub(super) struct RunPart<'a> {
    /// `Before` and `After` on a page of two.
    label: &'static str,
    outcomes: Vec<OutcomePart>,
    /// What each kind of measurement comes to.
    sentences: Vec<String>,
    findings: Vec<FindingPart<'a>>,
    verdict: Option<&'a str>,
    /// What an all-clear needs and is not known, where the headline does not say it all.
    not_measured: Vec<String>,
    /// Those that answer the question, and those that are folded away.
    tables: Vec<Table>,
    folded: Vec<Table>,
    notes: &'a [String],
    facts: Table,
    lab: Option<String>,
    id: &'a str,
    plumb: &'a str,
    started: String,
    length: String,
    command: String,
}

/// A finding as set in type.
#[derive(Serialize)]
struct FindingPart<'a> {
    severity: &'static str,
    cause: &'static str,
    place: String,
    confidence: String,
    summary: &'a str,
    /// What became of it, on a page of two Runs.
    fate: Option<&'static str>,
    /// What was measured, a sentence for each piece.
    evidence: Vec<String>,
    fixes: Vec<FixPart<'a>>,
    /// Where the fixes stand that another finding has too.
    elsewhere: Option<String>,
}

/// How an application fares.
#[derive(Serialize)]
pub(super) struct OutcomePart {
    what: &'static str,
    /// The word for it, which is its class too.
    use_: &'static str,
    why: String,
}

/// How applications fare on the path.
pub(super) fn outcomes(run: &Run) -> Vec<OutcomePart> {
    let each = outcomes::outcomes(run)
        .into_iter()
        .map(|found| OutcomePart {
            what: outcome::what(found.application),
            use_: Use::of(&found.fares).name(),
            why: outcome::why(&found.fares),
        });
    each.collect()
}

#[derive(Serialize)]
struct FixPart<'a> {
    opening: String,
    summary: String,
    commands: String,
    expect: &'a str,
}

/// A finding and what became of it.
pub(super) type Fate = (Cause, Place, &'static str);

/// The same fate for all of a list.
pub(super) fn fates(findings: &[FindingRef], fate: &'static str) -> Vec<Fate> {
    findings.iter().map(|f| (f.cause, f.place, fate)).collect()
}

impl<'a> RunPart<'a> {
    pub(super) fn of(run: &'a Run, label: &'static str, fates: &[Fate]) -> Self {
        let alone = label.is_empty();
        let fate = |f: &Finding| {
            fates
                .iter()
                .find(|(cause, place, _)| (*cause, *place) == (f.cause, f.place))
                .map(|f| f.2)
        };
        let headline = run.verdict.as_ref().map(|v| v.headline.as_str());
        let fixes = fixes::once(&run.findings);
        let (tables, folded) = contents::of_page(run);
        Self {
            label,
            outcomes: outcomes(run),
            sentences: registry::sentences(run),
            findings: run
                .findings
                .iter()
                .zip(&fixes)
                .map(|(f, fixes)| FindingPart {
                    summary: Some(f.summary.as_str())
                        .filter(|said| alone && headline == Some(*said))
                        .map_or(f.summary.as_str(), |_| ""),
                    ..FindingPart::of(run, f, fixes, fate(f))
                })
                .collect(),
            verdict: run.verdict.as_ref().map(|v| v.headline.as_str()),
            not_measured: heading::not_measured(run),
            tables,
            folded,
            notes: &run.notes,
            facts: ends::table(run),
            lab: ends::lab(run),
            id: &run.id,
            plumb: &run.plumb,
            started: heading::started(&run.started),
            length: number::length(heading::length_s(run)),
            command: run.command.join(" "),
        }
    }
}

impl<'a> FindingPart<'a> {
    fn of(run: &Run, finding: &'a Finding, of: &Fixes<'a>, fate: Option<&'static str>) -> Self {
        let fixes = of.own.iter().map(|fix| FixPart {
            opening: opening(finding, fix),
            summary: advice(run, &fix.summary),
            commands: fix
                .commands
                .iter()
                .map(|command| printable::line(command))
                .collect::<Vec<_>>()
                .join("\n"),
            expect: &fix.expect,
        });
        Self {
            severity: finding.severity.name(),
            cause: finding.cause.name(),
            place: finding.place.name().replace('-', " "),
            confidence: number::percent(finding.confidence),
            summary: &finding.summary,
            fate,
            evidence: evidence::sentences(run, finding),
            fixes: fixes.collect(),
            elsewhere: of.elsewhere(),
        }
    }
}

/// A tile for each phase that any of the Runs has.
pub(super) fn tiles(runs: &[&Run]) -> Vec<Tile> {
    let shown = [Phase::Idle, Phase::Down, Phase::Up, Phase::Both];
    shown
        .into_iter()
        .filter_map(|phase| tile(runs, phase))
        .collect()
}

fn tile(runs: &[&Run], phase: Phase) -> Option<Tile> {
    let mut figures = Vec::new();
    for direction in [Direction::Down, Direction::Up] {
        let rate = |run: &&Run| {
            let mut of_phase = run
                .measurements
                .iter()
                .filter(|m| registry::phase(m) == phase);
            of_phase.find_map(|m| {
                let (found, bps) = shown(m).rate()?;
                (found == direction).then_some(bps)
            })
        };
        let name = if phase == Phase::Both {
            flow(direction)
        } else {
            "rate"
        };
        figures.extend(figure(runs, name, rate, number::rate));
    }
    let (percentile, get): (_, fn(&Distribution) -> f64) = match phase {
        Phase::Idle => ("round trip, median", |d| d.p50),
        _ => ("round trip, 95 %", |d| d.p95),
    };
    let latency = |run: &&Run| {
        let leading = leading_protocol(run);
        let mut all = latencies(run).into_iter();
        all.find(|(of, l)| (*of, l.protocol) == (phase, leading))
            .map(|(_, l)| (l.rtt_s.map(get), l.loss_ratio))
    };
    let (round_trip, loss) = (|run: &&Run| latency(run)?.0, |run: &&Run| latency(run)?.1);
    figures.extend(figure(runs, percentile, round_trip, number::seconds));
    figures.extend(figure(runs, "loss", loss, number::percent));
    let grade = |run: &&Run| {
        latencies(run)
            .into_iter()
            .filter(|(of, _)| *of == phase)
            .find_map(|(_, l)| l.grade)
    };
    let grades: Vec<_> = runs.iter().map(grade).collect();
    let graded = grades.iter().any(Option::is_some);
    (!figures.is_empty()).then(|| Tile {
        title: phase.shown(),
        class: phase.name(),
        grades: if graded {
            grades.into_iter().map(mark).collect()
        } else {
            Vec::new()
        },
        figures,
    })
}

/// A number of every Run; none when no Run has it.
fn figure(
    runs: &[&Run],
    name: &'static str,
    get: impl Fn(&&Run) -> Option<f64>,
    write: fn(f64) -> String,
) -> Option<Figure> {
    let values: Vec<_> = runs.iter().map(get).collect();
    let any = values.iter().any(Option::is_some);
    let write = |value: Option<f64>| value.map_or_else(|| number::ABSENT.to_owned(), write);
    any.then(|| Figure {
        name,
        values: values.into_iter().map(write).collect(),
    })
}
