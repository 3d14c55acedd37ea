//! What became of the findings. One that is no longer there is gone only where what it rests on was measured again.

use plumb_diagnose::{Again, measured_again};
use plumb_model::finding::Finding;
use plumb_model::run::Run;

use super::document::{FindingChanges, FindingRef};

/// What became of the findings from `a` to `b`.
pub(super) fn changes(a: &Run, b: &Run) -> FindingChanges {
    let has = |run: &Run, f: &Finding| {
        let mut findings = run.findings.iter();
        findings.any(|g| (g.cause, g.place) == (f.cause, f.place))
    };
    let missing = a.findings.iter().filter(|f| !has(b, f));
    let missing = missing.map(|f| (measured_again(f, a, b), f));
    let (gone, unmeasured): (Vec<_>, Vec<_>) =
        missing.partition(|(again, _)| *again == Again::Measured);
    let of_b = |still: bool| b.findings.iter().filter(move |f| has(a, f) == still);
    FindingChanges {
        gone: gone
            .into_iter()
            .map(|(_, finding)| short(finding))
            .collect(),
        new: of_b(false).map(short).collect(),
        still: of_b(true).map(short).collect(),
        unmeasured: unmeasured.into_iter().map(not_again).collect(),
    }
}

/// One of which nothing is known, with what was measured in its place.
fn not_again((again, finding): (Again, &Finding)) -> FindingRef {
    let too_low = again == Again::RateTooLow;
    FindingRef {
        note: too_low.then(|| "Not comparable: the rate after did not fill the queue.".to_owned()),
        ..short(finding)
    }
}

fn short(finding: &Finding) -> FindingRef {
    FindingRef {
        cause: finding.cause,
        place: finding.place,
        severity: finding.severity,
        summary: finding.summary.clone(),
        note: None,
    }
}
