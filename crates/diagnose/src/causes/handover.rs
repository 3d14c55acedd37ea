//! Nothing passes for a time, and then all of it at once.
//!
//! A radio that changes cells or channels, a modem that retrains and keeps what it has, a virtual machine that pauses: packets
//! of that time are held, and none is lost. What is released at once may overflow queues behind it.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{HELD_S, Held, OUTAGE_S, fact_of_series};
use crate::signs::{Kind, Sign};

/// Longer than this, a call is cut off and a page seems to hang, in seconds, as with an outage.
const CRITICAL_S: f64 = 2.0;

/// That many times the share of the time that is held is retransmitted: TCP takes what does not come for lost, and what is
/// released overflows queues.
const SENT_AGAIN: f64 = 3.0;

/// Eight probes and more came at once, and neither echoes nor load passed meanwhile; the far end may have paused.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "over another line, or with the radio in one place, no time passes without answers",
    needs: &[Need::Idle],
    resembles: &[
        (
            Cause::Outage,
            "an outage loses what is sent meanwhile, and holds nothing",
        ),
        (
            Cause::BufferbloatDown,
            "a queue fills over some time, and passes packets one after the other",
        ),
        (
            Cause::VmSteal,
            "a far end that pauses answers as late, also to echo requests",
        ),
    ],
    yields_to: &[Cause::DelayVaries],
    examine,
    explains,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Vec<Finding> {
    let holds: Vec<Held<'_>> = case.holds().collect();
    let longest = holds.iter().max_by(|a, b| a.lasts_s.total_cmp(&b.lasts_s));
    let facts = case.facts(None);
    let watched = Some(()).filter(|()| case.watched_s() > 0.0);
    if facts
        .known("probes while the path was watched", watched)
        .is_some()
    {
        facts.is(
            "packets were held for a time and released at once",
            longest.is_some(),
        );
    }
    let Some(longest) = longest else {
        return Vec::new();
    };
    let held_s: f64 = holds.iter().map(|held| held.lasts_s).sum();
    let watched_s = case.watched_s().max(held_s);
    let is_local = holds.iter().filter_map(|held| held.is_local());
    let at_gateway: Vec<bool> = is_local.collect();
    let (place, where_) = match !at_gateway.is_empty() && at_gateway.iter().all(|local| *local) {
        true => (Place::LocalSegment, "between this host and its gateway"),
        false => (Place::Path, "on the path"),
    };
    let times = match holds.len() {
        1 => "once".to_owned(),
        more => format!("{more} times"),
    };
    let once_and_short = holds.len() == 1 && longest.lasts_s < OUTAGE_S;
    vec![Finding {
        cause: Cause::Handover,
        place,
        severity: match longest.lasts_s {
            lasts_s if lasts_s >= CRITICAL_S => Severity::Critical,
            _ if once_and_short => Severity::Info,
            _ => Severity::Warning,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Something {where_} holds all packets for up to {} and then passes them at once, {times} in {}: everything waits, and what comes at once overflows the queues behind it.",
            human_seconds(longest.lasts_s),
            human_seconds(watched_s),
        ),
        evidence: vec![
            fact_of_series(
                longest.measurement,
                "rtt",
                longest.lasts_s,
                "longest time in which no probe was answered, after which those sent meanwhile were answered at once",
                HELD_S,
            ),
            fact_of_series(longest.measurement, "rtt", held_s / watched_s, OF_TIME, 0.0),
        ],
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Look in the radio's or modem's log for what happens at these times (handover, roaming, a scan of channels), keep the radio in one place and on one band, or try a cable. Where an end is a virtual machine, compare its steal time: `plumb host`.",
            "No fifth of a second passes without an answer.",
        )],
        kb: "loss".to_owned(),
    }]
}

/// The rule of the evidence that has the share of the time, of the same field as the longest hold.
const OF_TIME: &str = "share of the time in which nothing got through";

fn explains(finding: &Finding, sign: &Sign) -> bool {
    match sign.kind {
        Kind::Stall | Kind::Unsteady | Kind::Collapse | Kind::Shortfall => true,
        // What is released at once overflows a queue that a load keeps filled.
        Kind::ProbesLost => sign.direction.is_some(),
        Kind::Retransmissions => {
            let held = finding
                .evidence
                .iter()
                .find(|evidence| evidence.rule == OF_TIME)
                .and_then(|evidence| evidence.value.number());
            held.is_some_and(|held| sign.ratio <= SENT_AGAIN * held)
        }
        Kind::Window => false,
    }
}
