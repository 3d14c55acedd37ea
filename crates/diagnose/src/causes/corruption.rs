//! Packets arrive with wrong checksums.
//!
//! A failing memory of a router, a bad transceiver behind a link without its own checksum: the receiving host discards
//! what arrives damaged.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;

use crate::Case;
use crate::entry::{Entry, Family, Harm, Often, is_about};
use crate::evidence::{Streamed, fact};
use crate::facts::{Recorder, count};
use crate::loss::LOSS_CRITICAL;
use crate::signs::{Kind, Sign, percent};
use crate::weighing::prediction::{Observable, Prediction, strength};

/// So many at the least: one may come of another program's packets, which the kernel counts together.
const LEAST_PACKETS: u64 = 2;

/// From this share of the losses on, corruption is why packets are lost.
const OF_LOSSES_RATIO: f64 = 0.5;

/// The kernel counts the datagrams of all sockets of a host together.
const CONFIDENCE: f64 = 0.9;

/// What is lost is retransmitted more than once.
const SENT_AGAIN: f64 = 3.0;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Damage,
    harms: Harm::Delivery,
    often: Often {
        home: -2.0,
        campus: -1.0,
        cloud: -3.0,
        mobile: -3.0,
    },
    vanishes: "past the device that damages packets all checksums are right",
    needs: &[Need::Idle, Need::Upload, Need::Download],
    resembles: &[(
        Cause::PathLoss,
        "lost packets leave no trace; damaged ones are counted by the host that discards them",
    )],
    predicts: &[Prediction::likely(Observable::IdleLoss, strength::WEAK)],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        let streamed: Vec<Finding> = directions.filter_map(|d| streamed(case, d)).collect();
        match streamed.is_empty() {
            true => of_probes(case).into_iter().collect(),
            false => streamed,
        }
    },
    explains,
    ..Entry::PLAIN
};

fn explains(finding: &Finding, sign: &Sign) -> bool {
    match sign.kind {
        Kind::Window => false,
        Kind::ProbesLost => true,
        Kind::Retransmissions => {
            let first = finding.decisive();
            let found = first.and_then(|evidence| evidence.value.number());
            is_about(finding, sign) && found.is_some_and(|found| sign.ratio <= SENT_AGAIN * found)
        }
        _ => is_about(finding, sign),
    }
}

/// Of datagrams in one direction.
fn streamed(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction).by("datagrams");
    let damaged = |stream: &Streamed<'_>| is_why(facts, stream.corrupted(), stream.lost());
    let with_room = case.with_room(direction);
    facts.known("datagrams below the line's rate", with_room.first())?;
    let stream = with_room.into_iter().find(damaged)?;
    let corrupted = stream.corrupted();
    let (place, doing) = (Place::line(direction), direction.name());
    let sent = stream.sent();
    Some(finding(
        place,
        corrupted as f64 / sent as f64,
        format!("{corrupted} of {sent} datagrams on the path {doing} came with a wrong checksum"),
        vec![fact(
            stream.measurement,
            "receiver.corrupted",
            corrupted as f64 / sent as f64,
            "share of datagrams that arrived damaged; of those lost at least half",
            OF_LOSSES_RATIO * stream.lost_ratio(),
        )],
    ))
}

/// Of answers to probes of the idle path.
fn of_probes(case: &Case<'_>) -> Option<Finding> {
    let facts = case.facts(None).by("probes");
    let idle = facts.known("probes of the idle path", case.idle())?;
    let (corrupted, lost) = (idle.result.corrupted, idle.lost());
    let sent = idle.sent();
    is_why(facts, corrupted, lost).then(|| {
        finding(
            Place::Downlink,
            corrupted as f64 / sent as f64,
            format!("{corrupted} of {sent} answers to probes came with a wrong checksum"),
            vec![fact(
                idle.measurement,
                "corrupted",
                corrupted as f64 / sent as f64,
                "share of the answers that arrived damaged; of those lost at least half",
                OF_LOSSES_RATIO * lost as f64 / sent as f64,
            )],
        )
    })
}

fn is_why(facts: Recorder<'_>, corrupted: u64, lost: u64) -> bool {
    let least = OF_LOSSES_RATIO * lost as f64;
    let name = "packets that came with a wrong checksum";
    facts.at_least(name, count(corrupted), LEAST_PACKETS as f64)
        && facts.at_least(name, count(corrupted), least)
}

fn finding(
    place: Place,
    ratio: f64,
    what: String,
    evidence: Vec<plumb_model::finding::Evidence>,
) -> Finding {
    Finding {
        cause: Cause::Corruption,
        place,
        severity: match ratio >= LOSS_CRITICAL {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The path damages packets: {what} ({}), and the receiving host discards them.",
            percent(ratio)
        ),
        evidence,
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Damage behind the links' own checksums comes of a device: compare the checksum errors (`nstat UdpInCsumErrors TcpInCsumErrors`) before and behind each router and switch, and replace the one behind which they begin. A cable or optic shows as FCS errors instead (`plumb host`).",
            "No packet arrives with a wrong checksum.",
        )],
        kb: "loss".to_owned(),
    }
}
