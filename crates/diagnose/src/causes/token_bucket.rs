//! A token bucket lets the beginning of a transfer pass faster than the rest.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::results::capacity::{Doubt, TrainMethod};
use plumb_model::units::{capital, si};

use crate::Case;
use crate::entry::{Entry, Family, Often, is_about};
use crate::evidence::{Lines, fact, fact_of_series, of_lines};
use crate::signs::{COSTLY_RATIO, Kind, Sign, needed_ratio, queue_stands, waits, waits_there};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    often: Often {
        home: 1.0,
        campus: -1.0,
        cloud: 2.0,
        mobile: 1.0,
    },
    vanishes: "a transfer held below the lasting rate never empties the bucket",
    needs: &[Need::Upload, Need::Download],
    resembles: &[
        (
            Cause::NarrowestLine,
            "a line carries the same at the beginning and later",
        ),
        (
            Cause::RateVaries,
            "others' traffic comes at any time, and a bucket is full at the beginning of each transfer",
        ),
    ],
    yields_to: &[Cause::CrossTraffic],
    asks_below_rate: true,
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        let loads = directions.filter_map(|d| boost(case, d));
        case.lines().filter_map(token_bucket).chain(loads).collect()
    },
    explains,
    ..Entry::PLAIN
};

/// When the bucket is empty TCP loses a window, and nothing later; a policer continues to drop, and has to be found.
fn explains(finding: &Finding, sign: &Sign) -> bool {
    is_about(finding, sign)
        && match sign.kind {
            Kind::Unsteady | Kind::Shortfall => true,
            Kind::Retransmissions | Kind::ProbesLost => {
                let later = finding.evidence_of("result.tcp.retransmits");
                later.is_some_and(|later| later.value.number() < later.threshold.number())
            }
            _ => false,
        }
}

/// Seconds in which TCP finds the lower rate, and sends again what it lost by that.
const SETTLES_S: usize = 2;

/// Datagrams carry as much as TCP, but for its headers and for what its windows leave, as a share.
const SAME_RATIO: f64 = 0.2;

/// One fall in one transfer: others may have come just then.
const BOOST_CONFIDENCE: f64 = 0.7;

/// A load that was fast at the beginning, and slower from then on.
fn boost(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction);
    let carried = facts.known("a load", case.carried_alone(direction))?;
    let long_enough = facts.is("it lasted until a rate is steady", carried.shows_rate());
    let levels = carried.levels();
    facts.is(
        "the rate has two levels, for seconds each",
        levels.is_some(),
    );
    let levels = levels?;
    // Loss makes rates fall too. Behind a bucket a queue stands, or datagrams showed two rates as well; or packets wait, and datagrams
    // are carried at the rate that TCP began with.
    let queued = queue_stands(carried) && waits_there(case, direction);
    let again_fast = |line_bps: f64| (line_bps / levels.high_bps - 1.0).abs() <= SAME_RATIO;
    let two_rates = case.contradicting_streams(direction).is_some()
        || waits(carried) && case.line_bps(direction).is_some_and(again_fast);
    let full = facts.is(
        "the line was full, by its queue or by datagrams",
        queued || two_rates,
    );
    if !long_enough || !full || !facts.is("no other host used the line", !case.is_used_by_others())
    {
        return None;
    }
    let falls = levels.falls_once_after;
    facts.is("the rate falls once and stays", falls.is_some());
    let settled = falls? + SETTLES_S;
    let again_later = carried.again_after_second(settled)?;
    let place = Place::line(direction);
    let needed = needed_ratio(carried).filter(|_| waits(carried));
    let needed = needed.unwrap_or_default();
    Some(Finding {
        cause: Cause::TokenBucket,
        place,
        severity: Severity::Warning,
        confidence: BOOST_CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{}loads begin at {} and go on at {}, as behind a token bucket (a boost): short transfers and short tests see the first rate, and the second is what lasts.",
            capital(direction.name()),
            si(levels.high_bps, "bit/s"),
            si(levels.low_bps, "bit/s")
        ),
        evidence: vec![
            fact_of_series(
                carried.measurement,
                "bps",
                levels.high_bps,
                "rate at the beginning, against that at which it went on to the end; held for two seconds at least",
                levels.low_bps,
            ),
            fact(
                carried.measurement,
                "tcp.retransmits",
                again_later,
                "share of segments retransmitted after the fall, from two seconds on, against what costs every use of a path, and what so small windows need where packets wait",
                needed.max(COSTLY_RATIO),
            ),
        ],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            format!(
                "Plan with {}: a shaper against a long queue has to be below it.",
                si(levels.low_bps, "bit/s")
            ),
            "The rate is the same from beginning to end.",
        )],
        kb: "capacity".to_owned(),
    })
}

fn token_bucket(lines: Lines<'_>) -> Option<Finding> {
    let train = lines.result.train.as_ref()?;
    let burst = train.burst?;
    // Bunches, and what others send, bend a train too.
    let doubted = [Doubt::Bunched, Doubt::CrossTraffic]
        .iter()
        .any(|doubt| train.rate.doubts.contains(doubt));
    if train.rate.bps.is_none() || doubted {
        return None;
    }
    let (place, way) = match train.method {
        TrainMethod::Native => (Place::Uplink, "on the forward path"),
        TrainMethod::Echo => (Place::Path, "on the path, in one direction or the other"),
    };
    Some(of_lines(
        Cause::TokenBucket,
        place,
        0.9,
        format!(
            "A token bucket {way} lets at least {} pass at {} and then {}: short transfers and short tests see the first rate, and the second is what lasts.",
            si(burst.bucket_bytes, "B"),
            si(burst.first_bps, "bit/s"),
            si(burst.later_bps, "bit/s")
        ),
        fact(
            lines.measurement,
            "train.burst.first_bps",
            burst.first_bps,
            "rate at which trains began to arrive, against that at which they went on",
            burst.later_bps,
        ),
    ))
}
