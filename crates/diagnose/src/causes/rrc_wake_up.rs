//! A radio sleeps after some seconds of silence, and the first packet waits until it is awake.
//!
//! A mobile network releases the connection of a silent terminal (RRC_IDLE, 3GPP TS 36.331) or lets it listen at times alone
//! (DRX); what comes next waits until it is back. Whatever follows is quick, so that no load and no dense probes show it.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family, Harm};
use crate::evidence::{HELD_S, fact_of_series};
use crate::facts::seconds;

/// So much longer, in seconds, takes what comes after a silence: long cycles of DRX begin at some tens of milliseconds, and
/// what routers and neighbour tables need for the first packet is less.
const LEAST_S: f64 = 0.05;

/// Probes after a silence, so that chance delays of one do not count.
const ENOUGH_SILENCES: usize = 2;

/// Dense probes, so that the slowest tenth of them is known.
const ENOUGH_PROBES: u64 = 10;

/// Each of the probes after a silence was slower than nearly all of the dense ones.
const CONFIDENCE: f64 = 0.85;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    harms: Harm::Delay,
    vanishes: "while something small is sent every second, or over a cable, the first packet is as quick as the next",
    needs: &[Need::Idle, Need::Silence],
    resembles: &[
        (
            Cause::WifiPowerSave,
            "there the gateway answers late, too, and the wait is of the size of a beacon",
        ),
        (
            Cause::DelayVaries,
            "there also packets that follow each other closely come late",
        ),
        (
            Cause::NatForgets,
            "there the first packet after a silence is lost, and not late",
        ),
    ],
    yields_to: &[Cause::WifiPowerSave],
    examine: |case| examine(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let facts = case.facts(None);
    let after = facts.known("single probes after silences", case.after_silence())?;
    let dense = case.idle_by(after.result.protocol);
    let dense = dense.and_then(|idle| idle.result.rtt_s);
    let dense = facts.known("probes of the idle path by the same protocol", dense)?;
    let waits = after.measurement.series.get("rtt")?.points();
    // The first follows whatever was sent before.
    let waits: Vec<f64> = waits.skip(1).map(|(_, rtt_s)| rtt_s).collect();
    let fastest_s = waits.iter().copied().reduce(f64::min)?;
    let later_s = fastest_s - dense.p50;
    let threshold_s = dense.p95.max(dense.p50 + LEAST_S);
    let enough = waits.len() >= ENOUGH_SILENCES && dense.count >= ENOUGH_PROBES;
    let wakes = facts.is("enough of both are answered", enough)
        && facts.above(
            "fastest round trip after a silence",
            seconds(fastest_s),
            threshold_s,
        );
    wakes.then(|| Finding {
        cause: Cause::RrcWakeUp,
        place: Place::Path,
        // From there on TCP sends again what only waits.
        severity: match later_s >= HELD_S {
            true => Severity::Warning,
            false => Severity::Info,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "A radio on the path sleeps: the first packet after seconds of silence takes {} longer than those that follow closely ({} against {}).",
            human_seconds(later_s),
            human_seconds(fastest_s),
            human_seconds(dense.p50),
        ),
        evidence: vec![fact_of_series(
            after.measurement,
            "rtt",
            fastest_s,
            "fastest probe after a silence, against those that follow closely; 95 % of them, and 50 ms more than half of them",
            threshold_s,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Where the first answer matters, keep the radio awake while a session lasts: one small packet a second, or an application that sends ahead of the user. It costs battery. How soon it sleeps is the operator's to set.",
            "A probe after a silence takes what dense probes do.",
        )],
        kb: "bufferbloat".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{found_in, idle};
    use plumb_model::context::Phase;
    use plumb_model::protocol::Protocol;
    use plumb_model::series::{Series, Unit};

    /// What is found where probes after silences take so long, and dense ones so long.
    fn found(after_s: &[Option<f64>], dense_s: f64) -> Vec<Severity> {
        let mut series = Series::new(Unit::Seconds);
        for (number, rtt_s) in after_s.iter().enumerate() {
            series.push(12.0 * number as f64, *rtt_s);
        }
        let mut after = idle(Protocol::Icmp, 3, 3, 0.05);
        after.context.phase = Some(Phase::Silence);
        after.series.insert("rtt".to_owned(), series);
        let dense = idle(Protocol::Icmp, 20, 20, dense_s);
        let found = found_in(CAUSE.examine, &[after, dense]).into_iter();
        found.map(|finding| finding.severity).collect()
    }

    #[test]
    fn what_comes_first_after_a_silence_is_late() {
        let all = |first, later| [Some(first), Some(later), Some(later)];
        assert_eq!(found(&all(0.05, 0.35), 0.05), [Severity::Warning]);
        assert_eq!(found(&all(0.05, 0.13), 0.05), [Severity::Info]);
        assert_eq!(found(&all(0.35, 0.055), 0.05), [], "the first alone");
        assert_eq!(found(&all(0.35, 0.35), 0.34), [], "a path as long");
        let one = [Some(0.05), Some(0.35), Some(0.05)];
        assert_eq!(found(&one, 0.05), [], "one of two");
        let lost = [Some(0.05), None, Some(0.35)];
        assert_eq!(found(&lost, 0.05), [], "one answer");
    }
}
