//! A radio sends many frames again, which turns loss into delay.
//!
//! An access point or a station that misses an acknowledgement sends the frame again, several times, before it gives it up.
//! So the path behind it loses little, and waits.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::{Interface, Wifi};

use crate::Case;
use crate::entry::{Entry, Family, Harm};
use crate::evidence::{Counted, fact};
use crate::facts::ratio as share;
use crate::host::{Facts, Judged, Subject, fine, ratio, wifi};
use crate::signs::percent;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    harms: Harm::Delay,
    vanishes: "over a cable, or on a free channel, the radio's counter of frames retried grows by less than a tenth of those sent",
    needs: &[Need::Machine, Need::Radio],
    resembles: &[
        (
            Cause::PathLoss,
            "there the radio sends no more again than it always does",
        ),
        (
            Cause::BufferbloatUp,
            "a queue on the line delays wired machines too",
        ),
    ],
    yields_to: &[Cause::WifiWeak],
    examine: |case| sent_again(case).into_iter().collect(),
    audits: &[(Subject::Retries, audit)],
    ..Entry::PLAIN
};

/// Frames of a phase; fewer say nothing of a share.
const ENOUGH_FRAMES: u64 = 200;

/// The driver counts for this very interface; drivers differ in what they call a frame.
const CONFIDENCE: f64 = 0.85;

/// Counted beside a check.
fn sent_again(case: &Case<'_>) -> Option<Finding> {
    let all = case.counted().flat_map(|counted| {
        let radios = counted.interfaces().into_iter();
        radios.filter_map(move |name| Some((of(counted, name)?, name, counted)))
    });
    let facts = case.facts(None).by("while measured");
    let most = all.max_by(|a, b| a.0.total_cmp(&b.0));
    let most = facts.known("a radio's counters of frames sent and retried", most);
    let (ratio, name, counted) = most?;
    let retried = facts.at_least("frames retried", share(ratio), RETRY_RATIO);
    retried.then(|| Finding {
        cause: Cause::WifiRetries,
        place: Place::LocalSegment,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The Wi-Fi of {name} sent {} of its frames again {}: each waits for that, so that rates fall and round trips vary whatever the line behind it does.",
            percent(ratio),
            counted.during()
        ),
        evidence: vec![fact(
            counted.measurement,
            format_args!("grown.{name}.wifi_retries"),
            ratio,
            "frames retried for each frame that was sent meanwhile",
            RETRY_RATIO,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Use 5 or 6 GHz and a channel with fewer networks, go nearer to the access point, or use a cable; `plumb host` shows signal, channel and power saving.",
            "Below a tenth of the frames are retried.",
        )],
        kb: "host".to_owned(),
    })
}

fn of(counted: Counted<'_>, name: &str) -> Option<f64> {
    let sent = counted.of(name, "wifi_sent");
    let again = counted.of(name, "wifi_retries");
    (sent >= ENOUGH_FRAMES).then(|| again as f64 / sent as f64)
}

/// Frames retransmitted for each frame sent: a good link stays below a tenth, and from a fifth on the radio spends its time
/// on it.
const RETRY_RATIO: f64 = 0.2;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let radios = wifi::radios(facts);
    let judged = radios.filter_map(|(place, interface, wifi)| judge(facts, place, interface, wifi));
    judged.collect()
}

fn judge(facts: &Facts<'_>, place: usize, interface: &Interface, wifi: &Wifi) -> Option<Judged> {
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
        wifi::found(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::counted;

    #[test]
    fn a_fifth_of_the_frames_is_much() {
        let found = |sent, again| {
            let grown = [
                ("wlan0.rx_packets", 4000),
                ("wlan0.rx_bytes", 4_000_000),
                ("wlan0.wifi_sent", sent),
                ("wlan0.wifi_retries", again),
            ];
            counted(CAUSE.examine, &grown).len()
        };
        assert_eq!(found(4000, 1600), 1);
        assert_eq!(found(4000, 300), 0);
        assert_eq!(found(20, 18), 0);
        assert_eq!(found(0, 0), 0);
    }
}
