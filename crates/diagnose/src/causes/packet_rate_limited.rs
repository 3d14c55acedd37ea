//! A box on the path forwards so many packets a second and no more, however small they are.
//!
//! A router, firewall or VPN endpoint whose processor looks at each packet. Transfers in full packets may never notice; calls,
//! games and acknowledgements take as much of it with a tenth of the bits. Datagrams of full size above the rate and small
//! ones with few bits arrive at the same number a second, where a line of bits would pass all the small ones.

use plumb_model::context::Experiment;
use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::si;

use crate::Case;
use crate::dropped_here;
use crate::entry::{Entry, Family};
use crate::evidence::{Streamed, fact};
use crate::facts::{Recorder, ratio, seconds};
use crate::signs::{Kind, doing, percent};
use crate::weighing::prediction::{Observable, Prediction, strength};

/// Small packets that are lost at least, as a share: of twice as many as TCP carried, a box that limits packets loses half, and
/// TCP leaves it a third idle at worst.
const LOST_RATIO: f64 = 0.2;

/// Full packets below the rate lose at most this share of what small ones do, so that it is no loss at random.
const BELOW_RATIO: f64 = 0.25;

/// Packets a second of both sizes agree within this share: two counts of two seconds, and what others send meanwhile. A line of
/// bits would pass ten times as many small ones.
const SAME_RATIO: f64 = 0.15;

/// Full packets are so many times as large as small ones at least, so that a limit of bits is another number of packets.
const TIMES_AS_LARGE: u32 = 4;

/// Loss for so long without a break is an outage, in seconds: a queue that overflows lets every other packet pass.
const OUTAGE_S: f64 = 0.2;

/// Three experiments agree; the far end's own network card is a box as well.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "past that box, or with larger packets at the same rate, all packets arrive",
    needs: &[Need::Upload, Need::Download, Need::SmallPackets],
    resembles: &[
        (
            Cause::Policer,
            "a policer of bits lets small packets pass, of which many are few bits",
        ),
        (
            Cause::ReceiveOverrun,
            "what this machine cannot receive in time, its own counters show",
        ),
    ],
    predicts: &[Prediction::unlikely(Observable::LossBelowRate, strength::MODERATE).if_present()],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        let found = directions.filter_map(|direction| examine(case, direction));
        found
            .filter(|finding| !dropped_here::accounts_for(case, finding))
            .collect()
    },
    // Acknowledgements and probes of the other direction use it up as well.
    explains: |_, sign| sign.direction.is_some() && sign.kind != Kind::Window,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction);
    let small = case.streamed(Experiment::SmallPackets, direction).last();
    let small = facts.known("small datagrams", small)?;
    let below = case.streamed(Experiment::Paced, direction).next();
    let below = facts.known("datagrams at 80 % of TCP's rate", below)?;
    let above = case.streamed(Experiment::Overload, direction).last();
    let above = facts.known("datagrams above TCP's rate", above)?;
    // Datagrams that carry far less than TCP meet a limit of their own.
    case.line_bps(direction)?;
    let of_datagrams = above.packets_per_s().1?;
    // A sender that left packets out did not use the limit up; TCP did, if it is one of packets.
    let of_tcp = case
        .full_load(direction)
        .map(|carried| 1.0 / carried.packet_s());
    let full_pps = match above.has_gaps() {
        true => of_tcp.unwrap_or(0.0).max(of_datagrams),
        false => of_datagrams,
    };
    let small_pps = is_limited(small, below, above, full_pps, facts)?;
    let (place, doing, line) = (Place::line(direction), doing(direction), direction.name());
    let bps = small.delivered_bps()?;
    Some(Finding {
        cause: Cause::PacketRateLimited,
        place,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "A box on the path {line} forwards about {small_pps:.0} packets/s and no more, however small they are: packets of {} bytes get {} where packets of {} get {}. Small packets of {doing}, calls and games use it up with few bits.",
            small.payload_bytes(),
            si(bps, "bit/s"),
            above.payload_bytes(),
            si(above.delivered_bps()?, "bit/s"),
        ),
        evidence: vec![
            fact(
                small.measurement,
                "receiver.loss_ratio",
                small.lost_ratio(),
                "share lost of small datagrams, twice as many a second as TCP carried packets and less than a quarter of its bits",
                LOST_RATIO,
            ),
            fact(
                small.measurement,
                "receiver.received",
                small_pps,
                "small datagrams a second that arrived, against full-size ones a second: a limit of packets where they agree within 15 %",
                full_pps,
            ),
            fact(
                below.measurement,
                "receiver.loss_ratio",
                below.lost_ratio(),
                "share lost of datagrams of full size below the rate, against a quarter of what small ones lose, which loss at random would take",
                BELOW_RATIO * small.lost_ratio(),
            ),
        ],
        fixes: vec![Fix::advice(
            Actor::Router,
            format!(
                "Find the box: the router, firewall or VPN endpoint whose processor is busy at {small_pps:.0} packets/s. Let its hardware forward (flow offload), turn off what looks at each packet there (traffic analysis, logging, QoS in software), or replace it; on a VPN prefer one in the kernel (WireGuard)."
            ),
            format!(
                "Of small packets more than {small_pps:.0} arrive in a second, and fewer than {} of them are lost.",
                percent(LOST_RATIO)
            ),
        )],
        kb: "loss".to_owned(),
    })
}

