//! A direction delivered no payload at all.
//!
//! The load had time to begin.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::results::Direction;
use plumb_model::units::{capital, human_seconds};

use crate::Case;
use crate::entry::{Entry, Family, is_about};
use crate::evidence::{Carried, fact};

/// The path carried the handshakes of the streams, so that it is not simply down.
const CONFIDENCE: f64 = 0.95;

/// Share of probes whose answers show that small packets pass.
const SMALL_PASS_RATIO: f64 = 0.5;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "payload arrives once the cause that lies behind it is gone",
    resembles: &[(
        Cause::PmtudBlackHole,
        "there small packets pass and a search of sizes finds the largest that does",
    )],
    yields_to: &[Cause::PmtudBlackHole, Cause::PathRefused],
    examine,
    explains: is_about,
};

fn examine(case: &Case<'_>) -> Vec<Finding> {
    [Direction::Up, Direction::Down]
        .into_iter()
        .filter_map(|direction| {
            let carried = case.carried_alone(direction)?;
            carried
                .is_nothing(case)
                .then(|| finding(case, direction, carried))
        })
        .collect()
}

fn finding(case: &Case<'_>, direction: Direction, carried: Carried<'_>) -> Finding {
    let (place, doing) = match direction {
        Direction::Up => (Place::Uplink, "uploads"),
        _ => (Place::Downlink, "downloads"),
    };
    let length = human_seconds(carried.measurement.duration_s);
    let small_pass = case
        .loaded(direction)
        .is_some_and(|loaded| 1.0 - loaded.result.loss_ratio >= SMALL_PASS_RATIO);
    let (rest, fix, expect) = if small_pass {
        (
            "while small packets pass: large packets may vanish on the path",
            "Find the largest packet that gets through: `plumb mtu HOST`. It names the hop behind which large packets vanish, and what to change.",
            "`plumb mtu HOST` finds 1500 bytes, or the path's own MTU by what routers report.",
        )
    } else {
        (
            "and hardly any probe was answered meanwhile",
            "Look whether the path is up at all: `plumb path HOST --continuous`, then check again.",
            "Probes are answered, and a direction carries payload.",
        )
    };
    Finding {
        cause: Cause::NothingCarried,
        place,
        severity: Severity::Critical,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{} carry nothing: 0 bytes arrived in {length}, {rest}.",
            capital(doing)
        ),
        evidence: vec![fact(
            carried.measurement,
            "bytes",
            0.0,
            "payload that arrived in a phase long enough for handshakes and four retransmissions",
            1.0,
        )],
        fixes: vec![Fix::advice(Actor::ThisHost, fix, expect)],
        kb: "verdict".to_owned(),
    }
}
