//! What the causes of radio links share.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::results::host::{Interface, Wifi};
use plumb_model::units::si;

use super::judged::{self, Facts, Found, Judged, fine};

/// Interfaces in use that are radios, with their places in the list.
pub(crate) fn radios<'a>(
    facts: &Facts<'a>,
) -> impl Iterator<Item = (usize, &'a Interface, &'a Wifi)> + use<'a> {
    let all = facts.in_use();
    all.filter_map(|(place, interface)| Some((place, interface, interface.wifi.as_ref()?)))
}

/// Band, width and rate, which are only worth knowing.
pub(super) fn bands(facts: &Facts<'_>) -> Vec<Judged> {
    let radios = radios(facts);
    let judged = radios.filter_map(|(_, interface, wifi)| band(interface, wifi));
    judged.collect()
}

fn band(interface: &Interface, wifi: &Wifi) -> Option<Judged> {
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

/// A finding about a radio link.
pub(crate) fn found(cause: Cause, subject: &str, severity: Severity, summary: String) -> Found {
    judged::found(
        subject,
        cause,
        severity,
        &[PathKind::Lan, PathKind::LongPath],
        summary,
    )
    .place(Place::LocalSegment)
    .sure(0.85)
}
