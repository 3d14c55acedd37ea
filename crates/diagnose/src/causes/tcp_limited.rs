//! TCP is limited to a rate, and UDP is not.
//!
//! A policer for TCP, for a port or for what it takes for downloads. One connection carries what several do together, at a rate
//! that stays the same, with losses that datagrams of several times that rate do not have; loss at random would leave several
//! connections more than one.

use plumb_model::context::Experiment;
use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::loss::at_most_ratio;
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{capital, si};

use crate::Case;
use crate::entry::{Entry, Family, is_about};
use crate::evidence::{Streamed, fact};
use crate::facts::{bps, ratio};
use crate::signs::{COSTLY_RATIO, Kind, percent};

/// Datagrams carry so many times what TCP does: a short queue leaves TCP half of the line.
const TIMES: f64 = 3.0;

/// And lose less than this share of what TCP loses.
const LOST_RATIO: f64 = 0.25;

/// The slow seconds (5th percentile) of a limited rate have this share of its fast ones (95th): losses at random leave 0.6 to 0.7.
const STEADY_RATIO: f64 = 0.85;

/// One connection carries at least this share of what several carry: its windows fall by more at a time.
const ALONE_RATIO: f64 = 0.75;

/// Probes lost beside the load at most, as a share: where packets meet or are lost at random, probes are lost too.
const PROBES_RATIO: f64 = 0.02;

/// Four measurements agree; which packets the limit is for, by port or by protocol, they do not show.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "over another port or network, or once the limit is lifted, TCP carries what datagrams do",
    needs: &[
        Need::Upload,
        Need::Download,
        Need::Datagrams,
        Need::SingleStreams,
    ],
    resembles: &[
        (
            Cause::Policer,
            "a policer for all traffic cuts datagrams to the same rate",
        ),
        (
            Cause::DuplexMismatch,
            "where packets meet, probes beside the load are lost as well",
        ),
        (
            Cause::PathLoss,
            "losses at random leave one connection a part of what several carry",
        ),
    ],
    yields_to: &[Cause::DuplexMismatch, Cause::Outage],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        let found = directions.filter_map(|direction| examine(case, direction));
        found.collect()
    },
    explains: |finding, sign| {
        let of_tcp = [Kind::Retransmissions, Kind::Shortfall, Kind::Collapse];
        is_about(finding, sign) && of_tcp.contains(&sign.kind)
    },
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction);
    let carried = facts.known(
        "a load as long as a rate takes to become steady",
        case.full_load(direction),
    )?;
    let segments = facts.known("segments retransmitted", carried.segments())?;
    let again = segments.ratio();
    let below = case.streamed(Experiment::Paced, direction).next();
    let below = facts.known("datagrams at 80 % of TCP's rate", below)?;
    // Above the line's rate its full queue loses datagrams.
    let passes =
        |stream: &Streamed<'_>| stream.lost_ratio() <= LOST_RATIO * again || stream.is_queued();
    let above = case.streamed(Experiment::Overload, direction);
    let above = facts.known(
        "datagrams above TCP's rate that pass",
        above.filter(passes).last(),
    )?;
    let delivered_bps = above.delivered_bps()?;
    let alone = facts.known("one connection alone", case.single_stream(direction))?;
    let seconds = carried.seconds_bps()?;
    let (sent, lost) = case.loaded(direction)?.probes();
    let most = LOST_RATIO * again;
    let limited = facts.at_least(
        "segments that TCP retransmitted",
        ratio(again),
        COSTLY_RATIO,
    ) && facts.at_least(
        "rate in its slow seconds",
        bps(seconds.p5),
        STEADY_RATIO * seconds.p95,
    ) && facts.at_least(
        "rate of datagrams",
        bps(delivered_bps),
        TIMES * carried.bps(),
    ) && facts.at_most(
        "loss of datagrams below the rate",
        ratio(below.lost_ratio()),
        most,
    ) && facts.at_least(
        "rate of one connection alone",
        bps(alone.bps()),
        ALONE_RATIO * carried.bps(),
    ) && facts.below(
        "probes lost at most",
        ratio(at_most_ratio(sent, lost)),
        PROBES_RATIO,
    );
    if !limited {
        return None;
    }
    let (place, name) = (Place::line(direction), direction.name());
    Some(Finding {
        cause: Cause::TcpLimited,
        place,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{}loads by TCP are limited to {}: one connection carries as much as {:.0} do, {} of the segments are sent again, and datagrams alone carry {}.",
            capital(name),
            si(carried.bps(), "bit/s"),
            carried.streams(),
            percent(again),
            si(delivered_bps, "bit/s"),
        ),
        evidence: vec![
            fact(
                above.measurement,
                "bps",
                delivered_bps,
                "payload of datagrams that arrived, against three times what TCP carried",
                TIMES * carried.bps(),
            ),
            fact(
                alone.measurement,
                "steady_bps",
                alone.bps(),
                "payload of one connection alone, against three quarters of what several carried together",
                ALONE_RATIO * carried.bps(),
            ),
            fact(
                carried.measurement,
                "tcp.retransmits",
                segments.again,
                "segments that TCP sent again after slow start, against 1 % of all, and four times the share of datagrams that were lost",
                (below.lost_ratio() / LOST_RATIO).max(COSTLY_RATIO) * segments.sent,
            ),
        ],
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Find out what the limit is for: run the responder on another port (`plumb serve --port 443`, `plumb check HOST:443`) and over another network. Look for it in the firewalls and routers of the path (traffic shaping by port or protocol), and have its operator lift it.",
            "TCP carries what datagrams do.",
        )],
        kb: "throughput".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::tests::{carried_up, made, stream};
    use plumb_model::run::Run;

    const POLICER: &str = include_str!("../../fixtures/policer.json");

    /// What is found where one connection carries that share of what four do, and datagrams that many times as much.
    fn found(alone: f64, times: f64, lost: f64) -> usize {
        let mut run = Run::from_json(POLICER).unwrap();
        let bps = carried_up(&run);
        for (experiment, times) in [(Experiment::Paced, 0.8), (Experiment::Overload, times)] {
            let pps = times * bps / (1400.0 * 8.0);
            let sent = (2.0 * pps) as u64;
            made(&mut run, stream(experiment, pps, 1400), sent, lost, 0.0001);
        }
        let load = run.measurements.iter().find(|measurement| {
            let carried = measurement.outcome.throughput();
            carried.is_some_and(|carried| carried.direction == Direction::Up)
        });
        let mut single = load.unwrap().clone();
        single.context.experiment = Some(Experiment::SingleStream);
        if let plumb_model::results::Outcome::Throughput(result) = &mut single.outcome {
            result.streams.truncate(1);
            result.bps *= alone;
            result.steady_bps = result.steady_bps.map(|steady| steady * alone);
        }
        run.measurements.push(single);
        (CAUSE.examine)(&Case::of(&run)).len()
    }

    #[test]
    fn a_rate_of_tcp_that_datagrams_do_not_have_is_a_limit() {
        assert_eq!(found(0.97, 6.0, 0.0), 1);
        assert_eq!(found(0.3, 6.0, 0.0), 0, "losses at random");
        assert_eq!(found(0.97, 1.4, 0.0), 0, "the line's rate");
        assert_eq!(found(0.97, 6.0, 0.1), 0, "datagrams lose as much");
    }
}
