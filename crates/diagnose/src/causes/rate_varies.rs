//! The line's rate goes up and down between levels.
//!
//! Shared media give out their capacity anew every few seconds (some satellite networks every 15 s), a radio changes
//! its modulation, another user takes a share and releases it.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{capital, si};

use crate::Case;
use crate::entry::{Entry, Family, Often, is_about};
use crate::evidence::{Carried, LEAST_TIMES, fact_of_series};
use crate::facts::bps;

use crate::signs::{Kind, STEADY_RATIO, queue_stands, waits, waits_there};

/// Both levels are seen for seconds, with a clear gap between; others' traffic looks the same.
const CONFIDENCE: f64 = 0.8;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    often: Often {
        home: 1.0,
        campus: -2.0,
        cloud: -2.0,
        mobile: 3.0,
    },
    vanishes: "at another time, or over another line, the rate stays at one level",
    needs: &[Need::Upload, Need::Download],
    resembles: &[
        (
            Cause::TokenBucket,
            "a bucket lets the beginning of each transfer pass faster, and nothing later",
        ),
        (
            Cause::PathLoss,
            "random loss makes the rate vary from second to second, and not between levels",
        ),
    ],
    yields_to: &[Cause::CrossTraffic, Cause::Handover, Cause::Outage],
    asks_below_rate: true,
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        directions.filter_map(|d| examine(case, d)).collect()
    },
    explains: |finding, sign| is_about(finding, sign) && sign.kind != Kind::Window,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction);
    let carried = facts.known("a load", case.carried_alone(direction))?;
    // Loss makes rates vary too; a line that is full has a queue, or showed two rates to datagrams as well.
    let queued = queue_stands(carried) && waits_there(case, direction);
    let contradicted = case.contradicting_streams(direction).is_some();
    let levels = carried.levels();
    // Losses make no two steady rates so far apart; the queue of a line that has them may be short while it is fast.
    let far_apart = levels.is_some_and(|levels| levels.low_bps < STEADY_RATIO * levels.high_bps);
    let waits = far_apart && waits(carried) && waits_there(case, direction);
    let full = queued || contradicted || waits;
    let full = facts.is("it lasted until a rate is steady", carried.shows_rate())
        && facts.is("the line was full, by its queue or by datagrams", full)
        && facts.is("no other host used the line", !case.is_used_by_others());
    let (low_bps, high_bps) = match levels {
        Some(levels) if levels.falls_once_after.is_some() => {
            facts.is("the rate does not fall once and stay", false);
            return None;
        }
        Some(levels) => (levels.low_bps, levels.high_bps),
        // TCP need not follow a line at once for datagrams to show that its rate is not one.
        None => {
            facts.is("the rate has two levels, for seconds each", contradicted);
            let seconds = carried.seconds_bps().filter(|_| contradicted)?;
            (seconds.p5, seconds.p95)
        }
    };
    let apart = facts.at_least("the higher level", bps(high_bps), low_bps * LEAST_TIMES);
    (full && apart).then(|| finding(carried, direction, low_bps, high_bps))
}

fn finding(carried: Carried<'_>, direction: Direction, low_bps: f64, high_bps: f64) -> Finding {
    let place = Place::line(direction);
    Finding {
        cause: Cause::RateVaries,
        place,
        severity: match low_bps < STEADY_RATIO * high_bps {
            true => Severity::Warning,
            false => Severity::Info,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{}loads go up and down between two rates, {} and {}, for seconds each: the line's capacity changes, or others take a share of it.",
            capital(direction.name()),
            si(low_bps, "bit/s"),
            si(high_bps, "bit/s")
        ),
        evidence: vec![fact_of_series(
            carried.measurement,
            "bps",
            low_bps,
            "lower of two levels of the rate, against the higher; each held for two seconds at least",
            high_bps,
        )],
        fixes: vec![Fix::advice(
            Actor::Provider,
            format!(
                "Repeat the check at other hours to see whether it comes with the evening. A shaper against a long queue has to be set below the lower rate ({}), or to follow the line.",
                si(low_bps, "bit/s")
            ),
            "The rate stays at one level.",
        )],
        kb: "throughput".to_owned(),
    }
}
