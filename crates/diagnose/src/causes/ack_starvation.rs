//! A transfer waits for its own acknowledgements, which fill the narrow line of the other direction.
//!
//! A receiver acknowledges every second segment. Over a line that is some fifty times narrower than the other direction
//! these fill it, wait in its queue, and hold the transfer back.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{capital, human_seconds, si};

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::fact;
use crate::facts::{bps, seconds};
use crate::long_queue::{CRITICAL_S, WARNING_S};
use crate::signs::Kind;

/// A transfer at so many times the other direction's rate fills half of that direction with acknowledgements: each is
/// 52 bytes at least (RFC 7323) and acknowledges two segments of 1448 (RFC 9293, section 3.8.6.3), a ratio of 1 to 56.
const ACKNOWLEDGED_TIMES: f64 = 28.0;

/// Receivers that gather segments (GRO) send fewer acknowledgements, so that they may fill less than half.
const CONFIDENCE: f64 = 0.85;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "datagrams, which are not acknowledged, wait nowhere at the same rate",
    needs: &[Need::Upload, Need::Download],
    resembles: &[
        (
            Cause::BufferbloatDown,
            "there packets wait in the direction of the load",
        ),
        (
            Cause::NarrowestLine,
            "the line in the direction of the load is not full",
        ),
    ],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        directions.filter_map(|d| examine(case, d)).collect()
    },
    // It is of the direction of the transfer, and shown at the line that its acknowledgements fill.
    explains: |finding, sign| {
        let transfer = match finding.place {
            Place::Uplink => Direction::Down,
            _ => Direction::Up,
        };
        let of_it = [Some(transfer), Some(Direction::Both)].contains(&sign.direction);
        of_it && !matches!(sign.kind, Kind::Window | Kind::Stall)
    },
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let back = match direction {
        Direction::Down => Direction::Up,
        _ => Direction::Down,
    };
    let facts = case.facts(direction);
    let loaded = case.loaded(direction).filter(|loaded| loaded.shows_queue());
    let loaded = facts.known("round trips beside a load that fills any queue", loaded)?;
    let name = "delay of each direction beside the load";
    let waits_s = facts.known(name, loaded.increase_s(back, case.idle()))?;
    let own_s = facts.known(name, loaded.increase_s(direction, case.idle()))?;
    let carried = facts.known("the rate of this direction", case.carried_alone(direction))?;
    let narrow = facts.known("the rate of the other direction", case.carried_alone(back))?;
    let least_bps = ACKNOWLEDGED_TIMES * narrow.bps();
    let fills = facts.at_least(
        "rate, whose acknowledgements fill the other direction",
        bps(carried.bps()),
        least_bps,
    ) && narrow.bps() > 0.0;
    let waits = fills
        && facts.at_least(
            "increase of the delay in the other direction",
            seconds(waits_s),
            WARNING_S,
        );
    if !waits
        || !facts.below(
            "increase of the delay in this direction",
            seconds(own_s),
            waits_s,
        )
    {
        return None;
    }
    let (place, doing, line) = match back {
        Direction::Up => (Place::Uplink, "downloads", "upload"),
        _ => (Place::Downlink, "uploads", "download"),
    };
    Some(Finding {
        cause: Cause::AckStarvation,
        place,
        severity: match waits_s >= CRITICAL_S {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{} wait for their own acknowledgements, which fill the {line} of {}: packets wait up to {} there while {} pass.",
            capital(doing),
            si(narrow.bps(), "bit/s"),
            human_seconds(waits_s),
            si(carried.bps(), "bit/s"),
        ),
        evidence: vec![
            fact(
                loaded.measurement,
                format_args!("one_way.{}_s.p95", back.name()),
                waits_s,
                "wait of probes in the direction without load, above the idle median",
                WARNING_S,
            ),
            fact(
                carried.measurement,
                "bps",
                carried.bps(),
                "payload of this direction, against 28 times the rate of the other, at which acknowledgements fill half of that",
                ACKNOWLEDGED_TIMES * narrow.bps(),
            ),
        ],
        fixes: vec![
            Fix::advice(
                Actor::Router,
                format!(
                    "Thin out acknowledgements on the router's {line} (CAKE with `ack-filter`, shaped a little below {}), which needs a fraction of them.",
                    si(narrow.bps(), "bit/s")
                ),
                format!(
                    "Under this load packets wait less than {} in the {line}.",
                    human_seconds(WARNING_S)
                ),
            ),
            Fix::advice(
                Actor::Provider,
                format!(
                    "Ask for a faster {line}: a transfer needs a fiftieth of its rate for acknowledgements."
                ),
                "The transfer carries what its own direction does.",
            ),
        ],
        kb: "bufferbloat".to_owned(),
    })
}
