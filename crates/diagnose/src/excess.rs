//! How far a finding is beyond its threshold.

use plumb_model::finding::Finding;

/// How many times its threshold the first piece of evidence is, or the threshold that, where less is worse.
pub(crate) fn excess(finding: &Finding) -> f64 {
    let first = finding.decisive();
    let times = first.and_then(|e| Some(e.value.number()? / e.threshold.number()?));
    times.map_or(0.0, |times| times.max(times.recip()))
}
