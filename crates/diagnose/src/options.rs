//! Options of TCP that a connection lacks though both ends offer them: something on the path strips them.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::results::{Direction, TcpSender};
use plumb_model::run::HostFacts;

use crate::Case;
use crate::evidence::{Carried, fact};

/// Both ends report that they offer it, and a connection came about without: SYNs are rarely changed by chance.
const CONFIDENCE: f64 = 0.97;

/// The far end does not say what it offers: nearly all hosts offer it, and some were set not to.
const UNKNOWN_CONFIDENCE: f64 = 0.7;

/// An option of TCP's handshake.
pub(crate) struct TcpOption {
    pub(crate) cause: Cause,
    /// Its usual name in text.
    pub(crate) name: &'static str,
    /// Field of `tcp` that says whether all streams had it.
    pub(crate) field: &'static str,
    pub(crate) had: fn(&TcpSender) -> Option<bool>,
    pub(crate) offered: fn(&HostFacts) -> Option<bool>,
    /// Whether nearly all hosts offer it: all systems do by default.
    pub(crate) is_usual: bool,
    /// How bad its absence is where it was seen to hold a load back, and otherwise, with what it comes to: a clause.
    pub(crate) costs: fn(Carried<'_>) -> (Severity, String),
}

impl TcpOption {
    /// A finding where a connection lacks it and both ends offer it, or this one does and nearly all others. Connections of both directions are opened alike,
    /// so that the direction in which it costs most says it all.
    pub(crate) fn stripped(&self, case: &Case<'_>) -> Vec<Finding> {
        let offered = |host: &HostFacts| (self.offered)(host) == Some(true);
        let facts = case.facts(None);
        let both = offered(case.local) && case.far.map_or(self.is_usual, offered);
        let streams = case.carried_any().then_some(());
        if facts
            .known("options of a load's streams", streams)
            .is_none()
            || !facts.is("both hosts are set to offer this one", both)
        {
            return Vec::new();
        }
        let (confidence, though) = match case.far {
            Some(_) => (CONFIDENCE, "though both ends offer it"),
            None => (
                UNKNOWN_CONFIDENCE,
                "or the far host was set not to offer it, which few are",
            ),
        };
        let loads = [Direction::Up, Direction::Down, Direction::Both];
        let without = loads
            .into_iter()
            .flat_map(|direction| case.carried(direction))
            .filter(|carried| (self.had)(&carried.result.tcp) == Some(false))
            .map(|carried| (carried, (self.costs)(carried)))
            .max_by_key(|(_, (severity, _))| *severity);
        let found = without.map(|(carried, (severity, costs))| Finding {
            cause: self.cause,
            place: Place::Path,
            severity,
            confidence,
            matters_for: Vec::new(),
            summary: format!(
                "Something on the path strips {} from TCP's handshakes, {though}: {costs}.",
                self.name
            ),
            evidence: vec![fact(
                carried.measurement,
                format_args!("tcp.{}", self.field),
                "absent",
                "option in the handshakes of all streams, though both hosts' settings offer it",
                "present",
            )],
            fixes: vec![Fix::advice(
                Actor::Provider,
                "Find the firewall, load balancer or accelerator that rewrites SYNs (`plumb path HOST --tcp` shows at which hop the option disappears) and have it pass options that it does not know (RFC 793, section 3.1).",
                format!("Connections have {}.", self.name),
            )],
            kb: "tcp-buffers".to_owned(),
        });
        facts.is("the handshakes of a load lack it", found.is_some());
        found.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::rules;
    use plumb_model::results::Outcome;
    use plumb_model::run::Run;

    /// How bad it is that connections which wait for the window have none that scales, in phases of so many seconds.
    fn severity(seconds: f64, is_far_known: bool) -> Severity {
        let mut run = Run::from_json(include_str!("../fixtures/policer.json")).unwrap();
        for measurement in &mut run.measurements {
            if let Outcome::Throughput(result) = &mut measurement.outcome {
                result.tcp.window_scaling = Some(false);
                result.tcp.limited.rwnd_ratio = 0.9;
                measurement.duration_s = seconds;
            }
        }
        let offers = HostFacts {
            window_scaling: Some(true),
            ..HostFacts::default()
        };
        let found = rules::found(&Case {
            measurements: &run.measurements,
            local: &offers,
            far: is_far_known.then_some(&offers),
            asked: None,
            log: None,
        });
        let stripped = |finding: &&Finding| finding.cause == Cause::WindowScalingStripped;
        found.iter().find(stripped).unwrap().severity
    }

    #[test]
    fn what_an_option_costs_shows_in_a_phase_that_is_long_enough() {
        assert_eq!(severity(15.0, true), Severity::Critical);
        assert_eq!(severity(1.5, true), Severity::Warning);
        // The far host says nothing of itself.
        assert_eq!(severity(15.0, false), Severity::Critical);
    }
}
