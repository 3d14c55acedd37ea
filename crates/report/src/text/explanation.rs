//! Why a cause was found, or was not, in ten lines.

use plumb_diagnose::explanation::{Explanation, Standing};
use plumb_diagnose::facts::State;
use plumb_model::need::Need;
use plumb_model::vocabulary::Vocabulary as _;

use super::layout::{BOLD, FAINT, Page, wrap};
use super::style::Style;
use crate::number;

/// Lines of an explanation, so that it is read at a glance.
const MOST_LINES: usize = 10;

/// Columns of the mark before each line.
const MARK_COLUMNS: usize = 5;

/// An explanation as text, each line ended.
pub fn render_explanation(explanation: &Explanation, style: &Style) -> String {
    let mut page = Page::new(style);
    let title = page.paint(
        BOLD,
        &format!("Why {}, or why not", explanation.cause.name()),
    );
    page.line(&title);
    let standing = standing(explanation);
    page.wrapped("", anstyle::Style::new(), &standing);
    let room = page.width().saturating_sub(MARK_COLUMNS).max(20);
    let used = 1 + wrap(&standing, page.width()).len();
    let mut left = MOST_LINES.saturating_sub(used);
    let lines = lines(explanation);
    let mut shown = 0;
    for (at, (mark, text)) in lines.iter().enumerate() {
        let takes = wrap(text, room).len();
        // The last line is kept for how many are left out.
        let reserved = usize::from(at + 1 < lines.len());
        if takes + reserved > left {
            break;
        }
        page.opened(&format!("{mark:<MARK_COLUMNS$}"), MARK_COLUMNS, FAINT, text);
        left -= takes;
        shown += 1;
    }
    match lines.len() - shown {
        0 => {}
        more => page.line(&format!("{:MARK_COLUMNS$}and {more} more", "")),
    }
    page.blank();
    page.finish()
}

/// Where the cause stands, in a sentence or two.
fn standing(explanation: &Explanation) -> String {
    let name = explanation.cause.name();
    let has = |state: State| explanation.facts.iter().any(|fact| fact.state == state);
    match &explanation.standing {
        Standing::Found(places) => {
            let each = places.iter().map(|(place, confidence)| {
                format!("{}, {} sure", place.name(), number::percent(*confidence))
            });
            let places: Vec<String> = each.collect();
            format!("{name} was found: {}.", places.join("; "))
        }
        Standing::AccountedFor(other) => format!(
            "Its rule found {name}, and {} accounts for it, so that it is no finding of its own.",
            other.name()
        ),
        Standing::Contradicted => format!(
            "Its rule found {name}, and what else was seen makes it more unlikely than likely."
        ),
        Standing::OfMachineAlone => format!(
            "A machine has {name}, which is only worth knowing, or was counted since it booted: it holds back no path."
        ),
        Standing::Absent if is_silent(explanation) => format!(
            "{name} was not found, and all that it needs was measured. Its rule does not say which of its conditions failed."
        ),
        Standing::Absent if !has(State::NotMeasured) => {
            format!("{name} was not found, and all that it needs was measured.")
        }
        Standing::Absent if has(State::Unmet) => format!(
            "{name} was not found in what was measured. A check measures the rest only where something is wrong that nothing else explains."
        ),
        Standing::Absent => format!(
            "{name} was not found. A check measures what is missing here only where something is wrong that nothing else explains."
        ),
        Standing::NotLookedFor(_) => {
            format!(
                "{name} was not found, and cannot be excluded: not all that it needs was measured."
            )
        }
    }
}

/// What each line says behind its mark, what decides first.
fn lines(explanation: &Explanation) -> Vec<(&'static str, String)> {
    let missing = |need: Need| ("?", format!("{}: not measured", need.meaning()));
    let mut lines: Vec<(&'static str, String)> = Vec::new();
    let of_state = |state: State| {
        let of = explanation
            .facts
            .iter()
            .filter(move |fact| fact.state == state);
        of.map(move |fact| (mark(state), fact.shown()))
    };
    match explanation.standing {
        Standing::Found(_) => {
            lines.extend(explanation.evidence.iter().map(|evidence| {
                let (value, threshold) = number::evidence(evidence);
                let rule = &evidence.rule;
                ("yes", format!("{value}, threshold {threshold}: {rule}"))
            }));
        }
        _ => lines.extend(
            [State::Unmet, State::NotMeasured]
                .into_iter()
                .flat_map(of_state),
        ),
    }
    let checks = explanation.checks.iter();
    lines.extend(checks.map(|(subject, text)| ("–", format!("{subject}: {text}"))));
    if let Standing::NotLookedFor(needs) = &explanation.standing {
        lines.extend(needs.iter().map(|need| missing(*need)));
    }
    if !matches!(explanation.standing, Standing::Found(_)) {
        lines.extend(of_state(State::Met));
    }
    let seen = explanation.seen.iter();
    lines.extend(seen.map(|(what, bits)| {
        let (speaks, sign) = match *bits < 0.0 {
            true => ("against", '−'),
            false => ("for", '+'),
        };
        let bits = bits.abs();
        let text = format!("beside its rule: {what}, which speaks {speaks} it ({sign}{bits} bit)");
        ("–", text)
    }));
    if is_silent(explanation) {
        let measured = explanation.needs.iter().filter(|(_, measured)| *measured);
        lines.extend(measured.map(|(need, _)| ("yes", format!("{}: measured", need.meaning()))));
    }
    lines
}

/// Whether neither its rule nor an audit says anything of it.
fn is_silent(explanation: &Explanation) -> bool {
    explanation.facts.is_empty() && explanation.checks.is_empty()
}

fn mark(state: State) -> &'static str {
    match state {
        State::Unmet => "no",
        State::NotMeasured => "?",
        State::Met => "yes",
    }
}

#[cfg(test)]
mod tests {
    use plumb_model::finding::Cause;

    use super::*;

    fn explanation(standing: Standing) -> Explanation {
        Explanation {
            cause: Cause::Policer,
            standing,
            facts: Vec::new(),
            checks: Vec::new(),
            evidence: Vec::new(),
            needs: vec![(Need::Upload, true), (Need::Download, false)],
            seen: vec![("no queue of the load's own stands", -2.0)],
        }
    }

    #[test]
    fn what_was_not_measured_is_named_and_what_was_seen_says_for_which_side_it_speaks() {
        let not = explanation(Standing::NotLookedFor(vec![Need::Download]));
        let text = render_explanation(&not, &Style::default());
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        for line in [
            "Why policer, or why not policer was not found, and cannot be excluded",
            "? A download for as long as a rate takes to become steady: not measured",
            "which speaks against it (−2 bit)",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let silent = render_explanation(&explanation(Standing::Absent), &Style::default());
        assert!(silent.contains("Its rule does not say"), "{silent}");
    }

    #[test]
    fn an_explanation_has_ten_lines_at_most_and_counts_the_rest() {
        let mut long = explanation(Standing::OfMachineAlone);
        long.checks = vec![("eth0".to_owned(), "a sentence of some words. ".repeat(5)); 20];
        let text = render_explanation(&long, &Style::default());
        assert!(text.trim_end().lines().count() <= MOST_LINES, "{text}");
        assert!(text.contains(" more\n"), "{text}");
    }
}
