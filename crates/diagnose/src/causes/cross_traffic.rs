//! The traffic of others fills the line meanwhile.
//!
//! Another machine at home, or another program: a backup, a stream, an update. Its packets keep a queue filled before any load
//! of ours, and when ours is below what the line carried; what our own load carries is a share of the line, and not its rate.

use plumb_model::context::Experiment;
use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{human_seconds, si};

use crate::Case;
use crate::entry::{Entry, Family, Harm};
use crate::evidence::{Idle, OTHERS_RATIO, STANDS_S, Streamed, fact, fact_of_series};
use crate::facts::{ratio, seconds};
use crate::long_queue::WARNING_S;
use crate::signs::{Kind, Sign, doing, percent};
use crate::weighing::prediction::strength::STRONG;
use crate::weighing::prediction::{Observable, Prediction};

/// The queue was there before ours.
const IDLE_CONFIDENCE: f64 = 0.9;

/// The fastest of hundreds of datagrams below our share waited.
const PACED_CONFIDENCE: f64 = 0.9;

/// The gateway counted what was not ours.
const COUNTED_CONFIDENCE: f64 = 0.95;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    harms: Harm::Delay,
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
            Cause::CongestedInterconnection,
            "there the queue is behind the provider's first router, which answers soon",
        ),
        (
            Cause::PathLoss,
            "packets that are lost though no queue builds up are not lost to others' traffic",
        ),
    ],
    yields_to: &[Cause::CongestedInterconnection],
    // The gateway sees every host behind it, and no other user of the line.
    predicts: &[Prediction::likely(Observable::OthersOnLine, STRONG)],
    asks_below_rate: true,
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
    let facts = case.facts(direction);
    let idle = facts
        .by("idle")
        .known("probes of the idle path", case.idle());
    let before = idle.and_then(|idle| while_idle(case, idle, direction));
    let paced = case.streamed(Experiment::Paced, direction).next();
    let paced = facts
        .by("below our rate")
        .known("datagrams at 80 % of TCP's rate", paced);
    let below = paced.and_then(|stream| below_our_share(case, stream, direction));
    if paced.is_some() {
        facts
            .by("below our rate")
            .is("the fastest datagram waits as well", below.is_some());
    }
    let queued = match (&before, &below) {
        (Some((waits_s, _)), _) => Some((*waits_s, IDLE_CONFIDENCE)),
        (None, Some((waits_s, _))) => Some((*waits_s, PACED_CONFIDENCE)),
        (None, None) => None,
    };
    let counted = counted_by_gateway(case, direction);
    let Some((waits_s, confidence)) = queued else {
        return counted.map(|(summary, evidence)| {
            let expect = "The gateway counts what this host carries, and our load carries what the line does.";
            let place = Place::line(direction);
            finding(place, COUNTED_CONFIDENCE, summary, vec![evidence], expect.to_owned())
        });
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
    let queued = before.into_iter().chain(below).map(|(_, fact)| fact);
    let counted = counted.into_iter().map(|(_, fact)| fact);
    Some(finding(
        place,
        confidence,
        format!(
            "Another user {doing}: packets wait {} in the queue {line} {when}{}.",
            human_seconds(waits_s),
            share.unwrap_or_default()
        ),
        queued.chain(counted).collect(),
        shorter(waits_s),
    ))
}

/// What the gateway counted beside our load that was not this host's, where that is a part of the line to speak of.
fn counted_by_gateway(case: &Case<'_>, direction: Direction) -> Option<(String, Evidence)> {
    let facts = case.facts(direction).by("counted by the gateway");
    let (gateway, shared) = facts.known("its counters", case.shared(direction))?;
    let least = shared.others_at_least();
    let carried = case.carried_alone(direction)?;
    let others = "share of the line that others carried, at least";
    facts.at_least(others, ratio(least), OTHERS_RATIO).then(|| {
        let summary = format!(
            "Another user {}: beside our load the gateway counted {} that were not this host's, {} of the line at least; the {} that ours carried are our share of it, and not its rate.",
            doing(direction),
            si(shared.others_bps(), "bit/s"),
            percent(least),
            si(carried.bps(), "bit/s"),
        );
        let evidence = fact_of_series(
            gateway.measurement,
            &format!("{}_bytes", direction.name()),
            least * shared.line,
            "bytes that the gateway's line carried for other hosts, against a fifth of all; this host's interface did not count them, and headers and one step of the counter are left out",
            OTHERS_RATIO * shared.line,
        );
        (summary, evidence)
    })
}

