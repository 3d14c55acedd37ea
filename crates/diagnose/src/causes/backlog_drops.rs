//! A processor's backlog of received packets overflows.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::need::Need;

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found, one_in, ratio, unknown};
use crate::loss::LOSS_WARNING;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a longer backlog, or more processors for it, leaves the counter of drops still",
    needs: &[Need::CounterRates],
    resembles: &[(Cause::PathLoss, "there softnet_stat counts no drops")],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            // The backlogs are the whole machine's, and in a part of it others' packets count as well.
            if case.is_whole_machine() != Some(true) {
                return Vec::new();
            }
            let names = counted.result.grown.keys();
            let of_backlogs = names.filter(|name| name.starts_with("softnet."));
            let (dropped, processed): (Vec<_>, Vec<_>) = of_backlogs
                .filter(|name| name.ends_with(".dropped") || name.ends_with(".processed"))
                .partition(|name| name.ends_with(".dropped"));
            let carried = counted.sum(processed.into_iter().map(String::as_str));
            vec![Dropped::of(counted, dropped.into_iter().cloned(), carried)]
        })
    },
    audits: &[(Subject::Backlog, audit)],
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check.
const SAID: Said = Said {
    cause: Cause::BacklogDrops,
    place: Place::ThisHost,
    what: "had no room in a processor's backlog for",
    warning_ratio: LOSS_WARNING,
    fix: "Let more packets wait (net.core.netdev_max_backlog), or spread them over more processors (RSS, RPS).",
    kb: "host",
};

/// One packet in a million.
const DROP_RATIO: f64 = 1e-6;

/// Rounds that ended early, for each packet. Several packets make a round, so this is many.
const SQUEEZE_RATIO: f64 = 1e-3;

/// The kernel's default (`net/core/hotdata.c`).
const DEFAULT_BACKLOG: i64 = 1000;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let softnet = &facts.host.softnet;
    if softnet.is_empty() {
        return vec![unknown(
            "backlog",
            "/proc/net/softnet_stat could not be read",
        )];
    }
    let sum = |get: fn(&plumb_model::results::host::SoftnetCpu) -> u32| -> u64 {
        softnet.iter().map(|cpu| u64::from(get(cpu))).sum()
    };
    let (processed, dropped, squeezed) = (
        sum(|c| c.processed),
        sum(|c| c.dropped),
        sum(|c| c.squeezed),
    );
    let worst = softnet
        .iter()
        .enumerate()
        .max_by_key(|(_, cpu)| cpu.dropped)
        .map_or(0, |(place, _)| place);
    let backlog = facts
        .host
        .sysctl_numbers("net.core.netdev_max_backlog")
        .and_then(|numbers| numbers.first().copied())
        .unwrap_or(DEFAULT_BACKLOG);
    let mut judged = Vec::new();
    let share = ratio(dropped, processed.saturating_add(dropped));
    judged.push(if share < DROP_RATIO {
        fine("backlog", format!("{dropped} of {processed} received packets found a full backlog"))
    } else {
        let key = "net.core.netdev_max_backlog";
        found(
            "backlog",
            Cause::BacklogDrops,
            Severity::Warning,
            &[PathKind::Lan, PathKind::BusyServer, PathKind::Router],
            format!("{dropped} received packets were dropped because a processor's backlog was full: {}.", one_in(share)),
        )
        .evidence(facts.evidence(
            format!("softnet[{worst}].dropped"),
            softnet.get(worst).map_or(0.0, |cpu| cpu.dropped.into()),
            "packets dropped at the backlog of the processor that dropped most",
            0.0,
        ))
        .sysctl(
            "Let more packets wait. Drivers with NAPI pass the backlog by unless RPS is on, so look there, and at who runs on that processor, first.",
            key,
            (backlog.saturating_mul(4).clamp(DEFAULT_BACKLOG, 65_536)).to_string(),
            "The counter stops.",
        )
        .done()
    });
    let share = ratio(squeezed, processed);
    judged.push(if share < SQUEEZE_RATIO {
        fine("receive budget", format!("{squeezed} rounds ended before the packets did, for {processed} packets"))
    } else {
        let budget = facts.host.sysctl_numbers("net.core.netdev_budget").and_then(|n| n.first().copied());
        let draft = found(
            "receive budget",
            Cause::BacklogDrops,
            Severity::Info,
            &[PathKind::Lan, PathKind::Router],
            format!("{squeezed} rounds of receiving ended by their budget or time and not for want of packets."),
        )
        .sure(0.7)
        .evidence(facts.evidence(
            "softnet[0].squeezed",
            softnet.first().map_or(0.0, |cpu| cpu.squeezed.into()),
            "rounds cut short on the first processor; all together against the packets processed",
            processed as f64 * SQUEEZE_RATIO,
        ));
        match budget {
            Some(budget) if budget < 1200 => draft.sysctl(
                "Let a round take more packets, if the card's ring overflows too; otherwise it costs other work on that processor and gains nothing.",
                "net.core.netdev_budget",
                budget.saturating_mul(2).to_string(),
                "Fewer rounds cut short.",
            ),
            _ => draft.advice("Spread the packets over more processors.", "Fewer rounds cut short."),
        }
        .done()
    });
    judged
}
