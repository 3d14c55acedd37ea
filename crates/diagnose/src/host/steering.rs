//! Which processors serve received packets.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Severity};
use plumb_model::results::host::{Interface, InterruptLine};

use super::{Facts, Judged, fine, found};

/// Interrupts below which their spread says nothing.
const ENOUGH: u64 = 100_000;

/// Share of them on one processor from which on it serves all.
const ALL_RATIO: f64 = 0.9;

/// Fewer processors than this leave nothing to spread.
const SEVERAL: u32 = 4;

/// Below this rate one processor is enough: a core receives about 10 to 20 Gbit/s with GRO.
const FAST_BPS: f64 = 10e9;

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
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
    use super::mask;

    #[test]
    fn masks_are_the_kernels() {
        assert_eq!(mask(4), "f");
        assert_eq!(mask(32), "ffffffff");
        assert_eq!(mask(36), "f,ffffffff");
    }
}
