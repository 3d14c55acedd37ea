//! Others take most of a radio channel's time.
//!
//! Stations listen before they send (IEEE 802.11-2020, 10.3), so that a frame waits while anybody sends, and the air that
//! others take is not there for this machine.

use plumb_model::context::Phase;
use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::{Interface, Wifi};

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Counted, fact};
use crate::facts::ratio as share;
use crate::host::{Facts, Judged, Subject, fine, wifi};
use crate::signs::percent;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "on another channel or band, or over a cable, rates are higher and round trips steadier",
    needs: &[Need::Machine, Need::Radio],
    resembles: &[
        (
            Cause::WifiWeak,
            "there the signal is weak, and the channel may be free",
        ),
        (
            Cause::CrossTraffic,
            "there others fill the line, and the radio's own counter of busy time stays low",
        ),
    ],
    examine: |case| worst(case).into_iter().collect(),
    audits: &[(Subject::Channel, audit)],
    ..Entry::PLAIN
};

/// What an interface carries at most of its own, in bit/s, where what takes the channel meanwhile is others': at 1 Mbit/s of
/// payload even the lowest rate of 802.11a, 6 Mbit/s, takes a sixth of the time.
const OWN_BPS: f64 = 1e6;

/// A driver's counter of the time on the channel is of this phase where it grew by about the phase's length: some begin anew
/// with each reading, and some are of the last scan.
const LENGTH_RATIO: std::ops::RangeInclusive<f64> = 0.5..=1.5;

/// The driver measures it; what it takes for busy differs.
const CONFIDENCE: f64 = 0.85;

fn worst(case: &Case<'_>) -> Option<Finding> {
    let all = case.counted().flat_map(|counted| {
        let radios = counted.interfaces().into_iter();
        radios.filter_map(move |name| Some((others_ratio(counted, name)?, name, counted)))
    });
    let facts = case.facts(None).by("while measured");
    let most = all.max_by(|a, b| a.0.total_cmp(&b.0));
    let most = facts.known("a radio's counter of the time that others take", most);
    let (ratio, name, counted) = most?;
    let taken = facts.at_least("time that others take", share(ratio), BUSY_RATIO);
    taken.then(|| Finding {
        cause: Cause::WifiChannelBusy,
        place: Place::LocalSegment,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Others take {} of the time of the Wi-Fi channel of {name} {}: frames wait for it, and less than half of the air is left.",
            percent(ratio),
            counted.during()
        ),
        evidence: vec![fact(
            counted.measurement,
            format_args!("grown.{name}.wifi_busy_ms"),
            ratio,
            "share of the time in which the channel was busy, without this radio's own frames",
            BUSY_RATIO,
        )],
        fixes: vec![Fix::advice(
            Actor::Router,
            "Set the access point to a channel with fewer networks, or to 5 or 6 GHz, which have more channels; a cable needs none.",
            "Others take less than half of the channel's time, and round trips to the gateway vary less.",
        )],
        kb: "host".to_owned(),
    })
}

/// Share of the time that the channel was taken by others; `None` where that cannot be separated from this machine's
/// frames.
fn others_ratio(counted: Counted<'_>, name: &str) -> Option<f64> {
    let ms = |counter| counted.of(name, counter) as f64;
    let (all, busy) = (ms("wifi_channel_ms"), ms("wifi_busy_ms"));
    let length_ms = counted.measurement.duration_s * 1e3;
    let is_of_phase = length_ms > 0.0 && LENGTH_RATIO.contains(&(all / length_ms));
    if !is_of_phase || busy > all {
        return None;
    }
    let (sent, received) = (ms("wifi_sent_ms"), ms("wifi_own_received_ms"));
    let bytes = ["rx_bytes", "tx_bytes"].map(|way| counted.of(name, way) as f64);
    let own_bps = bytes.iter().sum::<f64>() * 8e3 / length_ms;
    let is_idle = counted.measurement.context.phase == Some(Phase::Idle) && own_bps <= OWN_BPS;
    // A counter that stood still under load is one that the driver has not.
    let is_own_known = sent > 0.0 && received > 0.0;
    (is_idle || is_own_known).then(|| ((busy - sent - received) / all).max(0.0))
}

/// Share of the time in which the channel is taken, from which on it is taken more often than free when a frame wants to go,
/// and less than half of the air is left.
const BUSY_RATIO: f64 = 0.5;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let radios = wifi::radios(facts);
    let judged = radios.filter_map(|(place, interface, wifi)| judge(facts, place, interface, wifi));
    judged.collect()
}

/// Since the radio came to the channel. Where the driver does not report which frames were its own, a busy channel may be
/// this machine's doing, and is only worth knowing.
fn judge(facts: &Facts<'_>, place: usize, interface: &Interface, wifi: &Wifi) -> Option<Judged> {
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
        wifi::found(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{counting, found_in};

    /// How often it is found after a second in which the channel was busy for so long, and of that with own frames.
    fn found(phase: Phase, all: u64, busy: u64, own: u64, bytes: u64) -> usize {
        let mut counted = counting(&[
            ("wlan0.rx_packets", 100),
            ("wlan0.rx_bytes", bytes),
            ("wlan0.wifi_channel_ms", all),
            ("wlan0.wifi_busy_ms", busy),
            ("wlan0.wifi_sent_ms", own / 2),
            ("wlan0.wifi_own_received_ms", own / 2),
        ]);
        counted.context.phase = Some(phase);
        found_in(CAUSE.examine, &[counted]).len()
    }

    #[test]
    fn what_others_take_is_told_from_own_frames() {
        assert_eq!(found(Phase::Idle, 1000, 700, 0, 20_000), 1);
        assert_eq!(found(Phase::Idle, 1000, 300, 0, 20_000), 0);
        assert_eq!(found(Phase::Down, 1000, 900, 700, 9_000_000), 0, "its own");
        assert_eq!(found(Phase::Down, 1000, 900, 100, 900_000), 1);
        assert_eq!(found(Phase::Down, 1000, 900, 0, 9_000_000), 0, "whose?");
    }

    #[test]
    fn a_counter_that_is_not_of_the_phase_says_nothing() {
        assert_eq!(found(Phase::Idle, 40, 39, 0, 20_000), 0, "a scan");
        assert_eq!(found(Phase::Idle, 90_000, 80_000, 0, 20_000), 0);
        assert_eq!(found(Phase::Idle, 0, 0, 0, 0), 0);
        assert_eq!(found(Phase::Idle, 1000, 1100, 0, 0), 0);
    }
}
