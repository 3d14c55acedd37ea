//! Settings of old advice.

use plumb_model::finding::{Cause, PathKind, Severity};

use super::{Facts, Judged, fine, found, tcp};

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
    let mut judged: Vec<Judged> = facts
        .host
        .sysctls
        .iter()
        .enumerate()
        .filter(|(_, sysctl)| !tcp::judges(&sysctl.key))
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
