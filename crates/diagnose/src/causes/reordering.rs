//! Packets overtake each other, and TCP repeats what had arrived already.
//!
//! Parallel links that share packets one by one, a radio that repeats some of them: a packet that comes after later ones looks
//! like one that was lost. The receiver reports what it had twice (D-SACK, RFC 2883).

use plumb_model::context::Experiment;
use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::capital;

use crate::Case;
use crate::captured;
use crate::entry::{Amount, Entry, Family, Harm, is_about};
use crate::evidence::fact;
use crate::facts::ratio;
use crate::signs::{COSTLY_RATIO, Kind, percent};

/// Share of datagrams that others overtook, from which on it is the path and not a change of route.
const REORDERED_RATIO: f64 = 0.005;

/// Both the order of datagrams and TCP's own record show it.
const CONFIDENCE: f64 = 0.95;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Damage,
    harms: Harm::Delivery,
    vanishes: "over one link, or with flows kept to one link each, packets arrive in order",
    needs: &[Need::Upload, Need::Download],
    resembles: &[(
        Cause::PathLoss,
        "packets that are lost never arrive; those that are overtaken arrive twice",
    )],
    amount: Amount::Reordered,
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        directions
            .filter_map(|d| examine(case, d))
            .chain(captured::order(case))
            .collect()
    },
    explains: |finding, sign| is_about(finding, sign) && sign.kind == Kind::Retransmissions,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction);
    let stream = case.streamed(Experiment::Paced, direction).next();
    let stream = facts.known("datagrams at 80 % of TCP's rate", stream)?;
    let reordered = stream.reordered_ratio();
    let name = "share of datagrams that come after later ones";
    if !facts.at_least(name, ratio(reordered), REORDERED_RATIO) {
        return None;
    }
    let carried = facts.known(
        "a load as long as a rate takes to become steady",
        case.full_load(direction),
    )?;
    let spurious = carried.spurious_ratio().unwrap_or(0.0);
    let place = Place::line(direction);
    Some(Finding {
        cause: Cause::Reordering,
        place,
        severity: match spurious >= COSTLY_RATIO {
            true => Severity::Warning,
            false => Severity::Info,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Packets overtake each other: {} of the datagrams of the {}load came after later ones, and TCP sent {} of its segments again that had arrived.",
            percent(reordered),
            direction.name(),
            percent(spurious)
        ),
        evidence: vec![
            fact(
                stream.measurement,
                "receiver.reordering.reordered_ratio",
                reordered,
                "share of datagrams that arrived after later ones",
                REORDERED_RATIO,
            ),
            fact(
                carried.measurement,
                "tcp.spurious_retransmits",
                spurious,
                "share of the segments that were retransmitted though the receiver had them, against what costs every use of a path",
                COSTLY_RATIO,
            ),
        ],
        fixes: vec![Fix::advice(
            Actor::Provider,
            format!(
                "{}: have parallel links share flows and not single packets (a bond in mode balance-rr, per-packet balancing, multilink tunnels), and radio links deliver in order.",
                capital(direction.name())
            ),
            "Datagrams arrive in the order in which they were sent.",
        )],
        kb: "loss".to_owned(),
    })
}
