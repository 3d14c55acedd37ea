//! The audit of a machine: what the rules of all causes say of it, and what that comes to.

use plumb_model::finding::{Finding, Severity, Verdict};
use plumb_model::order::sort_few;
use plumb_model::results::host::{Check, CheckState, HostResult};

use super::judged::{Facts, Judged};
use super::subject::Subject;
use super::{tcp, wifi};
use crate::causes;
use crate::entry::AuditRule;

/// Judges a machine. `measurement` is the name that evidence has for what was read.
pub fn audit(host: &HostResult, measurement: &str) -> Audit {
    let facts = Facts { host, measurement };
    let of_causes = causes::all().flat_map(|(_, entry)| entry.audits);
    let mut rules: Vec<&(Subject, AuditRule)> = of_causes.chain(WITHOUT_A_CAUSE).collect();
    sort_few(&mut rules, |a, b| a.0.cmp(&b.0));
    conclude(
        rules
            .into_iter()
            .flat_map(|(_, rule)| rule(&facts))
            .collect(),
    )
}

/// The rate in bit/s and the round trip in seconds that a machine's buffers are judged by.
pub fn long_path(host: &HostResult) -> (f64, f64) {
    tcp::long_path(&Facts {
        host,
        measurement: "",
    })
}

/// What is shown and never wrong.
const WITHOUT_A_CAUSE: &[(Subject, AuditRule)] = &[(Subject::Band, wifi::bands)];

/// What the audit came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// Everything that was looked at.
    pub checks: Vec<Check>,
    /// What is not fine, worst first.
    pub findings: Vec<Finding>,
    pub verdict: Verdict,
}

/// Sorts what rules said.
pub(super) fn conclude(judged: Vec<Judged>) -> Audit {
    let mut checks = Vec::new();
    let mut findings = Vec::new();
    for one in judged {
        let (subject, state, summary) = match one {
            Judged::Fine(subject, summary) => (subject, CheckState::Fine, summary),
            Judged::Unknown(subject, summary) => (subject, CheckState::Unknown, summary),
            Judged::Found(subject, finding) => {
                let summary = finding.summary.clone();
                findings.push(*finding);
                (subject, CheckState::Found, summary)
            }
        };
        checks.push(Check {
            subject,
            state,
            summary,
        });
    }
    sort_few(&mut findings, |a, b| b.severity.cmp(&a.severity));
    let verdict = Verdict::of_a_part(headline(&checks, &findings));
    Audit {
        checks,
        findings,
        verdict,
    }
}

fn headline(checks: &[Check], findings: &[Finding]) -> String {
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let fine = count(CheckState::Fine);
    let unknown = match count(CheckState::Unknown) {
        0 => String::new(),
        n => format!(", {n} could not be read"),
    };
    let worse = findings.iter().filter(|f| f.severity > Severity::Info);
    let mut causes: Vec<&str> = worse.clone().map(|finding| finding.cause.name()).collect();
    causes.dedup();
    let known = match findings.len() - worse.clone().count() {
        0 => String::new(),
        1 => ", one is worth knowing".to_owned(),
        several => format!(", {several} are worth knowing"),
    };
    match findings.first() {
        Some(worst) if worst.severity > Severity::Info => format!(
            "{} of {} checks found something to fix ({}){known}, {fine} are fine{unknown}.",
            worse.count(),
            checks.len(),
            causes.join(", ")
        ),
        _ => format!(
            "Nothing needs fixing: {fine} of {} checks are fine{known}{unknown}.",
            checks.len()
        ),
    }
}
