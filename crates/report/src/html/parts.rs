//! What the template sets in type: the figures at a glance, the findings, the numbers.

use plumb_model::finding::{Cause, Finding, Place};
use plumb_model::results::Direction;
use plumb_model::run::Run;
use serde::Serialize;

use crate::compare::FindingRef;
use crate::number;
use crate::tables::{self, Table};
use crate::view::{self, Phase};

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
    name: String,
    values: Vec<String>,
}

/// A Run below the charts.
#[derive(Serialize)]
pub(super) struct RunPart<'a> {
    /// `Before` and `After` on a page of two.
    label: &'static str,
    findings: Vec<FindingPart<'a>>,
    verdict: Option<&'a str>,
    tables: Vec<Table>,
    /// Folded away: one row a stream.
    streams: Option<Table>,
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
    evidence: Vec<EvidencePart<'a>>,
    fixes: Vec<FixPart<'a>>,
}

#[derive(Serialize)]
struct EvidencePart<'a> {
    measurement: &'a str,
    field: &'a str,
    value: String,
    rule: &'a str,
    threshold: String,
}

#[derive(Serialize)]
struct FixPart<'a> {
    actor: String,
    summary: &'a str,
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
        let fate = |f: &Finding| {
            fates
                .iter()
                .find(|(cause, place, _)| (*cause, *place) == (f.cause, f.place))
                .map(|f| f.2)
        };
        Self {
            label,
            findings: run
                .findings
                .iter()
                .map(|f| FindingPart::of(f, fate(f)))
                .collect(),
            verdict: run.verdict.as_ref().map(|v| v.headline.as_str()),
            tables: tables::of_run(run),
            streams: Some(tables::streams(run)).filter(|table| !table.rows.is_empty()),
            notes: &run.notes,
            facts: tables::facts(run),
            lab: tables::lab(run),
            id: &run.id,
            plumb: &run.plumb,
            started: view::started(&run.started),
            length: number::length(view::length_s(run)),
            command: run.command.join(" "),
        }
    }
}

impl<'a> FindingPart<'a> {
    fn of(finding: &'a Finding, fate: Option<&'static str>) -> Self {
        let evidence = finding.evidence.iter().map(|e| {
            let (value, threshold) = number::evidence(e);
            EvidencePart {
                measurement: &e.measurement,
                field: &e.field,
                value,
                rule: &e.rule,
                threshold,
            }
        });
        let fixes = finding.fixes.iter().map(|fix| FixPart {
            actor: fix.on.name().replace('-', " "),
            summary: &fix.summary,
            commands: fix.commands.join("\n"),
            expect: &fix.expect,
        });
        Self {
            severity: finding.severity.name(),
            cause: finding.cause.name(),
            place: finding.place.name().replace('-', " "),
            confidence: number::percent(finding.confidence),
            summary: &finding.summary,
            fate,
            evidence: evidence.collect(),
            fixes: fixes.collect(),
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
            let found = view::rates(run)
                .into_iter()
                .find(|r| (r.phase, r.result.direction) == (phase, direction));
            found.map(|r| r.result.bps)
        };
        let name = if phase == Phase::Both {
            view::flow(direction)
        } else {
            "rate"
        };
        figures.extend(figure(runs, name.to_owned(), rate, number::rate));
    }
    let percentile = if phase == Phase::Idle {
        "round trip, p50"
    } else {
        "round trip, p95"
    };
    let latency = |run: &&Run| {
        let leading = view::leading_protocol(run);
        let found = view::latencies(run)
            .into_iter()
            .find(|l| (l.phase, l.protocol) == (phase, leading))?;
        Some((
            found
                .rtt_s
                .map(|d| if phase == Phase::Idle { d.p50 } else { d.p95 }),
            found.loss_ratio,
        ))
    };
    let (round_trip, loss) = (|run: &&Run| latency(run)?.0, |run: &&Run| latency(run)?.1);
    figures.extend(figure(
        runs,
        percentile.to_owned(),
        round_trip,
        number::seconds,
    ));
    figures.extend(figure(runs, "loss".to_owned(), loss, number::percent));
    let grade = |run: &&Run| {
        view::latencies(run)
            .into_iter()
            .filter(|l| l.phase == phase)
            .find_map(|l| l.grade)
    };
    let grades: Vec<_> = runs.iter().map(grade).collect();
    let graded = grades.iter().any(Option::is_some);
    (!figures.is_empty()).then(|| Tile {
        title: phase.title(),
        class: phase.name(),
        grades: if graded {
            grades.into_iter().map(tables::mark).collect()
        } else {
            Vec::new()
        },
        figures,
    })
}

/// A number of every Run; none when no Run has it.
fn figure(
    runs: &[&Run],
    name: String,
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
