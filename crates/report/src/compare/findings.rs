//! What became of the findings. One that is no longer there is gone only where what it rests on was measured again:
//! a Run that was interrupted, or asked for less, says nothing of the rest.

use plumb_model::context::Phase;
use plumb_model::finding::{Evidence, Finding};
use plumb_model::run::{Measurement, Run};
use serde_json::Value;

use super::document::{FindingChanges, FindingRef};
use crate::registry::phase;

/// A loaded phase that lasted less than this share of the one before was cut short: the queue that a finding rests
/// on may not have filled.
const CUT_SHORT_RATIO: f64 = 0.5;

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

/// Whether everything that a finding of `a` rests on was measured in `b`, too.
fn is_measured_again(finding: &Finding, a: &Run, b: &Run) -> bool {
    finding.evidence.iter().all(|evidence| {
        let Some(before) = a.measurement(&evidence.measurement) else {
            return true;
        };
        let document = document(before);
        // Of a list, as the interfaces of a host are, nobody knows which element is the same.
        let was_there = field(&document, evidence).is_some();
        b.measurements.iter().any(|after| {
            phase(after) == phase(before) && !is_cut_short(after, before) && {
                let again = self::document(after);
                is_alike(&again, &document) && (!was_there || field(&again, evidence).is_some())
            }
        })
    })
}

/// Kind and result, as they are saved.
fn document(measurement: &Measurement) -> Value {
    serde_json::to_value(&measurement.outcome).unwrap_or_default()
}

/// Whether two results are of the same kind, and where they have one of the same direction and protocol.
fn is_alike(a: &Value, b: &Value) -> bool {
    ["/kind", "/result/direction", "/result/protocol"]
        .into_iter()
        .all(|name| a.pointer(name) == b.pointer(name))
}

/// What the evidence names, where it is there.
fn field<'a>(document: &'a Value, evidence: &Evidence) -> Option<&'a Value> {
    let mut names = evidence.field.split('.');
    let found = names.try_fold(document, |value, name| value.get(name));
    found.filter(|value| !value.is_null())
}

fn is_cut_short(after: &Measurement, before: &Measurement) -> bool {
    matches!(phase(before), Phase::Up | Phase::Down | Phase::Both)
        && after.duration_s < CUT_SHORT_RATIO * before.duration_s
}
