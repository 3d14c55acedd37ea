//! Both directions share one medium: what goes up takes from what comes down.
//!
//! Wi-Fi and other radio, half-duplex Ethernet, powerline. It is how such a medium works, and worth knowing where a cable
//! was expected.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::si;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::fact;
use crate::signs::{Kind, Sign, queue_stands};

/// Alone both directions carry nearly as much as each other: lines of two rates have two capacities.
const ALIKE_RATIO: f64 = 0.75;

/// Together they carry what one does alone, within this share of it.
const SAME_RATIO: f64 = 0.15;

/// Long queues in both directions hold up each other's acknowledgements, and may come to the same.
const CONFIDENCE: f64 = 0.6;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "over a full-duplex cable both directions at once carry what each does alone",
    needs: &[Need::Upload, Need::Download, Need::BothLoads],
    resembles: &[(
        Cause::DuplexMismatch,
        "there both directions destroy each other's packets, and carry far less together than one alone",
    )],
    yields_to: &[Cause::DuplexMismatch],
    examine: |case| examine(case).into_iter().collect(),
    explains: |_, sign: &Sign| sign.kind == Kind::Collapse,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let alone = [Direction::Up, Direction::Down].map(|direction| case.carried_alone(direction));
    let [Some(up), Some(down)] = alone else {
        return None;
    };
    let both: Vec<_> = case.carried(Direction::Both).collect();
    let long_enough = [up, down]
        .iter()
        .chain(&both)
        .all(|carried| carried.shows_rate());
    let first = both.first().filter(|_| long_enough && both.len() == 2)?;
    let together: f64 = both.iter().map(|carried| carried.bps()).sum();
    let (less, more) = (up.bps().min(down.bps()), up.bps().max(down.bps()));
    let full = queue_stands(up) && queue_stands(down);
    let shared = full && less >= ALIKE_RATIO * more && (together / more - 1.0).abs() <= SAME_RATIO;
    shared.then(|| Finding {
        cause: Cause::SharedMedium,
        place: Place::Path,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Both directions probably share one medium, as on Wi-Fi or half-duplex Ethernet: at once they carry {} together, and one alone {}.",
            si(together, "bit/s"),
            si(more, "bit/s")
        ),
        evidence: vec![fact(
            first.measurement,
            "bps",
            together,
            "what both directions at once carried together, against the better one alone, which it is within 15 % of",
            more,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Where a cable was expected, look at the duplex of each Ethernet link (`plumb host`, the switch's port) and whether the path leads over Wi-Fi or powerline.",
            "Both directions at once carry what each does alone.",
        )],
        kb: "throughput".to_owned(),
    })
}
