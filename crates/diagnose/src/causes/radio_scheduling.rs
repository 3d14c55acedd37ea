//! What the line carries changes from moment to moment, as a radio's cell or access point grants it.
//!
//! A cell gives each phone turns by how well it hears it and by how many others ask. Datagrams below the mean rate pass at once most
//! of the time, and wait in a queue in the moments in which the line carries less than that.

use plumb_model::context::Experiment;
use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{capital, human_seconds, si};

use crate::Case;
use crate::entry::{Entry, Family, Harm, is_about};
use crate::evidence::{fact, fact_of_series};
use crate::facts::{bps, ratio, seconds as time};
use crate::signs::{Kind, STEADY_RATIO};

/// Others who send in bursts over a line of a steady rate look the same.
const CONFIDENCE: f64 = 0.75;

/// One in twenty datagrams waits so much longer than the fastest, in seconds and in packets at the rate: more than scheduling at
/// both ends does.
const WAIT_S: f64 = 0.02;
const WAIT_PACKETS: f64 = 10.0;

/// A quarter of the datagrams waits at most this share of that: the line keeps up in between.
const BETWEEN_RATIO: f64 = 0.25;

/// A queue that overflows in such moments loses at most this share of the datagrams and of the segments.
const OVERFLOW_RATIO: f64 = 0.05;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Damage,
    harms: Harm::Delivery,
    vanishes: "over a cable, datagrams below the mean rate do not wait",
    needs: &[Need::Upload, Need::Download, Need::Datagrams],
    resembles: &[
        (
            Cause::RateVaries,
            "there the rate stays at one level for seconds, and then at another",
        ),
        (
            Cause::PathLoss,
            "loss at random makes the rate vary too, and no datagram below the rate waits",
        ),
        (
            Cause::CrossTraffic,
            "others' traffic fills a queue while the path is idle as well",
        ),
    ],
    yields_to: &[
        Cause::CrossTraffic,
        Cause::DelayVaries,
        Cause::Handover,
        Cause::Outage,
        Cause::RateVaries,
        Cause::TokenBucket,
    ],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        directions.filter_map(|d| examine(case, d)).collect()
    },
    explains: |finding, sign| {
        is_about(finding, sign)
            && match sign.kind {
                Kind::Unsteady => true,
                Kind::Retransmissions | Kind::ProbesLost => sign.ratio <= OVERFLOW_RATIO,
                _ => false,
            }
    },
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction);
    let carried = facts.known("a load", case.carried_alone(direction))?;
    let seconds = carried.seconds_bps().filter(|_| carried.shows_rate());
    let seconds = facts.known("its rate second by second", seconds)?;
    let below = case.streamed(Experiment::Paced, direction).next();
    let below = below.filter(|below| below.has_own_delays());
    let below = facts.known("delays of datagrams at 80 % of TCP's rate", below)?;
    let wait_s = below.queue_s();
    let least_s = WAIT_S.max(WAIT_PACKETS * below.packet_s()?);
    let between_s = BETWEEN_RATIO * wait_s;
    let varies = facts.below(
        "rate in slow seconds",
        bps(seconds.p5),
        STEADY_RATIO * seconds.p95,
    ) && facts.at_least("longest wait of the datagrams", time(wait_s), least_s)
        && facts.at_most("least wait of them", time(below.least_wait_s()), between_s)
        && facts.at_most("their loss", ratio(below.lost_ratio()), OVERFLOW_RATIO)
        && facts.is("no other host used the line", !case.is_used_by_others());
    varies.then(|| Finding {
        cause: Cause::RadioScheduling,
        place: Place::line(direction),
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{}loads carry between {} and {} from second to second, and datagrams below their mean rate wait up to {} at times: what the line carries changes from moment to moment, as on a radio.",
            capital(direction.name()),
            si(seconds.p5, "bit/s"),
            si(seconds.p95, "bit/s"),
            human_seconds(wait_s),
        ),
        evidence: vec![
            fact_of_series(
carried.measurement,
"bps",
seconds.p5,
                    "5th percentile of the rates of whole seconds after slow start, against half of the 95th",
                    STEADY_RATIO * seconds.p95,
),
            fact(
                below.measurement,
                "receiver.pdv_s.p95",
                wait_s,
                "95th percentile of the wait of datagrams at 80 % of the mean rate, against 20 ms and ten packets",
                least_s,
            ),
        ],
        fixes: vec![Fix::advice(
            Actor::Provider,
            format!(
                "A radio's rate is the cell's or access point's to grant: try another place for the modem or an antenna outside, another band, or a cable. A shaper against a long queue has to be set below the lower rate ({}), or to follow the line (cake-autorate).",
                si(seconds.p5, "bit/s")
            ),
            "The slow seconds carry half of what the fast ones do at least.",
        )],
        kb: "throughput".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::tests::{carried_up, made, stream};
    use plumb_model::distribution::Distribution;
    use plumb_model::results::Outcome;
    use plumb_model::run::Run;

    /// What is found where the slow half of the seconds has so much of the rate, and datagrams below it wait so long at times.
    fn found(slow: f64, wait_s: f64) -> usize {
        let mut run = Run::from_json(include_str!("../../fixtures/policer.json")).unwrap();
        for measurement in &mut run.measurements {
            if let Some(bps) = measurement.series.get_mut("bps") {
                for (t, value) in bps.t_s.iter().zip(&mut bps.values) {
                    let share = if (*t as u64).is_multiple_of(2) {
                        slow
                    } else {
                        1.0
                    };
                    *value = value.map(|bps| share * bps);
                }
            }
        }
        let pps = 0.8 * carried_up(&run) / (1400.0 * 8.0);
        let below = stream(Experiment::Paced, pps, 1400);
        made(&mut run, below, (2.0 * pps) as u64, 0.0, 0.0);
        let last = run.measurements.last_mut().unwrap();
        if let Outcome::Udp(result) = &mut last.outcome {
            let waits = (0..100).map(|n| if n < 80 { 0.001 } else { wait_s });
            result.receiver.as_mut().unwrap().pdv_s = Distribution::of(waits);
        }
        (CAUSE.examine)(&Case::of(&run)).len()
    }

    #[test]
    fn a_rate_that_changes_with_waits_below_it_is_a_radios() {
        assert_eq!(found(0.2, 0.2), 1);
        assert_eq!(found(0.2, 0.002), 0, "loss makes rates vary too");
        assert_eq!(found(0.9, 0.2), 0, "a steady rate");
    }
}
