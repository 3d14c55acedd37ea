//! A radio sleeps between frames, and what comes for it waits.
//!
//! The access point keeps frames for a station that sleeps until it asks for them after a beacon (IEEE 802.11-2020, 11.2.3).
//! Radios stay awake while much passes, so that a load is not slower, and answers after a silence are.

use plumb_model::finding::{
    Action, Actor, Cause, Evidence, Finding, Fix, InterfaceAction, InterfaceChange, Place, Severity,
};
use plumb_model::need::Need;
use plumb_model::results::host::{Interface, Wifi};
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family, Harm};
use crate::evidence::{Radio, fact};
use crate::facts::count;
use crate::host::{Facts, Judged, Subject, fine, wifi};
use crate::signs::percent;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    harms: Harm::Delay,
    vanishes: "with power saving off, round trips of the idle path to the gateway are as short as under load",
    needs: &[Need::Machine, Need::Idle],
    resembles: &[
        (
            Cause::WifiChannelBusy,
            "there others take the channel, and a radio that stays awake waits as long",
        ),
        (
            Cause::WifiRetries,
            "there the radio's counter of frames retried grows",
        ),
    ],
    yields_to: &[Cause::WifiWeak, Cause::WifiChannelBusy, Cause::WifiRetries],
    examine: |case| slow_answers(case).into_iter().collect(),
    audits: &[(Subject::RadioSleep, audit)],
    ..Entry::PLAIN
};

/// Beacons are 100 units of 1.024 ms apart, unless configured otherwise (IEEE 802.11-2020, 9.4.1.3; hostapd's
/// beacon_int).
const BEACON_S: f64 = 0.1024;

/// A quarter of the round trips wait longer than this, in seconds: what begins at any moment waits for more than a quarter of
/// the time between beacons in three of four cases.
const LEAST_S: f64 = BEACON_S / 4.0;

/// And not longer than this: stations wake for every third beacon at least where groups are to reach them (the DTIM period, 1
/// to 3).
const MOST_S: f64 = 3.0 * BEACON_S;

/// Round trips, so that ten are above the third quartile.
const ENOUGH: u64 = 40;

/// Power saving is on, and delays are of its size; others on the channel may cause such, too.
const CONFIDENCE: f64 = 0.75;

fn slow_answers(case: &Case<'_>) -> Option<Finding> {
    let facts = case.facts(None).by("while measured");
    let radio = facts.known("a radio in use", case.radio())?;
    if !facts.is("the radio saves power", radio.wifi.power_save == Some(true)) {
        return None;
    }
    let to_gateway = facts.known("idle round trips to the gateway", case.idle_to_gateway());
    let (measurement, field, rtt) = to_gateway?;
    // A gateway that answers late itself does not delay what passes through it.
    let whole = case.idle()?.result.rtt_s?;
    let waited_s = rtt.p75 - rtt.min;
    let by_radio = (LEAST_S..=MOST_S).contains(&waited_s) && whole.p75 - whole.min >= LEAST_S;
    let statement = "a quarter of them wait as for a beacon, and so does the path";
    let waits = facts.is(statement, by_radio)
        && facts.at_least(
            "round trips to the gateway",
            count(rtt.count),
            ENOUGH as f64,
        );
    waits.then(|| Finding {
        cause: Cause::WifiPowerSave,
        place: Place::LocalSegment,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The radio of {} sleeps between frames: {} of the round trips to the gateway take {} longer than the fastest while nothing loads them, as what waits for the next beacon does.",
            radio.interface.name,
            percent(0.25),
            human_seconds(waited_s)
        ),
        evidence: vec![
            fact(
                measurement,
                field,
                waited_s,
                "third quartile of idle round trips to the gateway above the smallest, against a quarter of the time between beacons",
                LEAST_S,
            ),
            Evidence {
                measurement: radio.measurement().to_owned(),
                field: radio.field("power_save"),
                value: 1.0.into(),
                rule: "power saving is on".to_owned(),
                threshold: 0.0.into(),
            },
        ],
        fixes: vec![awake(radio)],
        kb: "host".to_owned(),
    })
}

fn awake(radio: Radio<'_>) -> Fix {
    Fix {
        on: Actor::ThisHost,
        summary: "Keep the radio awake while delay matters; it costs battery.".to_owned(),
        action: Some(Action::Interface(InterfaceAction {
            interface: radio.interface.name.clone(),
            change: InterfaceChange::WifiPowerSave(false),
        })),
        commands: Vec::new(),
        expect: "Idle round trips to the gateway vary by a few milliseconds.".to_owned(),
    }
}

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let radios = wifi::radios(facts);
    let judged = radios.filter_map(|(place, interface, wifi)| judge(facts, place, interface, wifi));
    judged.collect()
}

fn judge(facts: &Facts<'_>, place: usize, interface: &Interface, wifi: &Wifi) -> Option<Judged> {
    let subject = format!("{} power saving", interface.name);
    if !wifi.power_save? {
        return Some(fine(
            subject,
            format!("the radio of {} stays awake", interface.name),
        ));
    }
    Some(
        wifi::found(Cause::WifiPowerSave, &subject, Severity::Info, format!("The radio of {} sleeps between frames, so what comes waits for up to a beacon, 102 ms.", interface.name))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::host::tests::on_wifi;
    use crate::testing::{beside_gateway, counting, found_in, idle_spread};
    use plumb_model::results::host::Wifi;

    /// How often it is found where round trips of the idle path, and those to the gateway, are so much above the fastest in a
    /// quarter of all cases.
    fn found(power_save: bool, path_s: f64, gateway_s: f64, counted: &[(&str, u64)]) -> usize {
        let wifi = Wifi {
            power_save: Some(power_save),
            ..Wifi::default()
        };
        let measurements = [
            on_wifi(wifi),
            idle_spread(0.02, path_s),
            beside_gateway(0.002, gateway_s),
            counting(counted),
        ];
        found_in(CAUSE.examine, &measurements).len()
    }

    const BY_RADIO: &[(&str, u64)] = &[("wlan0.rx_packets", 90), ("wlan0.rx_bytes", 9000)];

    #[test]
    fn a_sleeping_radio_is_found_where_answers_wait_for_beacons() {
        assert_eq!(found(true, 0.07, 0.06, BY_RADIO), 1);
        assert_eq!(found(false, 0.07, 0.06, BY_RADIO), 0, "it stays awake");
        assert_eq!(found(true, 0.005, 0.004, BY_RADIO), 0, "no delay shows");
        assert_eq!(found(true, 0.005, 0.06, BY_RADIO), 0, "a slow gateway");
        assert_eq!(found(true, 0.8, 0.8, BY_RADIO), 0, "longer than it sleeps");
    }

    #[test]
    fn a_radio_that_carries_nothing_is_not_the_path() {
        let cable = [("eth0.rx_packets", 90), ("eth0.rx_bytes", 9000)];
        assert_eq!(found(true, 0.07, 0.06, &cable), 0);
    }
}
