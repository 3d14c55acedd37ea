//! One processor of several serves all received packets.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Counted, fact};
use crate::signs::percent;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the rate goes up once the queues are spread over the processors",
    needs: &[Need::CounterRates],
    examine: |case| saturated(case).into_iter().collect(),
    ..Entry::PLAIN
};

/// Share of its time that a processor spends in the kernel's network code (softirq) when it can do no more: the kernel
/// leaves the rest to programs (`ksoftirqd` has no more than a fair share).
const SATURATED_RATIO: f64 = 0.9;

/// Share of all processors' time that is free meanwhile, so that others could have helped.
const FREE_RATIO: f64 = 0.2;

const CONFIDENCE: f64 = 0.9;

/// Counted beside a check.
fn saturated(case: &Case<'_>) -> Option<Finding> {
    // Processors are the machine's; in a part of it others' packets count as well.
    if case.is_whole_machine() != Some(true) {
        return None;
    }
    let all = case.counted().filter_map(|counted| {
        let (ratio, processor) = busiest(counted)?;
        let free = counted.grown("processor.idle_ticks") as f64;
        let all = counted.grown("processor.ticks") as f64;
        (free >= FREE_RATIO * all).then_some((ratio, processor, counted))
    });
    let (ratio, processor, counted) = all.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (ratio >= SATURATED_RATIO).then(|| Finding {
        cause: Cause::OneProcessorReceives,
        place: Place::ThisHost,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "One processor ({processor}) spent {} of its time on packets {}, while others were free: it is what ends the rate.",
            percent(ratio),
            counted.during()
        ),
        evidence: vec![fact(
            counted.measurement,
            format_args!("grown.processor.{processor}.softirq_ticks"),
            ratio,
            "share of the busiest processor's time in softirqs, where a fifth of all processors' time was free",
            SATURATED_RATIO,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Spread the packets over more queues and processors (`ethtool -L`, RSS, RPS): `plumb host` shows which interrupts are served where.",
            "No processor spends nearly all of its time on packets.",
        )],
        kb: "host".to_owned(),
    })
}

/// The processor that spent most of its time on packets, with that share.
fn busiest(counted: Counted<'_>) -> Option<(f64, &str)> {
    let names = counted.result.grown.keys();
    let processors = names.filter_map(|name| {
        let processor = name
            .strip_prefix("processor.")?
            .strip_suffix(".softirq_ticks")?;
        let all = counted.grown(&format!("processor.{processor}.ticks"));
        (all > 0).then(|| (counted.grown(name) as f64 / all as f64, processor))
    });
    processors.max_by(|a, b| a.0.total_cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{counting, found_in, measurement};
    use plumb_model::results::Outcome;
    use plumb_model::results::host::HostResult;

    #[test]
    fn one_that_is_full_beside_others_that_are_free_is_found() {
        let found = |softirq, idle, whole| {
            let mut host = HostResult::default();
            host.machine.first_network_namespace = whole;
            let counted = counting(&[
                ("processor.ticks", 6000),
                ("processor.idle_ticks", idle),
                ("processor.cpu2.ticks", 1500),
                ("processor.cpu2.softirq_ticks", softirq),
            ]);
            let measured = [measurement(Outcome::Host(Box::new(host))), counted];
            found_in(CAUSE.examine, &measured).len()
        };
        assert_eq!(found(1450, 4000, true), 1);
        assert_eq!(found(700, 4000, true), 0);
        assert_eq!(found(1450, 300, true), 0, "all are busy");
        assert_eq!(found(1450, 4000, false), 0, "a part of a machine");
    }
}
