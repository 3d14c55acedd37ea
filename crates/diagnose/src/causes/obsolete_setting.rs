//! A setting of old advice does harm today.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::need::Need;

use super::tcp_feature_off;
use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the kernel's default carries more",
    needs: &[Need::Machine],
    audits: &[(Subject::OldAdvice, audit)],
    ..Entry::PLAIN
};

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let mut judged: Vec<Judged> = facts
        .host
        .sysctls
        .iter()
        .enumerate()
        .filter(|(_, sysctl)| !tcp_feature_off::judges(&sysctl.key))
        .filter_map(|(place, sysctl)| {
            let why = sysctl.never_because.as_deref()?;
            let value = sysctl.value.as_deref().unwrap_or_default();
            Some(
                found(
                    sysctl.key.clone(),
                    Cause::ObsoleteSetting,
                    Severity::Warning,
                    &PathKind::ALL,
                    format!(
                        "{} is {value}, which is never good advice: {why}",
                        sysctl.key
                    ),
                )
                .evidence(facts.evidence(
                    format!("sysctls[{place}].value"),
                    value,
                    "the value, which the catalogue of knobs refuses",
                    "any other",
                ))
                .advice(
                    "Take it out of sysctl.d and set it back to the kernel's default.",
                    "As it was before it was set.",
                )
                .done(),
            )
        })
        .collect();
    if judged.is_empty() && facts.host.sysctls.iter().any(|s| s.value.is_some()) {
        judged.push(fine(
            "old advice",
            "no variable has a value that is known to do harm",
        ));
    }
    judged
}
