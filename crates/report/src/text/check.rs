//! A check for the terminal, on one screen: what it comes to, how applications fare, what was found with its evidence,
//! what to do, and the next command. Everything else is shown by `--details` and on the page.

use plumb_diagnose::goals;
use plumb_diagnose::outcomes::{self, Outcome};
use plumb_model::finding::{Clearance, Finding, NotMeasured, Severity};
use plumb_model::order::sort_few;
use plumb_model::run::Run;

use super::findings::continued;
use super::layout::{BAD, BOLD, FAINT, FAIR, GOOD, Page, clean, severity, wrap};
use super::style::Style;
use crate::fixes::{advice, opening};
use crate::outcome::{self, Use};
use crate::{evidence, heading, number};

/// A screen of 24 lines with the command above and the prompt below.
const MOST_LINES: usize = 22;
const COLUMNS: usize = 80;

const EVIDENCE_LINES: usize = 3;

/// The most lines of each part.
#[derive(Clone, Copy)]
struct Room {
    headline: usize,
    /// What a finding is, where the headline says something else.
    summary: usize,
    fix: usize,
    /// Each piece of evidence.
    evidence: usize,
    /// Commands of the fix; where there are more, they are counted.
    commands: usize,
    /// Other findings, what was not measured, and what was looked for, each.
    beside: usize,
    /// Whether there is a line for what was looked for beside findings.
    looked_for: bool,
}

/// From what is good to read to what there is always room for: 1 + 3 + 2 lines of head, 4 of applications, 1 + 2 + 3 of a
/// finding, 2 + 1 of its fix, and 2 beside are 21.
const ROOMS: [Room; 4] = [
    Room {
        headline: 4,
        summary: 3,
        fix: 4,
        evidence: 2,
        commands: 6,
        beside: 2,
        looked_for: true,
    },
    Room {
        headline: 4,
        summary: 2,
        fix: 3,
        evidence: 2,
        commands: 6,
        beside: 1,
        looked_for: true,
    },
    Room {
        headline: 4,
        summary: 2,
        fix: 2,
        evidence: 1,
        commands: 6,
        beside: 1,
        looked_for: false,
    },
    Room {
        headline: 3,
        summary: 2,
        fix: 2,
        evidence: 1,
        commands: 0,
        beside: 1,
        looked_for: false,
    },
];

/// A line, and how it is painted.
type Line = (anstyle::Style, String);

/// The check as text, each line ended: at most 22 of at most 80 columns.
pub fn render_check(run: &Run, style: &Style) -> String {
    let mut page = Page::new(style);
    let (worst, others) = findings(run);
    let last = next(run, worst);
    let room = MOST_LINES - last.len();
    let parts = |most: Room| {
        let parts = [
            head(run, most),
            outcome_lines(run),
            worst.map_or_else(Vec::new, |worst| finding(run, worst, most)),
            worst.map_or_else(Vec::new, |worst| fix(run, worst, most)),
            beside(run, &others, most),
        ];
        parts.into_iter().filter(|part| !part.is_empty())
    };
    let lines_of = |most: &Room| parts(*most).map(|part| part.len()).sum::<usize>();
    let fits = ROOMS.iter().find(|most| lines_of(most) <= room);
    let [.., least] = ROOMS;
    let most = fits.copied().unwrap_or(least);
    let parts: Vec<Vec<Line>> = parts(most).collect();
    let all: usize = parts.iter().map(Vec::len).sum();
    let mut lines: Vec<Line> = Vec::new();
    // Between parts there is an empty line as far as there is room for one.
    let mut gaps = room.saturating_sub(all).min(parts.len());
    for part in parts {
        lines.extend(part);
        if gaps > 0 {
            lines.push((anstyle::Style::new(), String::new()));
            gaps -= 1;
        }
    }
    lines.truncate(room);
    for (paint, line) in lines.into_iter().chain(last) {
        let line = match paint == anstyle::Style::new() || line.is_empty() {
            true => line,
            false => page.paint(paint, &line),
        };
        page.line(&line);
    }
    page.finish()
}

/// Text in at most so many lines; what does not fit is cut after a word, and says so.
fn fitted(first: &str, text: &str, most: usize) -> Vec<String> {
    let indent = first.chars().count();
    let mut lines = wrap(&clean(text), COLUMNS - indent);
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            let kept: String = last.chars().take(COLUMNS - indent - 1).collect();
            *last = kept.trim_end().to_owned() + "…";
        }
    }
    let rest = " ".repeat(indent);
    let opened = lines.iter().enumerate();
    opened
        .map(|(number, line)| {
            let opening = if number == 0 { first } else { &rest };
            let line: String = format!("{opening}{line}").chars().take(COLUMNS).collect();
            line.trim_end().to_owned()
        })
        .collect()
}

