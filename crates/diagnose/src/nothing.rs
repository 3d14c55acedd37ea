//! Directions in which no payload arrived at all, though the load had time to begin.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::results::Direction;
use plumb_model::units::{capital, human_seconds};

use crate::evidence::Carried;
use crate::{Case, lengths};

/// The path carried the handshakes of the streams, so that it is not simply down.
const CONFIDENCE: f64 = 0.95;

/// Share of probes whose answers show that small packets pass.
const SMALL_PASS_RATIO: f64 = 0.5;

pub(crate) fn examine(case: &Case<'_>) -> Vec<Finding> {
    [Direction::Up, Direction::Down]
        .into_iter()
        .filter_map(|direction| {
            let carried = case.carried_alone(direction)?;
            is_nothing(case, carried).then(|| finding(case, direction, carried))
        })
        .collect()
}

/// Whether a direction carried nothing in a time in which any path would have carried something.
pub(crate) fn is_nothing(case: &Case<'_>, carried: Carried<'_>) -> bool {
    let rtt_s = case.idle().and_then(|idle| Some(idle.result.rtt_s?.p50));
    let needs_s = lengths::nothing_s(rtt_s.unwrap_or(0.0));
    carried.result.bytes == 0 && carried.measurement.duration_s >= needs_s
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
        summary: format!("{} carry nothing: 0 bytes arrived in {length}, {rest}.", capital(doing)),
        evidence: vec![Evidence {
            measurement: carried.measurement.id.clone(),
            field: "result.bytes".to_owned(),
            value: 0.0.into(),
            rule: "payload that arrived in a phase long enough for handshakes and four retransmissions".to_owned(),
            threshold: 1.0.into(),
        }],
        fixes: vec![Fix {
            on: Actor::ThisHost,
            summary: fix.to_owned(),
            action: None,
            commands: Vec::new(),
            expect: expect.to_owned(),
        }],
        kb: "verdict".to_owned(),
    }
}
