//! Light in optical modules.

use plumb_model::finding::{Cause, PathKind, Place, Severity};

use super::{Facts, Judged, fine, found};

/// Below this no receiver of the common kinds works, where the module does not say its own limit
/// (10GBASE-ER, the most sensitive, takes −15.8 dBm; 40 km and more are amplified).
const DARK_DBM: f64 = -30.0;

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
    facts
        .in_use()
        .filter_map(|(place, interface)| {
            let module = interface.module.as_ref()?;
            let name = &interface.name;
            let subject = format!("{name} light");
            let weakest = module.receive_dbm.iter().flatten().copied().reduce(f64::min);
            let limit = module.receive_low_dbm.unwrap_or(DARK_DBM);
            Some(match weakest {
                Some(dbm) if dbm > limit => fine(
                    subject,
                    format!("{name} receives {dbm:.1} dBm, {:.1} dB above the module's own limit", dbm - limit),
                ),
                dbm => found(
                    subject,
                    Cause::ModuleLightLow,
                    if dbm.is_some() { Severity::Warning } else { Severity::Critical },
                    &PathKind::ALL,
                    match dbm {
                        Some(dbm) => format!("{name} receives {dbm:.1} dBm of light, and its module warns below {limit:.1} dBm."),
                        None => format!("{name} receives no light."),
                    },
                )
                .place(Place::LocalSegment)
                .evidence(facts.evidence(
                    format!("interfaces[{place}].module.receive_dbm[0]"),
                    dbm.unwrap_or(f64::from(i16::MIN)),
                    "light received, in decibels over a milliwatt",
                    limit,
                ))
                .advice(
                    "Clean both connectors, look for a tight bend, then measure the fibre; the wavelengths of both modules must agree.",
                    "More light, and no damaged frames.",
                )
                .done(),
            })
        })
        .collect()
}
