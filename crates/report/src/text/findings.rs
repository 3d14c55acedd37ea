//! Findings in full: what was found, the evidence as sentences, and what to do about it.

use plumb_model::finding::{Finding, Fix, Severity};
use plumb_model::run::Run;

use super::layout::{FAINT, Page, clean, severity, wrap};
use crate::fixes::{self, Fixes, advice, opening};
use crate::{evidence, number};

/// All findings of a Run, worst first. What the headline has said already is not said again.
pub(super) fn findings(page: &mut Page<'_>, run: &Run) {
    those(page, run, Severity::Info, false);
}

/// The findings that are worth fixing; what is only worth knowing is named.
pub(super) fn worth_fixing(page: &mut Page<'_>, run: &Run) {
    those(page, run, Severity::Warning, true);
    let known = run
        .findings
        .iter()
        .filter(|finding| finding.severity < Severity::Warning);
    let names: Vec<String> = known
        .map(|finding| format!("{} ({})", finding.cause.name(), finding.place.name()))
        .collect();
    if !names.is_empty() {
        page.wrapped(
            "",
            anstyle::Style::new(),
            &format!("Also worth knowing: {}.", names.join(", ")),
        );
        page.blank();
    }
}

/// In brief, with the first fix alone and without a long list of commands.
fn those(page: &mut Page<'_>, run: &Run, least: Severity, brief: bool) {
    let headline = run
        .verdict
        .as_ref()
        .map(|verdict| verdict.headline.as_str());
    let all = run.findings.iter().zip(fixes::once(&run.findings));
    for (finding, fixes) in all.filter(|(finding, _)| finding.severity >= least) {
        let said = headline == Some(finding.summary.as_str());
        self::finding(page, run, finding, said);
        self::fixes(page, run, finding, &fixes, brief);
        page.blank();
    }
}

fn finding(page: &mut Page<'_>, run: &Run, finding: &Finding, said: bool) {
    let name = page.paint(
        severity(finding.severity),
        &finding.severity.name().to_uppercase(),
    );
    let place = format!(
        "  {}, {}, {} sure",
        finding.cause.name(),
        finding.place.name(),
        number::percent(finding.confidence)
    );
    let place = page.paint(FAINT, &place);
    page.line(&format!("{name}{place}"));
    if !said {
        page.wrapped("  ", anstyle::Style::new(), &finding.summary);
    }
    if !finding.matters_for.is_empty() {
        let uses: Vec<_> = finding.matters_for.iter().map(|kind| kind.name()).collect();
        page.wrapped("  Matters for: ", FAINT, &uses.join(", "));
    }
    for sentence in evidence::sentences(run, finding) {
        page.wrapped("  · ", FAINT, &sentence);
    }
}

fn fixes(page: &mut Page<'_>, run: &Run, finding: &Finding, fixes: &Fixes<'_>, brief: bool) {
    let shown = if brief { 1 } else { fixes.own.len() };
    for fix in fixes.own.iter().take(shown) {
        let text = format!("{}: {}", opening(finding, fix), advice(run, &fix.summary));
        self::fix(page, &text, fix, brief);
    }
    if let Some(elsewhere) = fixes.elsewhere().filter(|_| !brief || fixes.own.is_empty()) {
        page.wrapped("  ", anstyle::Style::new(), &elsewhere);
    }
}

fn fix(page: &mut Page<'_>, text: &str, fix: &Fix, brief: bool) {
    /// Commands that even a short text has room for.
    const FEW: usize = 4;
    page.wrapped("  ", anstyle::Style::new(), text);
    let commands = fix.commands.iter().flat_map(|command| command.lines());
    let width = page.width();
    let lines: Vec<String> = commands
        .flat_map(|command| continued(&clean(command), width))
        .collect();
    if brief && lines.len() > FEW {
        let text = format!(
            "    {} lines of commands: --details shows them",
            lines.len()
        );
        let text = page.paint(FAINT, &text);
        page.line(&text);
    } else {
        lines.iter().for_each(|line| page.line(line));
    }
    if !fix.expect.is_empty() && !brief {
        page.wrapped("    Expect: ", anstyle::Style::new(), &fix.expect);
    }
}

/// A command in lines that a shell reads as one; a comment behind it has a line of its own before it.
pub(super) fn continued(command: &str, columns: usize) -> Vec<String> {
    const INDENT: &str = "    ";
    const GOES_ON: &str = " \\";
    if INDENT.len() + command.chars().count() <= columns {
        return vec![format!("{INDENT}{command}")];
    }
    if let Some((before, comment)) = command
        .split_once(" # ")
        .filter(|(before, _)| !before.trim().is_empty())
    {
        let mut lines = continued(&format!("# {}", comment.trim()), columns);
        lines.extend(continued(before.trim_end(), columns));
        return lines;
    }
    let (goes_on, again) = match command.trim_start().starts_with('#') {
        true => ("", "# "),
        false => (GOES_ON, INDENT),
    };
    let room = columns
        .saturating_sub(2 * INDENT.len() + GOES_ON.len())
        .max(20);
    let lines = wrap(command, room);
    let last = lines.len().saturating_sub(1);
    let each = lines.iter().enumerate().map(|(number, line)| {
        let more = if number > 0 { again } else { "" };
        let goes_on = if number < last { goes_on } else { "" };
        format!("{INDENT}{more}{line}{goes_on}")
    });
    each.collect()
}
