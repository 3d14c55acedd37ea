//! Both directions share one medium: what goes up takes from what comes down.
//!
//! Wi-Fi and other radio, half-duplex Ethernet, powerline. It is how such a medium works, and worth knowing where a cable
//! was expected.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{human_seconds, si};

use crate::Case;
use crate::entry::{Entry, Family, Often};
use crate::evidence::{STANDS_S, fact};
use crate::facts::{bps, ratio};
use crate::signs::{ACKNOWLEDGED_RATIO, Kind, Sign, doing, needed_ratio, queue_stands, shortfall};

/// Alone both directions carry nearly as much as each other: lines of two rates have two capacities.
const ALIKE_RATIO: f64 = 0.75;

/// Together they carry what one does alone, within this share of it.
const SAME_RATIO: f64 = 0.15;

/// A direction has room for so many times the other one's acknowledgements, so that these fill no queue of its own.
const ROOM_TIMES: f64 = 4.0;

/// Long queues in both directions hold up each other's acknowledgements, and may come to the same.
const CONFIDENCE: f64 = 0.6;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    often: Often {
        home: 2.0,
        campus: -2.0,
        cloud: -3.0,
        mobile: 1.0,
    },
    vanishes: "over a full-duplex cable both directions at once carry what each does alone",
    needs: &[Need::Upload, Need::Download, Need::BothLoads],
    resembles: &[(
        Cause::DuplexMismatch,
        "there both directions destroy each other's packets, and carry far less together than one alone",
    )],
    yields_to: &[
        Cause::DuplexMismatch,
        Cause::AckStarvation,
        Cause::CrossTraffic,
        Cause::PacketRateLimited,
    ],
    examine: |case| {
        let mut directions = [Direction::Up, Direction::Down].into_iter();
        let waiting = || directions.find_map(|direction| waits_for_it(case, direction));
        examine(case).or_else(waiting).into_iter().collect()
    },
    explains,
    ..Entry::PLAIN
};

/// Senders wait for each other, and what each sends fills a queue that is as long as the other leaves it.
fn explains(finding: &Finding, sign: &Sign) -> bool {
    match sign.kind {
        Kind::Collapse => true,
        Kind::Shortfall => finding.severity > Severity::Info,
        Kind::Retransmissions => {
            let needed = finding
                .evidence_of("result.tcp.retransmits")
                .and_then(|fact| fact.threshold.number());
            needed.is_some_and(|needed| sign.ratio <= needed)
        }
        Kind::Stall | Kind::Unsteady | Kind::Window | Kind::ProbesLost => false,
    }
}

/// What goes against a load waits in a queue, though that direction has room for many times the load's acknowledgements.
fn waits_for_it(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let back = match direction {
        Direction::Up => Direction::Down,
        _ => Direction::Up,
    };
    let loaded = case.loaded(direction).filter(|l| l.shows_queue())?;
    let idle_s = case.idle()?.waited_s(back)?.p50;
    let waits_s = loaded.waited_s(back)?.p50 - idle_s;
    let (carried, other) = (case.full_load(direction)?, case.full_load(back)?);
    let has_room = other.bps() >= ROOM_TIMES * ACKNOWLEDGED_RATIO * carried.bps();
    if waits_s < STANDS_S || !has_room || case.is_used_by_others() {
        return None;
    }
    let mut loads = [(direction, carried), (back, other)].into_iter();
    let falls_short = loads.any(|(direction, load)| shortfall(case, direction, load).is_some());
    let mut evidence = vec![fact(
        loaded.measurement,
        format_args!("one_way.{}_s.p50", back.name()),
        waits_s,
        "median wait of probes in the direction without load, above the idle median",
        STANDS_S,
    )];
    let needed = [carried, other].into_iter().filter_map(needed_ratio);
    if let Some((segments, needed)) = carried.segments().zip(needed.reduce(f64::max)) {
        evidence.push(fact(
            carried.measurement,
            "tcp.retransmits",
            segments.ratio(),
            "share of the segments that were retransmitted, against what windows of that size lose to a full queue",
            needed,
        ));
    }
    Some(Finding {
        cause: Cause::SharedMedium,
        place: Place::Path,
        severity: match falls_short {
            true => Severity::Warning,
            false => Severity::Info,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Both directions probably share one medium, as on Wi-Fi or half-duplex Ethernet: beside {} of {}, packets that go the other direction wait {}, though that direction carries {} alone.",
            doing(direction),
            si(carried.bps(), "bit/s"),
            human_seconds(waits_s),
            si(other.bps(), "bit/s"),
        ),
        evidence,
        fixes: vec![fix()],
        kb: "throughput".to_owned(),
    })
}

fn examine(case: &Case<'_>) -> Option<Finding> {
    let alone = [Direction::Up, Direction::Down].map(|direction| case.carried_alone(direction));
    let facts = case.facts(None).by("both directions at once");
    let [Some(up), Some(down)] = alone else {
        facts.known("a load in each direction", None::<()>);
        return None;
    };
    let both: Vec<_> = case.carried(Direction::Both).collect();
    let long_enough = [up, down]
        .iter()
        .chain(&both)
        .all(|carried| carried.shows_rate());
    let first = both.first().filter(|_| long_enough && both.len() == 2);
    let first = facts.known("loads long enough, alone and at once", first)?;
    let together: f64 = both.iter().map(|carried| carried.bps()).sum();
    let (less, more) = (up.bps().min(down.bps()), up.bps().max(down.bps()));
    let full = queue_stands(up) && queue_stands(down);
    let apart = (together / more - 1.0).abs();
    let shared = facts.is("both lines were full", full)
        && facts.at_least(
            "rate of the slower direction",
            bps(less),
            ALIKE_RATIO * more,
        )
        && facts.at_most(
            "both at once, apart from the faster alone",
            ratio(apart),
            SAME_RATIO,
        );
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
            "rate of both directions at once, against the rate of the better one alone; they are within 15 %",
            more,
        )],
        fixes: vec![fix()],
        kb: "throughput".to_owned(),
    })
}

fn fix() -> Fix {
    Fix::advice(
        Actor::ThisHost,
        "Where a cable was expected, look at the duplex of each Ethernet link (`plumb host`, the switch's port) and whether the path leads over Wi-Fi or powerline.",
        "Both directions at once carry what each does alone.",
    )
}
