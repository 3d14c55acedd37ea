//! The signal of a radio link is weak.

use plumb_model::finding::{Cause, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::{Interface, Wifi};

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, wifi};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a cable, or a place nearer to the access point, has neither the delay nor the loss",
    needs: &[Need::Machine],
    resembles: &[
        (
            Cause::BufferbloatDown,
            "a queue on the line delays wired machines too",
        ),
        (
            Cause::WifiChannelBusy,
            "there the signal is strong and others take the air",
        ),
    ],
    audits: &[(Subject::Signal, audit)],
    ..Entry::PLAIN
};

/// Signal below which high modulations fail (802.11ac needs about −65 dBm for MCS 8 at 80 MHz), and
/// below which the link itself does.
pub(super) const WEAK_DBM: i32 = -70;
const BROKEN_DBM: i32 = -80;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let radios = wifi::radios(facts);
    let judged = radios.filter_map(|(place, interface, wifi)| judge(facts, place, interface, wifi));
    judged.collect()
}

fn judge(facts: &Facts<'_>, place: usize, interface: &Interface, wifi: &Wifi) -> Option<Judged> {
    let (field, dbm) = match (wifi.average_signal_dbm, wifi.signal_dbm) {
        (Some(dbm), _) => ("average_signal_dbm", dbm),
        (None, dbm) => ("signal_dbm", dbm?),
    };
    let subject = format!("{} signal", interface.name);
    if dbm >= WEAK_DBM {
        return Some(fine(
            subject,
            format!("{} hears its access point at {dbm} dBm", interface.name),
        ));
    }
    let severity = if dbm < BROKEN_DBM {
        Severity::Critical
    } else {
        Severity::Warning
    };
    Some(
        wifi::found(
            Cause::WifiWeak,
            &subject,
            severity,
            format!(
                "{} hears its access point at only {dbm} dBm.",
                interface.name
            ),
        )
        .evidence(facts.evidence(
            format!("interfaces[{place}].wifi.{field}"),
            f64::from(dbm),
            "signal in decibels over a milliwatt; high rates need more",
            f64::from(WEAK_DBM),
        ))
        .advice(
            "Move closer, or put an access point into this room; a cable is better still.",
            "A higher rate and fewer frames retried.",
        )
        .done(),
    )
}
