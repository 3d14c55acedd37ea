//! UDP is limited to a rate, and TCP is not.
//!
//! A policer or shaper for UDP alone, against floods or to slow calls and QUIC down. Datagrams at two rates arrive at one and the
//! same, far below what TCP carries with hardly a loss; loss at random would take the same share of both.

use plumb_model::context::Experiment;
use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::si;

use crate::Case;
use crate::dropped_here;
use crate::entry::{Entry, Family, is_about};
use crate::evidence::fact;
use crate::facts::{bps, ratio};
use crate::signs::{Kind, percent};

/// Datagrams lost below TCP's rate at least, as a share: TCP would carry hardly anything with as much (Mathis et al., 1997).
const LOST_RATIO: f64 = 0.1;

/// TCP sends at most this share of that again.
const TCP_RATIO: f64 = 0.25;

/// The faster datagrams are offered so many times as fast as the others at least, and arrive at most so many times as fast: a
/// limit lets the same pass of both, loss at random more of more.
const OFFERED_TIMES: f64 = 1.5;
const DELIVERED_TIMES: f64 = 1.2;

/// One connection of TCP carries so many times what the datagrams do, so that it is no limit of each flow.
const TCP_TIMES: f64 = 1.5;

/// Both rates and TCP agree; a port of its own may be treated otherwise than others.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "from another network, or once the limit is lifted, datagrams arrive at the rate that TCP has",
    needs: &[Need::Upload, Need::Download, Need::Datagrams],
    resembles: &[
        (
            Cause::PathLoss,
            "loss at random takes the same share of datagrams at any rate, and of TCP's segments",
        ),
        (
            Cause::UdpBlocked,
            "where UDP is blocked no datagram arrives at all",
        ),
        (
            Cause::PerFlowLimit,
            "a limit of each flow holds one TCP connection back as much",
        ),
    ],
    yields_to: &[Cause::PerFlowLimit],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        let found = directions.filter_map(|direction| examine(case, direction));
        found
            .filter(|finding| !dropped_here::accounts_for(case, finding))
            .collect()
    },
    // Probes are datagrams as well; TCP loses nothing by it.
    explains: |finding, sign| is_about(finding, sign) && sign.kind == Kind::ProbesLost,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction);
    let carried = facts.known(
        "a load as long as a rate takes to become steady",
        case.full_load(direction),
    )?;
    let below = case.streamed(Experiment::Paced, direction).next();
    let below = facts.known("datagrams at 80 % of TCP's rate", below)?;
    let above = case.streamed(Experiment::Overload, direction).last();
    let above = facts.known("datagrams above TCP's rate", above)?;
    let cut = case.cut_flow(direction);
    facts.is(
        "datagrams above the rate are cut to less than TCP carries",
        cut.is_some(),
    );
    let (_, limit_bps) = cut?;
    let again = facts
        .known("segments retransmitted", carried.segments())?
        .ratio();
    let least = below.loss_bounds().0;
    let slower_bps = facts.known("what arrived of them", below.delivered_bps())?;
    let alone = case.single_stream(direction);
    let of_load = carried.result.streams.iter().map(|stream| stream.bps);
    let connection_bps = alone.map_or_else(|| of_load.fold(0.0, f64::max), |alone| alone.bps());
    // A line that is given out anew every few seconds carries as little of TCP in its slow ones.
    let slowest_bps = carried.seconds_bps().map(|seconds| seconds.p5);
    let slowest = "rate of TCP in its slow seconds";
    let limited = facts.at_least("loss of datagrams below the rate", ratio(least), LOST_RATIO)
        && slowest_bps.is_some_and(|s| facts.above(slowest, bps(s), DELIVERED_TIMES * limit_bps))
        && facts.at_most(
            "segments that TCP retransmitted",
            ratio(again),
            TCP_RATIO * least,
        )
        && above.offered_bps() >= OFFERED_TIMES * below.offered_bps()
        && facts.at_most(
            "rate at which the faster datagrams arrived",
            bps(limit_bps),
            DELIVERED_TIMES * slower_bps,
        )
        && facts.at_least(
            "rate of one connection",
            bps(connection_bps),
            TCP_TIMES * limit_bps,
        )
        && facts.is(
            "neither end was busy",
            ![below, above].iter().any(|stream| stream.is_busy()),
        );
    if !limited {
        return None;
    }
    let (place, doing) = (Place::line(direction), direction.name());
    Some(Finding {
        cause: Cause::UdpLimited,
        place,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "UDP {doing} is limited to {}: datagrams arrive at that rate whether {} or {} are sent, while TCP carries {} and sends {} again. Calls, games and QUIC have no more than that.",
            si(limit_bps, "bit/s"),
            si(below.offered_bps(), "bit/s"),
            si(above.offered_bps(), "bit/s"),
            si(carried.bps(), "bit/s"),
            percent(again),
        ),
        evidence: vec![
            fact(
                below.measurement,
                "receiver.loss_ratio",
                below.lost_ratio(),
                "share lost of datagrams below the rate that TCP reached, against four times what TCP retransmitted, and 10 %",
                (again / TCP_RATIO).max(LOST_RATIO),
            ),
            fact(
                above.measurement,
                "bps",
                limit_bps,
                "payload of faster datagrams that arrived, against 1.2 times the rate of slower ones: no more where it is a limit",
                DELIVERED_TIMES * slower_bps,
            ),
            fact(
                carried.measurement,
                "bps",
                connection_bps,
                "payload of one connection of TCP, against one and a half times what datagrams are limited to",
                TCP_TIMES * limit_bps,
            ),
        ],
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Look for a limit of UDP in the firewalls and routers of the path (flood protection, traffic shaping by protocol), and have its operator lift it or raise it above what calls need; until then use TCP where there is a choice (QUIC off in the browser, a VPN over TCP).",
            "Datagrams at four fifths of the rate that TCP reaches arrive whole.",
        )],
        kb: "udp".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::tests::{carried_up, made, stream};
    use plumb_model::results::Outcome;
    use plumb_model::run::Run;

    /// What is found of datagrams below TCP's rate and above it that lose so much, where TCP sends that share again.
    fn found(below: f64, above: f64, again: f64) -> usize {
        let mut run = Run::from_json(include_str!("../../fixtures/policer.json")).unwrap();
        for measurement in &mut run.measurements {
            measurement.series.remove("retransmits");
            if let Outcome::Throughput(result) = &mut measurement.outcome {
                result.tcp.retransmits = (result.bytes as f64 / 1448.0 * again) as u64;
            }
        }
        let bps = carried_up(&run);
        for (experiment, times, lost) in [
            (Experiment::Paced, 0.8, below),
            (Experiment::Overload, 1.4, above),
        ] {
            let pps = times * bps / (1400.0 * 8.0);
            // As many as go in the two seconds of an experiment.
            let sent = (2.0 * pps) as u64;
            made(&mut run, stream(experiment, pps, 1400), sent, lost, 0.0001);
        }
        (CAUSE.examine)(&Case::of(&run)).len()
    }

    #[test]
    fn the_same_rate_of_slow_and_fast_datagrams_is_a_limit() {
        // 10 % of TCP's rate.
        assert_eq!(found(0.875, 0.929, 0.0), 1);
        assert_eq!(found(0.875, 0.875, 0.0), 0, "the same share of both");
        assert_eq!(found(0.25, 0.3, 0.0), 0, "the line's own rate");
        assert_eq!(found(0.875, 0.929, 0.3), 0, "TCP loses as much");
        // 60 % of TCP's rate is more than one of its connections carries.
        assert_eq!(found(0.25, 0.571, 0.0), 0, "perhaps of each flow");
    }
}
