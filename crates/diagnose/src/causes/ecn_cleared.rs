//! A machine on the path clears the ECN field.

use plumb_model::context::Experiment;
use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::results::path::{AlteredField, EcnField};

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Streamed, altered, fact};

/// Another port may be treated otherwise.
const CONFIDENCE: f64 = 0.95;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "hops before the one that clears it quote it as it was sent, or one end receives another value than the other sent",
    needs: &[Need::QuotedHeaders],
    examine: |case| {
        let of_route = |route| altered(route, AlteredField::Ecn, Cause::EcnCleared, "ECN field");
        let mut found: Vec<Finding> = case.routes().flat_map(of_route).collect();
        // A reflector reports the ECN field of what it received, and not the one that its replies left with.
        let directions = [Direction::Up, Direction::Down].into_iter();
        let unknown = directions.filter(|d| *d == Direction::Down || found.is_empty());
        let of_datagrams: Vec<Finding> = unknown.filter_map(|d| of_datagrams(case, d)).collect();
        found.extend(of_datagrams);
        found
    },
    ..Entry::PLAIN
};

/// Datagrams of an experiment that were sent with ECT(0) and arrive without.
fn of_datagrams(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let kinds = [Experiment::Paced, Experiment::SmallPackets].into_iter();
    let mut streams = kinds.flat_map(|kind| case.streamed(kind, direction));
    streams.find_map(|stream| cleared(stream, direction))
}

fn cleared(stream: Streamed<'_>, direction: Direction) -> Option<Finding> {
    let flows = &stream.measurement.context.load.as_ref()?.flows;
    let asked = flows.iter().any(|flow| flow.ecn == Some(EcnField::Ect0));
    let arrived = stream.ecn();
    let all = arrived.not_ect + arrived.ect0 + arrived.ect1 + arrived.ce;
    let cleared = asked && 2 * arrived.not_ect > all;
    cleared.then(|| Finding {
        cause: Cause::EcnCleared,
        place: Place::Path,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The ECN field of packets on the path {} is cleared: {} of {all} datagrams that were sent with ECT(0) arrive without.",
            direction.name(),
            arrived.not_ect,
        ),
        evidence: vec![fact(
            stream.measurement,
            "receiver.ecn.not_ect",
            arrived.not_ect as f64,
            "datagrams that arrived as not ECN-capable, against half of all that arrived",
            all as f64 / 2.0,
        )],
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Rely on no mark in that direction, or ask who runs the path to leave the field alone (RFC 3168).",
            "Datagrams arrive with the field as it was sent.",
        )],
        kb: "path".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::tests::{carried_up, made, stream};
    use plumb_model::results::Outcome;
    use plumb_model::run::Run;

    /// What is found of datagrams of which so many arrive without the field.
    fn found(not_ect: u64, asked: Option<EcnField>) -> usize {
        let mut run = Run::from_json(include_str!("../../fixtures/policer.json")).unwrap();
        let mut load = run
            .measurements
            .iter()
            .find_map(|m| m.context.load.clone())
            .unwrap();
        let pps = 0.8 * carried_up(&run) / (1400.0 * 8.0);
        made(
            &mut run,
            stream(Experiment::Paced, pps, 1400),
            1000,
            0.0,
            0.0,
        );
        load.flows.iter_mut().for_each(|flow| flow.ecn = asked);
        let last = run.measurements.last_mut().unwrap();
        last.context.load = Some(load);
        if let Outcome::Udp(result) = &mut last.outcome {
            let ecn = &mut result.receiver.as_mut().unwrap().ecn;
            (ecn.not_ect, ecn.ect0) = (not_ect, 1000 - not_ect);
        }
        (CAUSE.examine)(&Case::of(&run)).len()
    }

    #[test]
    fn a_field_that_was_sent_and_does_not_arrive_is_cleared() {
        assert_eq!(found(1000, Some(EcnField::Ect0)), 1);
        assert_eq!(
            found(10, Some(EcnField::Ect0)),
            0,
            "the route changed for a moment"
        );
        assert_eq!(found(1000, None), 0, "it was not sent");
    }
}