/// The sentences of a text that fit in so many lines, and the first in as many as it takes: half an advice is none.
fn sentences(first: &str, text: &str, most: usize) -> Vec<String> {
    let ends = text.match_indices(". ").map(|(at, _)| at + 1);
    let prefixes = ends.chain([text.len()]).filter_map(|end| text.get(..end));
    let set = |prefix: &str| fitted(first, prefix, usize::MAX);
    let mut shown: Option<Vec<String>> = None;
    for lines in prefixes.map(set) {
        if shown.is_some() && lines.len() > most {
            break;
        }
        shown = Some(lines);
    }
    shown.unwrap_or_default()
}

fn painted(paint: anstyle::Style, lines: Vec<String>) -> Vec<Line> {
    lines.into_iter().map(|line| (paint, line)).collect()
}

/// Of what it is, and the sentence that it comes to: with how sure that is, where something was found.
fn head(run: &Run, most: Room) -> Vec<Line> {
    let mut lines = Vec::new();
    let grade = run
        .verdict
        .as_ref()
        .and_then(|verdict| verdict.latency_grade);
    let grade = grade.map_or_else(String::new, |grade| {
        format!(", latency under load: {}", grade.name())
    });
    let title = format!(
        "{}, {}{grade}",
        heading::target(run),
        heading::started(&run.started)
    );
    lines.extend(painted(FAINT, fitted("", &title, 1)));
    if heading::overrun_warning(run).is_some() {
        let warning = "The laboratory was late: these numbers say more of this machine.";
        lines.extend(painted(BAD, fitted("! ", warning, 1)));
    }
    let Some(verdict) = &run.verdict else {
        return lines;
    };
    let sure = run
        .findings
        .first()
        .filter(|worst| worst.summary == verdict.headline);
    let sure = sure.map_or_else(String::new, |worst| {
        format!(" ({} sure)", number::percent(worst.confidence))
    });
    let text = format!("{}{sure}", verdict.headline);
    lines.extend(painted(BOLD, fitted("", &text, most.headline)));
    if let Some(cable) = goals::cable(run) {
        lines.extend(painted(FAIR, fitted("", &cable, 2)));
    }
    for reached in goals::reached(run).iter().take(2) {
        lines.extend(painted(GOOD, fitted("", reached, 1)));
    }
    lines
}

/// The colour of how an application fares.
pub(super) fn paint_of(fares: Use) -> anstyle::Style {
    match fares {
        Use::Good => GOOD,
        Use::Fair => FAIR,
        Use::Bad => BAD,
        Use::Unknown => FAINT,
    }
}

fn outcome_lines(run: &Run) -> Vec<Line> {
    let outcomes = outcomes::outcomes(run);
    let line = |outcome: &Outcome| {
        let name = outcome.application.name();
        let fares = Use::of(&outcome.fares);
        let paint = paint_of(fares);
        let opening = format!("  {name:<6}{:<5}", fares.name());
        let why = outcome::why_in_short(&outcome.fares);
        painted(paint, fitted(&opening, &why, 2))
    };
    let mut lines: Vec<Line> = outcomes.iter().flat_map(line).collect();
    let left_out = outcome::left_out(outcomes.iter().map(|outcome| &outcome.fares));
    lines.extend(left_out.map(|text| (FAINT, format!("  {text}."))));
    lines
}

/// The worst finding, and those besides it.
fn findings(run: &Run) -> (Option<&Finding>, Vec<&Finding>) {
    let mut findings = run.findings.iter();
    (findings.next(), findings.collect())
}

/// Before each piece of evidence.
const BULLET: &str = "  · ";

/// What was found, with its evidence as sentences.
fn finding(run: &Run, finding: &Finding, most: Room) -> Vec<Line> {
    let text = format!(
        "{}  {}, {}",
        finding.severity.name().to_uppercase(),
        finding.cause.name(),
        finding.place.name()
    );
    let mut lines = painted(severity(finding.severity), fitted("", &text, 1));
    let said = run
        .verdict
        .as_ref()
        .map(|verdict| verdict.headline.as_str());
    if said != Some(finding.summary.as_str()) {
        lines.extend(painted(
            anstyle::Style::new(),
            fitted("  ", &finding.summary, most.summary),
        ));
    }
    let mut evidence: Vec<String> = finding
        .evidence
        .iter()
        .map(|one| match most.evidence {
            1 => evidence::sentence(run, one, COLUMNS - BULLET.chars().count()),
            _ => evidence::sentence(run, one, usize::MAX),
        })
        .collect();
    evidence.dedup();
    for sentence in evidence.iter().take(EVIDENCE_LINES) {
        lines.extend(painted(
            anstyle::Style::new(),
            fitted(BULLET, sentence, most.evidence),
        ));
    }
    lines
}

