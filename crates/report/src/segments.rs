//! Checks of hosts along one path, in words: in which segment each finding is.

use plumb_diagnose::{places, segments};
use plumb_model::run::Run;
use plumb_model::segments::{SegmentFinding, SegmentStep, Segments, Share, StepOf};

use crate::number;
use crate::places::warnings;

/// What Runs of hosts along one path come to, the end last, with what must be known of the checks.
pub fn of_runs(runs: &[Run]) -> Segments {
    let mut segments = segments::segments(runs);
    let notes = warnings(runs, &places::hosts(runs));
    segments.notes.extend(notes);
    segments
}

/// Names a host that was to be checked, and why nothing was measured towards it.
pub fn leave_out(segments: &mut Segments, host: &str, why: &str) {
    let note = format!("Nothing was measured towards {host}: {why}.");
    segments.notes.push(note);
}

/// The names of hosts and this machine, by which segments are named.
struct Names<'a>(&'a Segments);

impl Names<'_> {
    fn host(&self, at: usize) -> &str {
        self.0.hosts.get(at).map_or("the end", |host| &host.name)
    }

    fn segment(&self, at: usize) -> String {
        match at.checked_sub(1) {
            None => format!("between here and {}", self.host(at)),
            Some(before) => format!("between {} and {}", self.host(before), self.host(at)),
        }
    }

    /// One segment, or those that cannot be distinguished, from the first to the last.
    fn all(&self, segments: &[usize]) -> Option<String> {
        match segments {
            [] => None,
            [only] => Some(self.segment(*only)),
            many => {
                let named: Vec<String> = many.iter().map(|at| self.segment(*at)).collect();
                Some(named.join(", or "))
            }
        }
    }

    /// The hosts with a share, joined.
    fn with(&self, finding: &SegmentFinding, share: Share) -> Option<String> {
        let all = finding.shares.iter().enumerate();
        let those = all.filter(|(_, of)| of.share == share);
        let names: Vec<&str> = those.map(|(at, _)| self.host(at)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// Where a finding is, as a clause.
fn whereabouts(finding: &SegmentFinding, names: &Names<'_>) -> String {
    let segments = names.all(&finding.segments);
    let last = names.0.hosts.len().saturating_sub(1);
    let alone = finding.only_at.map(|at| match at == last {
        true => format!("in {} itself", names.host(at)),
        false => format!(
            "in {} itself or on a branch that only it uses, which is not on the path to {}",
            names.host(at),
            names.host(last)
        ),
    });
    match (segments, alone) {
        (Some(segments), Some(alone)) => format!("{segments}, or {alone}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "it is unknown where".to_owned(),
    }
}

/// What it all comes to.
pub(crate) fn headline(segments: &Segments) -> String {
    let names = Names(segments);
    let is_settled = |finding: &&SegmentFinding| {
        finding.segments.len() + usize::from(finding.only_at.is_some()) == 1
    };
    let mut all = segments.findings.iter();
    match all.clone().find(is_settled).or(all.next()) {
        Some(worst) => format!(
            "The worst {} {}: {} ({}).",
            match is_settled(&worst) {
                true => "is",
                false => "may be",
            },
            whereabouts(worst, &names),
            worst.cause,
            worst.place
        ),
        None if segments.hosts.iter().any(|host| host.idle_rtt_s.is_some()) => {
            "Nothing worth fixing was found on any segment.".to_owned()
        }
        None => "No host answers.".to_owned(),
    }
}

/// Each finding with where it is and who has it.
pub(crate) fn sentences(segments: &Segments) -> Vec<String> {
    let names = Names(segments);
    let sentence = |finding: &SegmentFinding| {
        let mut text = format!(
            "{} ({}, {}): {}.",
            finding.cause,
            finding.severity,
            finding.place,
            whereabouts(finding, &names)
        );
        for (share, title) in [(Share::Has, "Has it"), (Share::Lacks, "Lacks it")] {
            if let Some(hosts) = names.with(finding, share) {
                text.push_str(&format!(" {title}: {hosts}."));
            }
        }
        for (at, of) in finding.shares.iter().enumerate() {
            if let (Share::Unsure, Some(why)) = (of.share, &of.why) {
                text.push_str(&format!(" Unknown of {}: {why}.", names.host(at)));
            }
        }
        if finding.segments.len() > 1 {
            text.push_str(" These checks cannot distinguish those segments.");
        }
        text
    };
    segments.findings.iter().map(sentence).collect()
}

/// Where rates, sizes and round trips change.
pub(crate) fn steps(segments: &Segments) -> Vec<String> {
    let names = Names(segments);
    let sentence = |step: &SegmentStep| {
        let value = |of: f64| match step.of {
            StepOf::Up | StepOf::Down => number::rate(of),
            StepOf::PacketSize => format!("{of:.0} B"),
            StepOf::RoundTrip => number::seconds(of),
        };
        let before = step
            .before
            .map(|before| format!(", {} before it", value(before)));
        let before = before.unwrap_or_default();
        let at = names.all(&step.segments).unwrap_or_default();
        let after = value(step.after);
        match step.of {
            StepOf::Up => format!("Narrowest up: {at} ({after}{before})."),
            StepOf::Down => format!("Narrowest down: {at} ({after}{before})."),
            StepOf::PacketSize => format!("Packets become smaller {at} ({after}{before})."),
            StepOf::RoundTrip => {
                format!("Most of the round trip is {at} ({after} in all{before}).")
            }
        }
    };
    segments.steps.iter().map(sentence).collect()
}
