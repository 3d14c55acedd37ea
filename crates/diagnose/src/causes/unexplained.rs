//! Something is wrong, and no cause that plumb looks for explains it.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;

use crate::entry::{Entry, Family, Rank};
use crate::signs::Sign;

/// How sure it is that something is wrong where a sign is worth repairing, and where it may be chance.
const SURE: f64 = 0.9;
const PERHAPS: f64 = 0.5;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Other,
    rank: Rank::Last,
    vanishes: "a measurement that the advice names finds the cause",
    needs: &[Need::Idle, Need::Upload, Need::Download],
    ..Entry::PLAIN
};

/// What signs come to that nothing explains.
pub(crate) fn of(mut signs: Vec<Sign>) -> Option<Finding> {
    signs.sort_by_key(|sign| std::cmp::Reverse(sign.severity));
    let severity = signs.first()?.severity;
    let texts: Vec<_> = signs.iter().map(|sign| sign.text.as_str()).collect();
    let all_in = |direction| signs.iter().all(|sign| sign.direction == Some(direction));
    let place = if all_in(Direction::Up) {
        Place::Uplink
    } else if all_in(Direction::Down) {
        Place::Downlink
    } else {
        Place::Path
    };
    Some(Finding {
        cause: Cause::Unexplained,
        place,
        severity,
        confidence: match severity {
            Severity::Info => PERHAPS,
            _ => SURE,
        },
        matters_for: Vec::new(),
        summary: format!("Unexplained: {}.", texts.join("; ")),
        evidence: signs.into_iter().map(|sign| sign.evidence).collect(),
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Narrow it down: `plumb host` reads the counters of this machine's link, `plumb path HOST --continuous` shows where packets are lost, `plumb rate HOST --udp --rate 1mbit` counts loss packet by packet in each direction.",
            "One of them names the hop, the link or the host.",
        )],
        kb: "verdict".to_owned(),
    })
}
