//! The hypervisor gives this machine's processors to others while it wants to run.
//!
//! Linux counts that time as stolen (proc_stat(5)). Timers, probes and programs wait for it as if the network had
//! delayed them.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::need::Need;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::Counted;
use crate::facts::ratio;
use crate::signs::percent;

/// Of the time that the machine wanted to run. From a tenth on the 90th percentile of what it times is of the
/// hypervisor's making; a twentieth touches the 95th, by which plumb judges latency.
const WARNING_RATIO: f64 = 0.1;
const LEAST_RATIO: f64 = 0.05;

/// Of all time, idle time included: a machine that hardly ran says nothing, as a share.
const LEAST_OF_ALL_RATIO: f64 = 0.02;

/// The hypervisor reports it itself; whether it touched the measurement is likely.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "on a host of its own, or with processors reserved for it, the counter of stolen time stands still",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there the clock of stolen time stands still while packets are late",
    )],
    examine: |case| worst(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn worst(case: &Case<'_>) -> Option<Finding> {
    let all = case.counted().filter_map(|counted| {
        let stolen = counted.grown("processor.steal_ticks") as f64;
        let all = counted.grown("processor.ticks") as f64;
        let wanted = all - counted.grown("processor.idle_ticks") as f64;
        let enough = wanted > 0.0 && stolen >= LEAST_OF_ALL_RATIO * all;
        enough.then(|| (stolen / wanted, counted))
    });
    let facts = case.facts(None);
    facts.known(
        "this machine's counters beside each phase",
        case.counted().next(),
    )?;
    let worst = all.max_by(|a, b| a.0.total_cmp(&b.0));
    facts.is("the hypervisor took time in some phase", worst.is_some());
    let (share, counted) = worst?;
    let name = "time stolen, of that in which this machine was not idle";
    facts
        .at_least(name, ratio(share), LEAST_RATIO)
        .then(|| finding(share, counted))
}

fn finding(ratio: f64, counted: Counted<'_>) -> Finding {
    Finding {
        cause: Cause::VmSteal,
        place: Place::ThisHost,
        severity: match ratio >= WARNING_RATIO {
            true => Severity::Warning,
            false => Severity::Info,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The hypervisor gave this machine's processors to others for {} of the time that it wanted to run {}: rates and latencies measured here are partly the hypervisor's.",
            percent(ratio),
            counted.during()
        ),
        evidence: vec![Evidence {
            measurement: counted.measurement.id.clone(),
            field: "result.grown.processor.steal_ticks".to_owned(),
            value: ratio.into(),
            rule: "time stolen by the hypervisor, as a share of the time in which this machine was not idle"
                .to_owned(),
            threshold: LEAST_RATIO.into(),
        }],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Measure again at another time. Where it stays so, take a larger or a dedicated instance, or ask who runs the hypervisor for less overcommitment.",
            "No time is stolen during a check.",
        )],
        kb: "host".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::counted;

    fn found(stolen: u64, idle: u64) -> Vec<Severity> {
        let grown = [
            ("processor.ticks", 3000),
            ("processor.idle_ticks", idle),
            ("processor.steal_ticks", stolen),
        ];
        let found = counted(CAUSE.examine, &grown).into_iter();
        found.map(|finding| finding.severity).collect()
    }

    #[test]
    fn what_is_stolen_counts_against_what_was_wanted() {
        assert_eq!(found(600, 1500), [Severity::Warning]);
        assert_eq!(found(100, 1500), [Severity::Info]);
        assert_eq!(found(30, 1500), []);
        assert_eq!(found(20, 2950), [], "a machine that hardly ran");
        assert_eq!(found(0, 0), []);
    }
}
