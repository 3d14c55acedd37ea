//! Packets come late by tens or hundreds of milliseconds, whatever loads the path.
//!
//! A radio that sends again what failed, a scheduler that grants turns seldom, a virtual machine that waits for a processor:
//! each packet waits for a time of its own, and in no queue that fills and empties.

use plumb_model::distribution::Distribution;
use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Amount, Entry, Family};
use crate::evidence::{Varying, fact};
use crate::facts::seconds;
use crate::long_queue::{CRITICAL_S, WARNING_S};
use crate::signs::{Kind, Sign};

/// Others that send in short bursts at a far higher rate than the line's look the same.
const CONFIDENCE: f64 = 0.85;

/// Only datagrams come late: the program at the far end answers them, and its kernel answers echo requests.
const FAR_END_CONFIDENCE: f64 = 0.6;

/// What accounts for the spread has this share of it at least.
const MOST_RATIO: f64 = 0.5;

/// Echo requests are ten a second: so many show a 95th percentile of 4 s.
const ENOUGH_ECHOES: u64 = 40;

/// Acknowledgements that come together let windows leave in bursts, which overflow queues: as many segments as an overflowing
/// queue loses.
const OVERFLOW_RATIO: f64 = 0.05;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "over a cable in place of the radio, or with the machine in between less busy, idle round trips are steady",
    needs: &[Need::Idle],
    resembles: &[
        (
            Cause::BufferbloatDown,
            "a queue of our own is empty before our load, and adds to the latest of the idle path",
        ),
        (
            Cause::CrossTraffic,
            "a queue that others fill rises and falls over hundreds of milliseconds, and their packets keep our probes apart",
        ),
        (
            Cause::Handover,
            "there most packets come in time, and all of a short time come at once",
        ),
    ],
    amount: Amount::Spread,
    examine: |case| examine(case).into_iter().collect(),
    explains,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let facts = case.facts(None);
    let varying = case.varying();
    if facts
        .known("probes of the idle path", case.idle())
        .is_some()
    {
        let no_queue = "round trips differ from one to the next, as in no queue";
        facts.is(no_queue, varying.is_some());
    }
    let name = "95th percentile of idle round trips above the fastest";
    let varying = varying.filter(|v| facts.at_least(name, seconds(v.spread_s), WARNING_S))?;
    let spread_s = varying.spread_s;
    let has_most = |rtt_s: Distribution| rtt_s.p95 - rtt_s.min >= MOST_RATIO * spread_s;
    let gateway = case
        .every_loaded()
        .find_map(|loaded| loaded.idle_to_gateway_s());
    let echoes = case
        .idle_by(Protocol::Icmp)
        .and_then(|echoes| echoes.result.rtt_s)
        .filter(|rtt_s| rtt_s.count >= ENOUGH_ECHOES);
    let (place, confidence, where_) = match (gateway, echoes) {
        (Some(gateway), _) if has_most(gateway) => (
            Place::LocalSegment,
            CONFIDENCE,
            " between this host and its gateway",
        ),
        (_, Some(echoes)) if !has_most(echoes) => (
            Place::FarHost,
            FAR_END_CONFIDENCE,
            ", while echo requests are answered in time: the far end's program is late, or the path treats UDP otherwise",
        ),
        _ => (Place::Path, CONFIDENCE, direction(varying)),
    };
    Some(Finding {
        cause: Cause::DelayVaries,
        place,
        severity: match spread_s >= CRITICAL_S {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        confidence,
        matters_for: Vec::new(),
        summary: format!(
            "Packets come up to {} late while nothing of ours loads the path, each by a time of its own{where_}: no queue does that.",
            human_seconds(spread_s),
        ),
        evidence: vec![
            fact(
                varying.idle.measurement,
                "rtt_s.p95",
                spread_s,
                "95th percentile of idle round trips above the fastest, before and after the loads, where neighbours differ or come together as in no queue",
                WARNING_S,
            ),
            fact(
                varying.idle.measurement,
                "rtt_s.p50",
                varying.rtt_s.p50,
                "usual round trip of the idle path, against the fastest",
                varying.rtt_s.min,
            ),
        ],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Try a cable in place of Wi-Fi, or another band or channel. `plumb path HOST --continuous` shows from which hop on it is so; `plumb host` shows whether this machine waits for its processor. From the provider's first router on, it is the provider's to fix. A managed queue does not help against it.",
            "Idle round trips stay within tens of milliseconds of the fastest.",
        )],
        kb: "loaded-latency".to_owned(),
    })
}

/// In which direction, where the clocks show it.
fn direction(varying: Varying<'_>) -> &'static str {
    let waits_s = |direction| varying.idle.waited_s(direction).map(|waited| waited.p95);
    let least_s = MOST_RATIO * varying.spread_s;
    match [Direction::Up, Direction::Down].map(|d| waits_s(d).map(|s| s >= least_s)) {
        [Some(true), Some(false)] => " on the path up",
        [Some(false), Some(true)] => " on the path down",
        _ => "",
    }
}

fn explains(_: &Finding, sign: &Sign) -> bool {
    match sign.kind {
        Kind::Unsteady | Kind::Shortfall => true,
        Kind::Retransmissions => sign.ratio <= OVERFLOW_RATIO,
        // Bursts overflow the queue that a load keeps filled.
        Kind::ProbesLost => sign.direction.is_some() && sign.ratio <= OVERFLOW_RATIO,
        Kind::Stall | Kind::Collapse | Kind::Window => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use plumb_model::context::Phase;
    use plumb_model::run::Measurement;
    use plumb_model::series::{Series, Unit};

    /// Probes 20 ms apart for 4 s, of which each waits so long above 20 ms.
    fn probes(phase: Phase, waits_s: impl Fn(u32) -> f64) -> Measurement {
        let mut series = Series::new(Unit::Seconds);
        for probe in 0..200 {
            series.push(f64::from(probe) * 0.02, Some(0.02 + waits_s(probe)));
        }
        let mut measured = testing::idle(Protocol::Udp, 200, 200, 0.02);
        measured.duration_s = 4.0;
        measured.context.phase = Some(phase);
        measured.series.insert("rtt".to_owned(), series);
        measured
    }

    fn found(measurements: &[Measurement]) -> usize {
        testing::found_in(CAUSE.examine, measurements).len()
    }

    /// Delays up to so long, each by itself.
    fn by_itself(most_s: f64) -> impl Fn(u32) -> f64 {
        move |probe| most_s * f64::from(probe * 37 % 100) / 100.0
    }

    /// As a queue that grows for a second and empties in a second.
    fn queue(probe: u32) -> f64 {
        0.002 * f64::from(50_u32.abs_diff(probe % 100))
    }

    #[test]
    fn late_packets_are_found_before_and_after_loads() {
        let idle = || probes(Phase::Idle, by_itself(0.12));
        assert_eq!(found(&[idle()]), 1);
        assert_eq!(found(&[idle(), probes(Phase::After, by_itself(0.12))]), 1);
        let steady = probes(Phase::After, by_itself(0.002));
        assert_eq!(found(&[idle(), steady]), 0, "it was so once");
        assert_eq!(found(&[probes(Phase::Idle, by_itself(0.03))]), 0);
    }

    #[test]
    fn a_queue_that_others_fill_is_another_cause() {
        assert_eq!(found(&[probes(Phase::Idle, queue)]), 0);
    }
}
