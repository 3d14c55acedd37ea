//! A quota of a control group stops plumb's programs for a part of the time.
//!
//! Containers have one where a limit of processors is set. When it is used up, all threads of the group wait for the next
//! period, of 100 ms usually (Linux Documentation/scheduler/sched-bwc.rst).

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::Counted;
use crate::facts::ratio;

/// As a share of the time: a stop in every twentieth of it is in the 95th percentile of what is timed.
const WARNING_RATIO: f64 = 0.05;
const LEAST_RATIO: f64 = 0.005;

/// The kernel counts it for this very group.
const CONFIDENCE: f64 = 0.95;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "without the quota, or with a larger one, the group is never stopped",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::VmSteal,
        "there the hypervisor takes the time, and the group's counter stands still",
    )],
    examine: |case| worst(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn worst(case: &Case<'_>) -> Option<Finding> {
    let stopped = case.counted().map(|counted| {
        let stopped_s = counted.grown("control_group.throttled_us") as f64 / 1e6;
        let all_s = counted.measurement.duration_s.max(f64::MIN_POSITIVE);
        (stopped_s / all_s, stopped_s, counted)
    });
    let facts = case.facts(None);
    let worst = stopped.max_by(|a, b| a.0.total_cmp(&b.0));
    let worst = facts.known("this machine's counters beside each phase", worst);
    let (share, stopped_s, counted) = worst?;
    let name = "share of a phase in which threads were stopped";
    facts
        .at_least(name, ratio(share), LEAST_RATIO)
        .then(|| finding(share, stopped_s, counted))
}

fn finding(ratio: f64, stopped_s: f64, counted: Counted<'_>) -> Finding {
    let times = counted.grown("control_group.throttled");
    Finding {
        cause: Cause::CpuQuota,
        place: Place::ThisHost,
        severity: match ratio >= WARNING_RATIO {
            true => Severity::Warning,
            false => Severity::Info,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "A processor quota stopped the programs of this container {times} times {}, for {} together: what was measured then is partly the quota's.",
            counted.during(),
            human_seconds(stopped_s)
        ),
        evidence: vec![Evidence {
            measurement: counted.measurement.id.clone(),
            field: "result.grown.control_group.throttled_us".to_owned(),
            value: ratio.into(),
            rule: "share of the phase in which threads of this control group, or of those around it, were stopped; each processor counts by itself".to_owned(),
            threshold: LEAST_RATIO.into(),
        }],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Give the container more processors (cpu.max; Docker --cpus, Kubernetes limits.cpu), or measure outside it.",
            "The group's counter nr_throttled stands still.",
        )],
        kb: "host".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::counted;

    #[test]
    fn a_quota_that_stops_for_long_is_worth_fixing() {
        // Of one second.
        let found = |us| {
            let grown = [
                ("control_group.throttled_us", us),
                ("control_group.throttled", 3),
            ];
            let found = counted(CAUSE.examine, &grown).into_iter();
            found.map(|finding| finding.severity).collect::<Vec<_>>()
        };
        assert_eq!(found(0), []);
        assert_eq!(found(10_000), [Severity::Info]);
        assert_eq!(found(200_000), [Severity::Warning]);
    }
}
