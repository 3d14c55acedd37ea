//! One processor of several serves all received packets.

use plumb_model::finding::{
    Actor, Cause, Finding, Fix, InterfaceChange, PathKind, Place, Severity,
};
use plumb_model::need::Need;
use plumb_model::results::host::{Interface, InterruptLine};

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Counted, fact};
use crate::host::{Facts, Judged, Subject, fine, found};
use crate::signs::percent;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the rate goes up once the queues are spread over the processors",
    needs: &[Need::CounterRates],
    examine: |case| saturated(case).into_iter().collect(),
    audits: &[(Subject::Interrupts, audit)],
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

/// Interrupts below which their spread says nothing.
const ENOUGH: u64 = 100_000;

/// Share of them on one processor from which on it serves all.
const ALL_RATIO: f64 = 0.9;

/// Fewer processors than this leave nothing to spread.
const SEVERAL: u32 = 4;

/// Below this rate one processor is enough: a core receives about 10 to 20 Gbit/s with GRO.
const FAST_BPS: f64 = 10e9;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    facts
        .hardware()
        .filter_map(|(_, interface)| interrupts(facts, interface))
        .collect()
}

fn interrupts(facts: &Facts<'_>, interface: &Interface) -> Option<Judged> {
    let name = &interface.name;
    let lines: Vec<_> = facts
        .host
        .interrupts
        .iter()
        .filter(|line| line.interface == *name)
        .collect();
    let mut each = vec![0_u64; facts.host.cpus.online as usize];
    for line in &lines {
        for (sum, count) in each.iter_mut().zip(&line.counts) {
            *sum = sum.saturating_add(*count);
        }
    }
    let all: u64 = each.iter().fold(0, |sum, count| sum.saturating_add(*count));
    let most = each.iter().copied().max()?;
    if all < ENOUGH || facts.host.cpus.online < SEVERAL {
        return None;
    }
    let share = most as f64 / all as f64;
    let subject = format!("{name} interrupts");
    let spread_by_kernel = interface
        .steering
        .iter()
        .any(|s| s.queue.starts_with("rx-") && s.cpus.chars().any(|c| c != '0' && c != ','));
    let slow = interface
        .link
        .as_ref()
        .and_then(|link| link.speed_bps)
        .is_some_and(|bps| bps < FAST_BPS);
    if share < ALL_RATIO || spread_by_kernel || slow {
        let how = if spread_by_kernel {
            ", and RPS spreads the packets"
        } else {
            ""
        };
        return Some(fine(
            subject,
            format!(
                "the busiest of {} processors serves {:.0} % of the interrupts of {name}{how}",
                each.len(),
                share * 100.0
            ),
        ));
    }
    let cpu = each.iter().position(|count| *count == most)?;
    let on_it = |line: &InterruptLine| line.counts.get(cpu).copied().unwrap_or_default();
    let here = facts.host.interrupts.iter().enumerate();
    let (place, busiest) = here
        .filter(|(_, line)| line.interface == *name)
        .max_by_key(|(_, line)| on_it(line))?;
    let draft = found(
        subject,
        Cause::OneProcessorReceives,
        Severity::Info,
        &[PathKind::Lan, PathKind::BusyServer, PathKind::Router],
        format!(
            "Processor {cpu} serves {:.0} % of the interrupts of {name}, and {} others could.",
            share * 100.0,
            each.len() - 1
        ),
    )
    .sure(0.7)
    .evidence(facts.evidence(
        format!("interrupts[{place}].counts[{cpu}]"),
        on_it(busiest) as f64,
        "interrupts of the busiest line on that processor; all its lines there are compared with nine tenths of all",
        all as f64 * ALL_RATIO,
    ));
    let channels = interface.channels.filter(|c| c.combined_max > c.combined);
    Some(match (channels, interface.steering.iter().find(|s| s.queue.starts_with("rx-"))) {
        (Some(channels), _) => draft.advice(
            format!("Give {name} more queues, it has {} of {}: ethtool -L {name} combined N, and let irqbalance or the driver spread their interrupts.", channels.combined, channels.combined_max),
            "Several processors share the packets; one connection stays on one of them.",
        ),
        (None, Some(queue)) => draft.interface(
            "It has no more queues: let the kernel hand packets to other processors (RPS).",
            interface,
            InterfaceChange::ReceiveProcessors {
                queue: queue.queue.clone(),
                cpus: mask(facts.host.cpus.online),
            },
            "Several processors share the packets; one connection stays on one of them.",
        ),
        (None, None) => draft.advice("Use a card with several queues.", "Several processors share the packets."),
    }
    .done())
}

/// All of `processors`, as the kernel reads masks: hexadecimal, 32 bits between commas.
fn mask(processors: u32) -> String {
    let mut words = Vec::new();
    let mut left = processors;
    while left > 0 {
        let bits = left.min(32);
        words.push(format!("{:x}", u32::MAX >> (32 - bits)));
        left -= bits;
    }
    words.reverse();
    words.join(",")
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

    #[test]
    fn masks_are_the_kernels() {
        assert_eq!(mask(4), "f");
        assert_eq!(mask(32), "ffffffff");
        assert_eq!(mask(36), "f,ffffffff");
    }
}
