//! Which grades of latency are shown.

use plumb_model::finding::Cause;
use plumb_model::grade::Grade;
use plumb_model::run::Run;

/// The grade of a phase, where nothing that the Run's verdict lacks or leaves unexplained could make it worse; nothing is
/// worse than F. A Run of a part, which clears nothing, has the grades of its phases.
pub(crate) fn shown(run: &Run, of_phase: Option<Grade>) -> Option<Grade> {
    let mut verdicts = run.verdict.iter().filter(|v| v.clearance.is_some());
    let unexplained = run.findings.iter().any(|f| f.cause == Cause::Unexplained);
    let is_known = verdicts.all(|verdict| verdict.not_measured.is_empty() && !unexplained);
    of_phase.filter(|grade| is_known || *grade == Grade::F)
}