/// How many small packets a second arrived, where it is as many as of full ones and many were lost.
fn is_limited(
    small: Streamed<'_>,
    below: Streamed<'_>,
    above: Streamed<'_>,
    full_pps: f64,
    facts: Recorder<'_>,
) -> Option<f64> {
    let (_, delivered_pps) = small.packets_per_s();
    let pps = delivered_pps?;
    let most = BELOW_RATIO * small.lost_ratio();
    let apart = (pps / full_pps - 1.0).abs();
    let is_box = facts.at_least(
        "loss of small datagrams",
        ratio(small.loss_bounds().0),
        LOST_RATIO,
    ) && facts.at_most(
        "datagrams at 80 % of TCP's rate: loss",
        ratio(below.lost_ratio()),
        most,
    ) && above.payload_bytes() >= TIMES_AS_LARGE * small.payload_bytes()
        && facts.at_most(
            "small packets a second that arrived, apart from full ones",
            ratio(apart),
            SAME_RATIO,
        )
        && facts.at_most(
            "longest loss of small datagrams",
            seconds(small.longest_loss_s()),
            OUTAGE_S,
        )
        && facts.is(
            "neither end was busy",
            ![small, above].iter().any(|stream| stream.is_busy()),
        );
    is_box.then_some(pps)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::tests::{carried_up, made, stream};
    use plumb_model::run::Run;

    const POLICER: &str = include_str!("../../fixtures/policer.json");

    /// What is found where full packets above the rate and small ones lose so much; so many packets a second were offered of both.
    fn found(lost_below: f64, above: (f64, f64), small: (f64, f64)) -> usize {
        let mut run = Run::from_json(POLICER).unwrap();
        let bps = carried_up(&run);
        let pps = |payload: u16, bps: f64| bps / (f64::from(payload) * 8.0);
        let full = |experiment, ratio| stream(experiment, pps(1400, ratio * bps), 1400);
        let below = full(Experiment::Paced, 0.8);
        made(&mut run, below, 1400, lost_below, 0.0001);
        let (times, lost) = above;
        made(
            &mut run,
            full(Experiment::Overload, times),
            2400,
            lost,
            0.02,
        );
        let (times, lost) = small;
        let few = stream(Experiment::SmallPackets, pps(1400, times * bps), 64);
        made(&mut run, few, 3400, lost, 0.02);
        (CAUSE.examine)(&Case::of(&run)).len()
    }

    #[test]
    fn as_many_small_packets_as_full_ones_are_a_limit_of_packets() {
        assert_eq!(found(0.0, (1.4, 0.28), (2.0, 0.5)), 1);
        assert_eq!(found(0.0, (1.4, 0.28), (2.0, 0.0)), 0, "a line of bits");
        assert_eq!(found(0.0, (1.4, 0.28), (2.0, 0.3)), 0, "40 % more of them");
        assert_eq!(found(0.2, (1.4, 0.28), (2.0, 0.5)), 0, "lost at any rate");
        assert_eq!(found(0.0, (1.4, 0.7), (2.0, 0.8)), 0, "datagrams alone");
        assert_eq!(found(0.0, (1.4, 0.0), (2.0, 0.5)), 0, "the line has room");
    }
}
