//! A direction delivered no payload at all, or none any more.
//!
//! The load had time to begin, or the far end fell silent in it.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{capital, human_seconds};

use crate::entry::{Entry, Family, Harm, Rank, is_about};
use crate::evidence::{Carried, SILENCE_S, fact, fact_of_series};
use crate::signs::doing;
use crate::{Case, reading};

/// It carried the handshakes of the streams.
const CONFIDENCE: f64 = 0.95;

/// The responder may have failed just then.
const NO_REPORT_CONFIDENCE: f64 = 0.7;

/// Share of probes whose answers show that small packets pass.
const SMALL_PASS_RATIO: f64 = 0.5;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    harms: Harm::Delivery,
    rank: Rank::First,
    vanishes: "payload arrives once the cause that lies behind it is gone",
    needs: &[Need::Upload, Need::Download],
    resembles: &[(
        Cause::PmtudBlackHole,
        "there small packets pass and a search of sizes finds the largest that does",
    )],
    yields_to: &[Cause::PmtudBlackHole, Cause::PathRefused],
    asks_packet_sizes: true,
    examine,
    explains: is_about,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Vec<Finding> {
    let nothing = [Direction::Up, Direction::Down]
        .into_iter()
        .filter_map(|direction| {
            let facts = case.facts(direction);
            let carried = facts.known("a load", case.carried_alone(direction))?;
            facts
                .is(
                    "nothing was carried in 3 s or longer",
                    carried.is_nothing(case),
                )
                .then(|| finding(case, direction, carried))
        });
    let stopped = [Direction::Up, Direction::Down, Direction::Both]
        .into_iter()
        .filter_map(|direction| stopped(case, direction));
    nothing.chain(stopped).chain(no_report(case)).collect()
}

fn finding(case: &Case<'_>, direction: Direction, carried: Carried<'_>) -> Finding {
    let doing = doing(direction);
    let length = human_seconds(carried.measurement.duration_s);
    let small_pass = case
        .loaded(direction)
        .is_some_and(|loaded| 1.0 - loaded.result.loss_ratio >= SMALL_PASS_RATIO);
    let rest = match small_pass {
        true => "while small packets pass: large packets may vanish on the path",
        false => "and hardly any probe was answered meanwhile",
    };
    Finding {
        cause: Cause::NothingCarried,
        place: place(direction, small_pass),
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
            "payload that arrived, in a phase long enough for handshakes and four retransmissions",
            1.0,
        )],
        fixes: vec![fix(small_pass)],
        kb: "verdict".to_owned(),
    }
}

/// A load that arrived until the far end fell silent; of both directions, the one that stopped last.
fn stopped(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let loads = case.carried(direction);
    let stops: Option<Vec<_>> = loads
        .map(|carried| Some((carried.stopped_at_s()?, carried.measurement)))
        .collect();
    let last = stops?.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    if case.carried(direction).next().is_some() {
        let facts = case.facts(direction);
        facts.is(
            "payload stopped, and the far end fell silent",
            last.is_some(),
        );
    }
    let (at_s, measurement) = last?;
    let probes = case.loaded(direction);
    let (sent, answered) = probes.map_or((0, 0), |probes| probes.answered_since(at_s));
    let small_pass = answered as f64 > SMALL_PASS_RATIO * sent as f64;
    let were_answered = case.idle().is_some_and(|idle| idle.result.received > 0);
    let rest = match (sent, answered) {
        (0, _) if were_answered => {
            ", and no probe came back either: the path or the far end is down".to_owned()
        }
        (0, _) => ", and the far end fell silent".to_owned(),
        _ if small_pass => format!(
            ", while small packets still pass ({answered} of {sent} probes): large packets may vanish on the path"
        ),
        (sent, 0) => {
            format!(", and none of {sent} probes came back: the path or the far end is down")
        }
        _ => format!(", and only {answered} of {sent} probes came back"),
    };
    let silent_s = measurement.duration_s - at_s;
    Some(Finding {
        cause: Cause::NothingCarried,
        place: place(direction, small_pass),
        severity: Severity::Critical,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The path stopped carrying our packets in the {direction} phase: no payload arrived in its last {}{rest}.",
            human_seconds(silent_s)
        ),
        evidence: vec![fact_of_series(
            measurement,
            "bps.t_s",
            silent_s,
            "time without any payload before the far end was lost",
            SILENCE_S,
        )],
        fixes: vec![fix(small_pass)],
        kb: "verdict".to_owned(),
    })
}

/// An upload that was carried to its end, and of which no report came back though probes did: the report fills packets,
/// and the answers to probes do not.
fn no_report(case: &Case<'_>) -> Option<Finding> {
    let carried = case.carried_alone(Direction::Up)?;
    let measurement = carried.measurement;
    let probes = case.loaded(Direction::Up)?;
    let (sent, answered) = probes.answered_since(measurement.duration_s - SILENCE_S);
    let no_report = reading::lost_far_end(measurement)
        && measurement.duration_s >= reading::asked_s(measurement)?
        && carried.stopped_at_s().is_none()
        && !carried.is_nothing(case)
        && answered as f64 > SMALL_PASS_RATIO * sent as f64;
    no_report.then(|| Finding {
        cause: Cause::NothingCarried,
        place: Place::Downlink,
        severity: Severity::Critical,
        confidence: NO_REPORT_CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The upload arrived and the responder's report on it did not, while small packets pass ({answered} of {sent} probes): large packets may vanish on the path down."
        ),
        evidence: vec![Evidence {
            field: "ended".to_owned(),
            ..fact(
                measurement,
                "",
                "far_end_lost",
                "how a phase ended whose time was over, and whose payload was acknowledged until then",
                "complete",
            )
        }],
        fixes: vec![fix(true)],
        kb: "verdict".to_owned(),
    })
}

/// Where nothing passes at all, the direction is not known: probes and their answers need both.
fn place(direction: Direction, small_pass: bool) -> Place {
    match direction {
        Direction::Up if small_pass => Place::Uplink,
        Direction::Down if small_pass => Place::Downlink,
        _ => Place::Path,
    }
}

fn fix(small_pass: bool) -> Fix {
    let (what, expect) = match small_pass {
        true => (
            "Find the largest packet that gets through: `plumb mtu HOST`. It names the hop behind which large packets vanish, and what to change.",
            "`plumb mtu HOST` finds 1500 bytes, or the path's own MTU by what routers report.",
        ),
        false => (
            "Look whether the path is up at all: `plumb path HOST --continuous`, then check again.",
            "Probes are answered, and a direction carries payload.",
        ),
    };
    Fix::advice(Actor::ThisHost, what, expect)
}
