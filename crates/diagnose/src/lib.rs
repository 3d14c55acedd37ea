//! What the measurements mean: evidence in, findings with typed actions out.
//!
//! One rule a file. A rule looks at a [`Case`] and says what it found, with the numbers that it
//! rests on; it measures nothing and asks nobody, so that it can be tried on any saved Run.

mod bufferbloat;
mod buffers;
mod capacity;
pub mod host;
mod loss;
mod one_way;
mod path;
mod path_mtu;
#[cfg(test)]
mod testing;
mod verdict;

use plumb_model::finding::{Finding, Verdict};
use plumb_model::results::{Direction, LoadedLatencyResult, Outcome, ThroughputResult};
use plumb_model::run::{HostFacts, Measurement};

/// What is known of a path.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// What was measured.
    pub measurements: &'a [Measurement],
    /// This machine.
    pub local: &'a HostFacts,
    /// The far machine, where it told of itself.
    pub far: Option<&'a HostFacts>,
}

/// A rule of diagnosis.
type Rule = fn(&Case<'_>) -> Vec<Finding>;

const RULES: [Rule; 7] = [
    bufferbloat::examine,
    buffers::examine,
    loss::examine,
    path::examine,
    path_mtu::examine,
    one_way::examine,
    capacity::examine,
];

/// Everything that holds the path back, worst first, and what it comes to.
pub fn diagnose(case: &Case<'_>) -> (Vec<Finding>, Verdict) {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(case)).collect();
    findings.sort_by(|a, b| {
        b.severity
            .cmp(&a.severity)
            .then(excess(b).total_cmp(&excess(a)))
    });
    let verdict = verdict::verdict(case, &findings);
    (findings, verdict)
}

/// How far the first piece of evidence lies beyond its threshold.
fn excess(finding: &Finding) -> f64 {
    finding
        .evidence
        .first()
        .and_then(|e| Some(e.value.number()? / e.threshold.number()?))
        .unwrap_or(0.0)
}

impl<'a> Case<'a> {
    /// Load phases in which only `direction` was loaded.
    fn loaded_latency(
        &self,
        direction: Direction,
    ) -> Option<(&'a Measurement, &'a LoadedLatencyResult)> {
        self.measurements.iter().find_map(|m| match &m.outcome {
            Outcome::LoadedLatency(result) if result.direction == direction => Some((m, result)),
            _ => None,
        })
    }

    /// What was carried in `direction` while the other was idle.
    fn throughput_alone(
        &self,
        direction: Direction,
    ) -> Option<(&'a Measurement, &'a ThroughputResult)> {
        self.measurements.iter().find_map(|m| match &m.outcome {
            Outcome::Throughput(result)
                if result.direction == direction
                    && m.params.get("phase").and_then(|p| p.as_str()) != Some("both") =>
            {
                Some((m, result))
            }
            _ => None,
        })
    }
}
