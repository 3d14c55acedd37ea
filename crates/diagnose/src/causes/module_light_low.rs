//! An optical module gets too little light.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "clean connectors or another fibre bring the light back",
    needs: &[Need::Machine],
    audits: &[(Subject::Light, audit)],
    ..Entry::PLAIN
};

/// Below this no receiver of the common kinds works, where the module does not say its own limit
/// (10GBASE-ER, the most sensitive, takes −15.8 dBm; 40 km and more are amplified).
const DARK_DBM: f64 = -30.0;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    facts
        .in_use()
        .filter_map(|(place, interface)| {
            let module = interface.module.as_ref()?;
            let name = &interface.name;
            let subject = format!("{name} light");
            let lanes = module.receive_dbm.iter().enumerate();
            let lit = lanes.filter_map(|(lane, dbm)| Some((lane, (*dbm)?)));
            let weakest = lit.min_by(|a, b| a.1.total_cmp(&b.1));
            let (lane, weakest) = (weakest.map_or(0, |w| w.0), weakest.map(|w| w.1));
            let (limit, whose) = match module.receive_low_dbm {
                Some(limit) => (limit, "the module's own limit"),
                None => (DARK_DBM, "what modules usually need"),
            };
            Some(match weakest {
                Some(dbm) if dbm > limit => fine(
                    subject,
                    format!("{name} receives {dbm:.1} dBm, {:.1} dB above {whose}", dbm - limit),
                ),
                dbm => found(
                    subject,
                    Cause::ModuleLightLow,
                    if dbm.is_some() { Severity::Warning } else { Severity::Critical },
                    &PathKind::ALL,
                    match dbm {
                        Some(dbm) => format!("{name} receives {dbm:.1} dBm of light, which is not above {whose}, {limit:.1} dBm."),
                        None => format!("{name} receives no light."),
                    },
                )
                .place(Place::LocalSegment)
                .evidence(match dbm {
                    Some(dbm) => facts.evidence(
                        format!("interfaces[{place}].module.receive_dbm[{lane}]"),
                        dbm,
                        "light received, in decibels over a milliwatt",
                        limit,
                    ),
                    None => facts.evidence(
                        format!("interfaces[{place}].counters.rx_packets"),
                        interface.counters.rx_packets as f64,
                        "packets received so far; the module measures no light in any lane now",
                        0.0,
                    ),
                })
                .advice(
                    "Clean both connectors, look for a tight bend, then measure the fibre; the wavelengths of both modules must agree.",
                    "More light, and no damaged frames.",
                )
                .done(),
            })
        })
        .collect()
}
