//! The path carries nothing at all for a time, and then recovers.
//!
//! A modem that retrains, a radio that changes cells, a route that converges: every packet of either direction is
//! lost meanwhile, whatever loads the path.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family, Harm, Often};
use crate::evidence::{Outage, fact, fact_of_series};
use crate::signs::{Kind, Sign};
use crate::weighing::prediction::{Observable, Prediction, strength};

/// Longer than this, a call is cut off and a page seems to hang, in seconds.
const CRITICAL_S: f64 = 2.0;

/// That many times the share of the time that is lost is retransmitted: a window goes with each outage, and its
/// retransmissions until the path is back.
const SENT_AGAIN: f64 = 3.0;

/// Ten probes in a row and the load beside them were lost; the far end may have been busy.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Damage,
    harms: Harm::Delivery,
    often: Often {
        home: 0.0,
        campus: -1.0,
        cloud: -2.0,
        mobile: 1.0,
    },
    vanishes: "over another line, or with the modem or radio replaced, no time passes without answers",
    needs: &[Need::Idle],
    resembles: &[
        (
            Cause::PathLoss,
            "loss in bursts takes some packets in a row, and not all of a second",
        ),
        (
            Cause::PmtudBlackHole,
            "there small probes are answered all the time",
        ),
    ],
    predicts: &[Prediction::likely(Observable::Outage, strength::WEAK)],
    examine,
    explains,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Vec<Finding> {
    let outages: Vec<Outage<'_>> = case.outages().collect();
    let longest = outages
        .iter()
        .max_by(|a, b| a.lasts_s.total_cmp(&b.lasts_s));
    let facts = case.facts(None);
    let watched = Some(()).filter(|()| case.watched_s() > 0.0);
    let seen = facts.known(
        "probes while the path was watched",
        watched.or(longest.map(|_| ())),
    );
    if seen.is_some() {
        facts.is(
            "no probe was answered for a time, with answers before and after",
            longest.is_some(),
        );
    }
    let Some(longest) = longest else {
        return Vec::new();
    };
    let lost_s: f64 = outages.iter().map(|outage| outage.lasts_s).sum();
    let watched_s = case.watched_s().max(lost_s);
    let times = match outages.len() {
        1 => "once".to_owned(),
        more => format!("{more} times"),
    };
    vec![Finding {
        cause: Cause::Outage,
        place: Place::Path,
        severity: match longest.lasts_s >= CRITICAL_S {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The path carried nothing at all for {} at the longest, {times} in {}: neither load nor small probes got through.",
            human_seconds(longest.lasts_s),
            human_seconds(watched_s),
        ),
        evidence: vec![
            fact_of_series(
                longest.measurement,
                "rtt",
                longest.lasts_s,
                "longest time in which no probe was answered, with answers before and after",
                crate::evidence::OUTAGE_S,
            ),
            fact(
                longest.measurement,
                "loss_ratio",
                lost_s / watched_s,
                "share of the time in which nothing got through",
                0.0,
            ),
        ],
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Look at the modem's or radio's log for the times of the outages (retraining, handover), try a cable in place of Wi-Fi, and watch on: `plumb path HOST --continuous` shows which hop is silent meanwhile.",
            "No second passes without an answer.",
        )],
        kb: "loss".to_owned(),
    }]
}

fn explains(finding: &Finding, sign: &Sign) -> bool {
    match sign.kind {
        Kind::Stall | Kind::Unsteady | Kind::ProbesLost | Kind::Collapse | Kind::Shortfall => true,
        Kind::Retransmissions => {
            let lost = finding
                .evidence_of("result.loss_ratio")
                .and_then(|evidence| evidence.value.number());
            lost.is_some_and(|lost| sign.ratio <= SENT_AGAIN * lost)
        }
        Kind::Window => false,
    }
}
