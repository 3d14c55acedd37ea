//! Somebody else fills the line meanwhile.
//!
//! Another machine at home, or another program: a backup, a stream, an update. Its packets keep a queue filled before any load
//! of ours, and when ours is below what the line carried; what our own load carries is a share of the line, and not its rate.

use plumb_model::context::Experiment;
use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{human_seconds, si};

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Idle, STANDS_S, Streamed, fact};
use crate::long_queue::WARNING_S;
use crate::signs::{Kind, Sign, doing};

/// The queue was there before ours.
const IDLE_CONFIDENCE: f64 = 0.9;

/// The fastest of hundreds of datagrams below our share waited.
const PACED_CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "once the other machine or program pauses, idle round trips are short and our load carries what the line does",
    needs: &[Need::Idle],
    resembles: &[
        (
            Cause::BufferbloatDown,
            "a queue of our own is empty before our load, and while it goes below the line's rate",
        ),
        (
            Cause::RateVaries,
            "a line whose rate changes has no queue while nothing of ours loads it",
        ),
        (
            Cause::PathLoss,
            "packets that are lost though no queue stands are not lost to others' traffic",
        ),
    ],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        let found: Vec<Finding> = directions.filter_map(|d| examine(case, d)).collect();
        match found.is_empty() {
            true => by_round_trips(case).into_iter().collect(),
            false => found,
        }
    },
    explains: |_, sign: &Sign| !matches!(sign.kind, Kind::Window | Kind::Stall),
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let before = case.idle().and_then(|idle| while_idle(idle, direction));
    let paced = case.streamed(Experiment::Paced, direction).next();
    let below = paced.and_then(|stream| below_our_share(case, stream, direction));
    let (waits_s, confidence) = match (&before, &below) {
        (Some((waits_s, _)), _) => (*waits_s, IDLE_CONFIDENCE),
        (None, Some((waits_s, _))) => (*waits_s, PACED_CONFIDENCE),
        (None, None) => return None,
    };
    let when = match before {
        Some(_) => "before any load of ours",
        None => "also while ours goes below what it carried",
    };
    let share = case.carried_alone(direction).map(|carried| {
        format!(
            "; the {} that ours carried are our share of the line, and not its rate",
            si(carried.bps(), "bit/s")
        )
    });
    let (place, doing, line) = (Place::line(direction), doing(direction), direction.name());
    Some(finding(
        place,
        waits_s,
        confidence,
        format!(
            "Somebody else {doing}: packets wait {} in the queue {line} {when}{}.",
            human_seconds(waits_s),
            share.unwrap_or_default()
        ),
        before
            .into_iter()
            .chain(below)
            .map(|(_, fact)| fact)
            .collect(),
    ))
}

/// What half of the probes of the idle path waited at least in that direction, where it is a queue.
fn while_idle(idle: Idle<'_>, direction: Direction) -> Option<(f64, Evidence)> {
    let waited = idle.waited_s(direction)?;
    let stands = waited.p50 >= STANDS_S && waited.p95 >= WARNING_S && idle.is_smooth();
    let field = format!("one_way.{}_s.p95", direction.name());
    stands.then(|| {
        let evidence = fact(
            idle.measurement,
            field,
            waited.p95,
            "what probes waited in this direction before any load, where it rises and falls slowly as a queue does",
            WARNING_S,
        );
        (waited.p50, evidence)
    })
}

/// What the fastest datagram waited that went slower than our load had.
fn below_our_share(
    case: &Case<'_>,
    stream: Streamed<'_>,
    direction: Direction,
) -> Option<(f64, Evidence)> {
    let waits_s = case.others_wait_s(stream, direction)?;
    let evidence = fact(
        stream.measurement,
        "standing_s",
        waits_s,
        "least wait of datagrams at 80 % of our rate, against what radio and cable hold packets up for, and what idle probes waited where that was no queue",
        STANDS_S,
    );
    Some((waits_s, evidence))
}

/// The same where only round trips are known, which do not show the direction.
fn by_round_trips(case: &Case<'_>) -> Option<Finding> {
    let idle = case.idle().filter(|idle| idle.result.one_way.is_none())?;
    let rtt = idle.result.rtt_s?;
    let (middle_s, most_s) = (rtt.p50 - rtt.min, rtt.p95 - rtt.min);
    let stands = middle_s >= STANDS_S && most_s >= WARNING_S && idle.is_smooth();
    stands.then(|| {
        let evidence = fact(
            idle.measurement,
            "rtt_s.p95",
            most_s,
            "idle round trips above the fastest, where they rise and fall slowly as a queue does",
            WARNING_S,
        );
        let summary = format!(
            "Somebody else fills the line: round trips wait {} in a queue before any load of ours, so what ours carries is a share of the line.",
            human_seconds(middle_s)
        );
        finding(Place::Path, middle_s, IDLE_CONFIDENCE, summary, vec![evidence])
    })
}

fn finding(
    place: Place,
    waits_s: f64,
    confidence: f64,
    summary: String,
    evidence: Vec<Evidence>,
) -> Finding {
    Finding {
        cause: Cause::CrossTraffic,
        place,
        severity: Severity::Warning,
        confidence,
        matters_for: Vec::new(),
        summary,
        evidence,
        fixes: vec![Fix::advice(
            Actor::Router,
            "Find who it is in the router's list of clients (updates, backups, streams), pause it, and check again: a shaper's rate can only be set by a check of the free line. A queue with fairness between hosts (CAKE) on the router then keeps one from delaying the others.",
            format!(
                "Without that traffic idle round trips are {} shorter.",
                human_seconds(waits_s)
            ),
        )],
        kb: "bufferbloat".to_owned(),
    }
}
