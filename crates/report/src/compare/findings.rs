//! What became of the findings. One that is no longer there is gone only where what it rests on was measured again.

use plumb_diagnose::is_measured_again;
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
    let (gone, unmeasured): (Vec<_>, Vec<_>) = missing.partition(|f| is_measured_again(f, a, b));
    let of_b = |still: bool| b.findings.iter().filter(move |f| has(a, f) == still);
    FindingChanges {
        gone: gone.into_iter().map(short).collect(),
        new: of_b(false).map(short).collect(),
        still: of_b(true).map(short).collect(),
        unmeasured: unmeasured.into_iter().map(short).collect(),
    }
}

fn short(finding: &Finding) -> FindingRef {
    FindingRef {
        cause: finding.cause,
        place: finding.place,
        severity: finding.severity,
        summary: finding.summary.clone(),
    }
}