/// The first fix: in words, and then in commands.
fn fix(run: &Run, finding: &Finding, most: Room) -> Vec<Line> {
    let Some(fix) = finding.fixes.first() else {
        return Vec::new();
    };
    let text = format!("{}: {}", opening(finding, fix), advice(run, &fix.summary));
    let mut lines = painted(anstyle::Style::new(), sentences("", &text, most.fix));
    let commands = fix.commands.iter().flat_map(|c| c.lines());
    let commands = commands.filter(|line| !line.trim_start().starts_with('#'));
    let commands: Vec<String> = commands
        .flat_map(|line| continued(&clean(line), COLUMNS))
        .collect();
    // A command that is cut is worse than none.
    let fits = commands.iter().all(|line| line.chars().count() <= COLUMNS);
    match fits && commands.len() <= most.commands {
        true => lines.extend(painted(anstyle::Style::new(), commands)),
        false => lines.push((
            FAINT,
            format!(
                "    {} lines of commands: --details shows them",
                commands.len()
            ),
        )),
    }
    lines
}

/// What else was found, what was not measured, and what was looked for.
fn beside(run: &Run, others: &[&Finding], most: Room) -> Vec<Line> {
    let mut lines = Vec::new();
    if !others.is_empty() {
        let name = |finding: &&Finding| {
            let mark = if finding.severity > Severity::Info {
                ""
            } else {
                " (info)"
            };
            format!("{} ({}){mark}", finding.cause.name(), finding.place.name())
        };
        let names: Vec<String> = others.iter().map(name).collect();
        let text = names.join(", ");
        lines.extend(painted(
            anstyle::Style::new(),
            fitted("Also: ", &text, most.beside),
        ));
    }
    let Some(verdict) = &run.verdict else {
        return lines;
    };
    let missing = heading::not_measured(run);
    // Where nothing else is known, the headline has said the first.
    let said = usize::from(verdict.clearance == Some(Clearance::NotMeasured));
    if let Some(first) = missing.get(said) {
        let more = match verdict.not_measured.get(said + 1..) {
            None | Some([]) => String::new(),
            Some(more) => format!(" Not measured either: {}.", NotMeasured::names(more)),
        };
        let text = |first: &str| format!("Not measured: {first}{more}");
        let whole = fitted("", &text(first), usize::MAX);
        let short = heading::not_measured_in_short(run);
        let short = short.get(said).filter(|_| whole.len() > most.beside);
        let lines_of = short.map_or(whole, |short| fitted("", &text(short), usize::MAX));
        lines.extend(painted(FAINT, lines_of));
    }
    let shown = most.looked_for || run.findings.is_empty();
    if let Some(looked) = verdict.looked_for.as_ref().filter(|_| shown) {
        let not: usize = looked.not.iter().map(|one| one.causes.len()).sum();
        let mut needs: Vec<_> = looked.not.iter().collect();
        sort_few(&mut needs, |a, b| b.causes.len().cmp(&a.causes.len()));
        let names: Vec<String> = needs
            .iter()
            .map(|one| one.need.name().replace('-', " "))
            .collect();
        let others = if run.findings.is_empty() {
            ""
        } else {
            " other"
        };
        let text = |named: usize| {
            let why = match names.get(..named) {
                None | Some([]) => String::new(),
                Some(needs) => format!(" (most need {})", needs.join(", ")),
            };
            format!(
                "{}{others} causes are absent; {not} could not be checked{why}.",
                looked.absent.len()
            )
        };
        // As many needs as one line has room for.
        let fits = (0..=3)
            .rev()
            .map(text)
            .find(|text| text.chars().count() <= COLUMNS);
        let text = fits.unwrap_or_else(|| text(0));
        lines.extend(painted(FAINT, fitted("", &text, most.beside)));
    }
    lines
}

/// What to run next.
fn next(run: &Run, worst: Option<&Finding>) -> Vec<Line> {
    let not_measured = run
        .verdict
        .as_ref()
        .and_then(|verdict| verdict.not_measured.first());
    let command = match (worst, &run.target, not_measured) {
        (Some(finding), ..) if finding.severity > Severity::Info => {
            format!("plumb explain {}", finding.cause.name())
        }
        (_, None, _) => {
            let text =
                "Next: plumb check HOST looks at the path to any host; plumb explain far-end";
            return painted(FAINT, fitted("", text, 1));
        }
        // Only a responder reports what its host is.
        (_, Some(target), _) if target.host.is_none() => {
            let far_end = "Next: run `plumb serve` on a machine at the far end and check that machine. \
                           `plumb explain far-end` shows what can be had without one.";
            return painted(FAINT, fitted("", far_end, 2));
        }
        (_, Some(target), Some(_)) => format!("plumb check --thorough {}", target.name),
        _ => "plumb explain causes".to_owned(),
    };
    let text = format!("Next: {command}; or the same check with --details");
    painted(FAINT, fitted("", &text, 2))
}
