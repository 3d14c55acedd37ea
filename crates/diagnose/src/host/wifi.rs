//! What is wrong with radio links.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Place, Severity};
use plumb_model::results::host::{Interface, Wifi};
use plumb_model::units::si;

use super::{Facts, Judged, fine, found, ratio};

/// Signal below which high modulations fail (802.11ac needs about −65 dBm for MCS 8 at 80 MHz), and
/// below which the link itself does.
pub(crate) const WEAK_DBM: i32 = -70;
const BROKEN_DBM: i32 = -80;

/// Frames retransmitted for each frame sent: a good link stays below a tenth, and from a fifth on the radio spends its time
/// on it.
pub(crate) const RETRY_RATIO: f64 = 0.2;

/// Share of the time in which the channel is taken, from which on it is taken more often than free when a frame wants to go,
/// and less than half of the air is left.
pub(crate) const BUSY_RATIO: f64 = 0.5;

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
    facts
        .in_use()
        .filter_map(|(place, interface)| Some((place, interface, interface.wifi.as_ref()?)))
        .flat_map(|(place, interface, wifi)| {
            [
                signal(facts, place, interface, wifi),
                retries(facts, place, interface, wifi),
                busy(facts, place, interface, wifi),
                width(interface, wifi),
                power_save(facts, place, interface, wifi),
            ]
        })
        .flatten()
        .collect()
}

fn signal(facts: &Facts<'_>, place: usize, interface: &Interface, wifi: &Wifi) -> Option<Judged> {
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
        of(
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

fn retries(facts: &Facts<'_>, place: usize, interface: &Interface, wifi: &Wifi) -> Option<Judged> {
    let share = ratio(wifi.retries?, wifi.sent?);
    let subject = format!("{} retries", interface.name);
    if share < RETRY_RATIO {
        return Some(fine(
            subject,
            format!(
                "{} sends one frame in {:.0} again",
                interface.name,
                1.0 / share.max(1e-6)
            ),
        ));
    }
    Some(
        of(
            Cause::WifiRetries,
            &subject,
            Severity::Warning,
            format!(
                "{} has to send {:.0} frames again for every 100.",
                interface.name,
                share * 100.0
            ),
        )
        .evidence(facts.evidence(
            format!("interfaces[{place}].wifi.retries"),
            wifi.retries.unwrap_or_default() as f64,
            "frames retried, against a fifth of those sent",
            wifi.sent.unwrap_or_default() as f64 * RETRY_RATIO,
        ))
        .advice(
            "Change to another channel or band: others, or other machines, send in this one.",
            "Fewer frames retried, and less variation of delay.",
        )
        .done(),
    )
}

/// Since the radio came to the channel. Where the driver does not report which frames were its own, a busy channel may be
/// this machine's doing, and is only worth knowing.
fn busy(facts: &Facts<'_>, place: usize, interface: &Interface, wifi: &Wifi) -> Option<Judged> {
    let others = wifi.airtime.and_then(|airtime| airtime.others_ratio());
    let (share, severity, by) = match others {
        Some(others) => (others, Severity::Warning, "others"),
        None => (wifi.busy_ratio?, Severity::Info, "this machine or others"),
    };
    let subject = format!("{} channel", interface.name);
    if share < BUSY_RATIO {
        return Some(fine(
            subject,
            format!(
                "{by} leave the channel of {} free for {:.0} % of the time",
                interface.name,
                (1.0 - share) * 100.0
            ),
        ));
    }
    Some(
        of(
            Cause::WifiChannelBusy,
            &subject,
            severity,
            format!(
                "The channel of {} is taken by {by} {:.0} % of the time.",
                interface.name,
                share * 100.0
            ),
        )
        .evidence(facts.evidence(
            format!("interfaces[{place}].wifi.busy_ratio"),
            share,
            "share of the time in which any station sends, less this radio's own frames where they are known",
            BUSY_RATIO,
        ))
        .advice(
            "Change to a channel with fewer networks; 5 and 6 GHz have more of them.",
            "Less waiting for the air.",
        )
        .done(),
    )
}

fn width(interface: &Interface, wifi: &Wifi) -> Option<Judged> {
    let band = wifi.band()?;
    let rate = wifi.send.and_then(|send| send.bps);
    let at = rate.map_or_else(String::new, |bps| format!(" at {}", si(bps, "bit/s")));
    let width = wifi
        .width_hz
        .map_or_else(String::new, |hz| format!(", {:.0} MHz wide", hz / 1e6));
    let send = wifi.send.unwrap_or_default();
    let streams = send
        .streams
        .map_or_else(String::new, |n| format!(", {n} streams"));
    let summary = format!(
        "{} sends by {} in {band}{width}{streams}{at}",
        interface.name,
        send.protocol.name()
    );
    Some(fine(format!("{} band", interface.name), summary))
}

fn power_save(
    facts: &Facts<'_>,
    place: usize,
    interface: &Interface,
    wifi: &Wifi,
) -> Option<Judged> {
    let subject = format!("{} power saving", interface.name);
    if !wifi.power_save? {
        return Some(fine(
            subject,
            format!("the radio of {} stays awake", interface.name),
        ));
    }
    Some(
        of(Cause::WifiPowerSave, &subject, Severity::Info, format!("The radio of {} sleeps between frames, so what comes waits for up to a beacon, 102 ms.", interface.name))
            .evidence(facts.evidence(
                format!("interfaces[{place}].wifi.power_save"),
                1.0,
                "power saving is on",
                0.0,
            ))
            .interface(
                "Keep the radio awake while delay matters; it costs battery.",
                interface,
                InterfaceChange::WifiPowerSave(false),
                "Round trips from outside vary by tens of milliseconds less.",
            )
            .done(),
    )
}

fn of(cause: Cause, subject: &str, severity: Severity, summary: String) -> super::Found {
    found(
        subject,
        cause,
        severity,
        &[PathKind::Lan, PathKind::LongPath],
        summary,
    )
    .place(Place::LocalSegment)
    .sure(0.85)
}