/// What half of the probes of the idle path waited at least in that direction, where it is a queue.
fn while_idle(case: &Case<'_>, idle: Idle<'_>, direction: Direction) -> Option<(f64, Evidence)> {
    let facts = case.facts(direction).by("idle");
    let waited = facts.known("one-way delays of probes", idle.waited_s(direction))?;
    let stands = facts.at_least("median wait of probes", seconds(waited.p50), STANDS_S)
        && facts.at_least("95th percentile of it", seconds(waited.p95), WARNING_S)
        && facts.is(
            "the wait rises and falls slowly, as a queue does",
            idle.is_smooth(),
        );
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
        "least wait of datagrams at 80 % of our rate, against the delay that radio and cable add; and the delay of idle probes where it was no queue",
        STANDS_S,
    );
    Some((waits_s, evidence))
}

/// The same where only round trips are known, which do not show the direction.
fn by_round_trips(case: &Case<'_>) -> Option<Finding> {
    let idle = case.idle().filter(|idle| idle.result.one_way.is_none())?;
    let rtt = idle.result.rtt_s?;
    let (middle_s, most_s) = (rtt.p50 - rtt.min, rtt.p95 - rtt.min);
    let facts = case.facts(None).by("idle");
    let stands = facts.at_least(
        "median of round trips above the fastest",
        seconds(middle_s),
        STANDS_S,
    ) && facts.at_least("95th percentile of it", seconds(most_s), WARNING_S)
        && facts.is(
            "they rise and fall slowly, as a queue does",
            idle.is_smooth(),
        );
    stands.then(|| {
        let evidence = fact(
            idle.measurement,
            "rtt_s.p95",
            most_s,
            "idle round trips above the fastest, where they rise and fall slowly as a queue does",
            WARNING_S,
        );
        let summary = format!(
            "Another user fills the line: round trips wait {} in a queue before any load of ours, so what ours carries is a share of the line.",
            human_seconds(middle_s)
        );
        finding(Place::Path, IDLE_CONFIDENCE, summary, vec![evidence], shorter(middle_s))
    })
}

/// What is expected without that traffic.
fn shorter(waits_s: f64) -> String {
    format!(
        "Without that traffic idle round trips are {} shorter.",
        human_seconds(waits_s)
    )
}

fn finding(
    place: Place,
    confidence: f64,
    summary: String,
    evidence: Vec<Evidence>,
    expect: String,
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
            expect,
        )],
        kb: "bufferbloat".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::evidence::asked_gateway;
    use crate::testing::{carrying, found_in};

    /// What is found where our load carried 9.5 Mbit/s down while the gateway counted so much.
    fn beside(line_bps: f64) -> Vec<Finding> {
        let gateway = asked_gateway([None; 2], [line_bps, 1e7], 1.0);
        let load = carrying(Direction::Down, 9.5e6);
        found_in(CAUSE.examine, &[gateway, load])
    }

    #[test]
    fn what_the_gateway_counts_beyond_ours_is_somebody_elses() {
        let [found] = beside(2e7).try_into().unwrap();
        assert_eq!(found.place, Place::Downlink);
        assert!(
            found
                .summary
                .contains("10.0 Mbit/s that were not this host's"),
            "{}",
            found.summary
        );
        assert_eq!(beside(1.05e7), [], "headers of the line");
        assert_eq!(
            beside(0.9e7),
            [],
            "traffic within the local network is not the line's"
        );
    }
}
