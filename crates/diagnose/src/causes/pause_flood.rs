//! Pause frames hold a link up.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::Interface;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the rate goes up once flow control is off at one end of the link",
    needs: &[Need::CounterRates],
    resembles: &[(Cause::LinkSlow, "there the negotiated rate itself is low")],
    audits: &[(Subject::PauseFrames, audit)],
    ..Entry::PLAIN
};

/// Pause frames received below which they are no more than a burst.
const MANY: u64 = 1000;

/// Pause frames for each packet sent, from which on the link waits much of its time: one stops it for
/// up to 65,535 times 512 bits (IEEE 802.3 annex 31B), which is as long as 2700 full-size packets.
const WARNING_RATIO: f64 = 1e-4;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    facts
        .hardware()
        .filter_map(|(place, interface)| judge(facts, place, interface))
        .collect()
}

fn judge(facts: &Facts<'_>, place: usize, interface: &Interface) -> Option<Judged> {
    let pause = interface.pause?;
    let name = &interface.name;
    let subject = format!("{name} pause frames");
    // Drivers have names of their own; a card may count priorities apart, so the largest counts.
    let received = interface
        .driver_counters
        .iter()
        .filter(|(name, _)| {
            (name.contains("pause") || name.contains("xoff")) && name.contains("rx")
        })
        .max_by_key(|(_, count)| **count);
    let sent = interface.counters.tx_packets;
    match received {
        Some((counter, count))
            if *count >= MANY && *count as f64 > sent as f64 * WARNING_RATIO =>
        {
            Some(
                found(
                    subject,
                    Cause::PauseFlood,
                    Severity::Warning,
                    &[PathKind::Lan, PathKind::BusyServer],
                    format!("{count} pause frames made {name} stop sending: what is behind it cannot take as much, and everything waits, not only the flow that is too fast."),
                )
                .place(Place::LocalSegment)
                .sure(0.8)
                .evidence(facts.evidence(
                    format!("interfaces[{place}].driver_counters.{counter}"),
                    *count as f64,
                    "pause frames received, compared with one for 10,000 packets sent",
                    sent as f64 * WARNING_RATIO,
                ))
                .advice(
                    format!("Find out who sends them: a slow receiver behind the switch, or a faulty card. Where the switch has buffers enough, switch flow control off: ethtool -A {name} rx off tx off"),
                    "The counter stops, and other connections no longer stall.",
                )
                .done(),
            )
        }
        received => Some(fine(
            subject,
            format!(
                "{}; {} received",
                match (pause.receive, pause.send) {
                    (false, false) => "off",
                    (true, true) => "on, in both directions",
                    (true, false) => "on, received ones are obeyed",
                    (false, true) => "on, sent only",
                },
                received.map_or(0, |(_, count)| *count)
            ),
        )),
    }
}
