//! A radio leaves its channel to look for other access points, and what comes meanwhile waits.
//!
//! A station that scans while it is connected listens to each other channel for 30 to 110 ms (Linux net/mac80211/scan.c,
//! IEEE80211_CHANNEL_TIME and IEEE80211_PASSIVE_CHANNEL_TIME) and comes back in between. Desktops scan every few seconds while
//! a list of networks is open, and every 30 s where the signal is weak (wpa_supplicant's bgscan as NetworkManager sets it);
//! programs that ask for a place do so, too.

use plumb_model::context::Phase;
use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family, Harm};
use crate::evidence::fact;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    harms: Harm::Delay,
    vanishes: "while nothing asks for a scan, the longest round trips of the idle path to the gateway are as short as the others",
    needs: &[Need::Machine, Need::Radio, Need::Idle],
    resembles: &[
        (
            Cause::WifiPowerSave,
            "there a quarter of all idle round trips wait, and no scan is needed for it",
        ),
        (
            Cause::WifiChannelBusy,
            "there the radio stays on its channel, which others fill",
        ),
        (
            Cause::Outage,
            "there packets are lost for a time, and a scan only delays them",
        ),
    ],
    yields_to: &[Cause::WifiWeak],
    examine: |case| delayed(case).into_iter().collect(),
    ..Entry::PLAIN
};

/// The least that a visit to one channel takes, in seconds.
const VISIT_S: f64 = 0.03;

/// The longest wait that is one visit, in seconds: four passive ones in a row.
const MOST_S: f64 = 0.5;

/// Three of four round trips stay below this above the fastest, in seconds: what waits more often waits for something else, a
/// beacon (a quarter of 102.4 ms, see wifi-power-save) or a busy channel.
const USUAL_S: f64 = 0.0256;

/// The time of the latest scan must move by so much, in ms, to belong to another scan: the kernel reports its age to a
/// tick, which is 10 ms at most.
const ANOTHER_MS: u64 = 100;

/// Round trips of which the longest says something.
const ENOUGH: u64 = 40;

/// A scan and the delay happened within the same seconds; a busy channel may delay as long now and then.
const CONFIDENCE: f64 = 0.85;

fn delayed(case: &Case<'_>) -> Option<Finding> {
    let radio = case.radio()?;
    let name = &radio.interface.name;
    let counter = format!("{name}.wifi_scanned_at_ms");
    let mut idle = case
        .counted()
        .filter(|counted| counted.measurement.context.phase == Some(Phase::Idle));
    let scanned = idle.find(|counted| counted.grown(&counter) >= ANOTHER_MS)?;
    let (measurement, field, rtt) = case.idle_to_gateway()?;
    let whole = case.idle()?.result.rtt_s?;
    let longest_s = rtt.max - rtt.p50;
    // A gateway that answers late itself does not delay what passes through it.
    let is_visit = (VISIT_S..=MOST_S).contains(&longest_s) && whole.max - whole.p50 >= VISIT_S;
    let is_seldom = rtt.p75 - rtt.min < USUAL_S;
    (is_visit && is_seldom && rtt.count >= ENOUGH).then(|| Finding {
        cause: Cause::WifiScans,
        place: Place::LocalSegment,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The radio of {name} left its channel to scan others while nothing loaded the path, and round trips to the gateway took up to {} longer than usual: calls and games stutter with each scan.",
            human_seconds(longest_s)
        ),
        evidence: vec![
            fact(
                measurement,
                format_args!("{field}.max"),
                rtt.max,
                "longest idle round trip to the gateway, against the usual one and a visit to another channel",
                rtt.p50 + VISIT_S,
            ),
            fact(
                scanned.measurement,
                format_args!("grown.{counter}"),
                scanned.grown(&counter) as f64,
                "time by which the radio's latest scan moved meanwhile",
                ANOTHER_MS as f64,
            ),
        ],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Close lists of networks and programs that ask for a place, and bind the connection to its access point, so that nothing looks for another: nmcli connection modify NAME 802-11-wireless.bssid ADDRESS with NetworkManager, bgscan=\"\" in wpa_supplicant. A station that moves needs its scans.",
            "The longest idle round trips to the gateway are as short as the others.",
        )],
        kb: "host".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::host::tests::on_wifi;
    use crate::testing::{beside_gateway_of, counting, found_in, idle_of};
    use plumb_model::distribution::Distribution;
    use plumb_model::results::host::Wifi;

    /// A hundred round trips, of which so many took so much longer than the others.
    fn spikes(rtt_s: f64, count: usize, above_s: f64) -> Distribution {
        let usual = (count..100).map(|n| rtt_s + 0.00001 * n as f64);
        Distribution::of(usual.chain(vec![rtt_s + above_s; count])).unwrap()
    }

    /// How often it is found where the radio's last scan moved by so much while the path was idle.
    fn found(scanned_ms: u64, gateway: Distribution, path: Distribution) -> usize {
        let mut counted = counting(&[
            ("wlan0.rx_packets", 90),
            ("wlan0.rx_bytes", 9000),
            ("wlan0.wifi_scanned_at_ms", scanned_ms),
        ]);
        counted.context.phase = Some(Phase::Idle);
        let measurements = [
            on_wifi(Wifi::default()),
            idle_of(path),
            beside_gateway_of(gateway, path),
            counted,
        ];
        found_in(CAUSE.examine, &measurements).len()
    }

    #[test]
    fn a_scan_that_delays_is_found() {
        let (gateway, path) = (spikes(0.002, 4, 0.11), spikes(0.02, 4, 0.11));
        assert_eq!(found(30_000, gateway, path), 1);
        assert_eq!(
            found(0, gateway, path),
            0,
            "no scan, so that something else delays"
        );
        assert_eq!(found(9, gateway, path), 0, "a tick of the kernel");
    }

    #[test]
    fn what_a_scan_does_not_do_is_none() {
        let (usual, path) = (spikes(0.002, 0, 0.0), spikes(0.02, 4, 0.11));
        assert_eq!(
            found(30_000, usual, path),
            0,
            "the delay is beyond the gateway"
        );
        let usual_path = spikes(0.02, 0, 0.0);
        let gateway = spikes(0.002, 4, 0.11);
        assert_eq!(
            found(30_000, gateway, usual_path),
            0,
            "the gateway itself is late"
        );
        let often = spikes(0.002, 40, 0.11);
        assert_eq!(
            found(30_000, often, spikes(0.02, 40, 0.11)),
            0,
            "a sleeping radio"
        );
        let long = spikes(0.002, 4, 2.0);
        assert_eq!(
            found(30_000, long, spikes(0.02, 4, 2.0)),
            0,
            "no visit takes so long"
        );
    }
}
