//! This host's own queues: the queueing discipline, and the driver's queue below it.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Severity};
use plumb_model::results::host::{Interface, Qdisc};

use super::{Facts, Found, Judged, fine, found, one_in, ratio};

/// Plain queues, which let one flow fill them before all others.
const PLAIN: [&str; 4] = ["pfifo_fast", "pfifo", "bfifo", "pfifo_head_drop"];

/// Queues that part flows and so keep one from delaying the others, the best first.
const BY_FLOW: [&str; 4] = ["fq_codel", "cake", "fq_pie", "sfq"];

/// Drops of a plain queue for each packet sent, from which on they are no accident.
const DROP_RATIO: f64 = 1e-5;

/// Packets sent before the absence of byte limits says anything of the driver: they begin to count
/// with the first.
const ENOUGH_SENT: u64 = 10_000;

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    for (place, interface) in facts.in_use() {
        let here = facts
            .host
            .qdiscs
            .iter()
            .enumerate()
            .filter(|(_, q)| q.interface == interface.name);
        for (position, qdisc) in here {
            if PLAIN.contains(&qdisc.kind.as_str()) {
                judged.extend(plain(facts, position, interface, qdisc));
            }
        }
        judged.extend(discipline(facts, interface));
        judged.extend(byte_limits(facts, place, interface));
    }
    judged
}

fn discipline(facts: &Facts<'_>, interface: &Interface) -> Option<Judged> {
    if !interface.is_physical() {
        return None;
    }
    let mut here = facts
        .host
        .qdiscs
        .iter()
        .enumerate()
        .filter(|(_, q)| q.interface == interface.name && q.parent != "ingress");
    let name = &interface.name;
    let subject = format!("{name} queue");
    let unmanaged = here.clone().find(|(_, q)| PLAIN.contains(&q.kind.as_str()));
    let Some((position, qdisc)) = unmanaged else {
        let kind = here.next().map(|(_, q)| q.kind.as_str())?;
        return Some(fine(subject, format!("{name} queues by {kind}")));
    };
    // Where packets are forwarded from a fast interface to a slow one, this is the queue that fills.
    let severity = if facts.host.forwards() {
        Severity::Warning
    } else {
        Severity::Info
    };
    Some(
        found(
            subject,
            Cause::QueueUnmanaged,
            severity,
            &[PathKind::Router, PathKind::BusyServer],
            format!("{name} queues by {}: where this host is the bottleneck, one flow delays all others.", qdisc.kind),
        )
        .sure(0.8)
        .evidence(facts.evidence(
            format!("qdiscs[{position}].queue_packets"),
            qdisc.queue_packets as f64,
            "packets that wait now in a plain queue; a busy one is longer",
            0.0,
        ))
        .by_flow(
            facts,
            interface,
            |kind| format!("Queue by flow and hold delay down with {kind}; fq where this host only sends and paces (BBR). It helps only where this host is the bottleneck."),
            "Other flows no longer wait behind a bulk transfer from this host.",
        )
        .page("bufferbloat")
        .done(),
    )
}

fn plain(
    facts: &Facts<'_>,
    position: usize,
    interface: &Interface,
    qdisc: &Qdisc,
) -> Option<Judged> {
    let share = ratio(qdisc.drops, qdisc.packets.saturating_add(qdisc.drops));
    let name = &interface.name;
    let subject = format!("{name} queue drops");
    if share < DROP_RATIO {
        return Some(fine(
            subject,
            format!(
                "the queue of {name} dropped {} of {} packets",
                qdisc.drops, qdisc.packets
            ),
        ));
    }
    Some(
        found(
            subject,
            Cause::QueueDrops,
            Severity::Warning,
            &PathKind::ALL,
            format!("This host's own queue at {name} ({}) dropped {} packets: {}.", qdisc.kind, qdisc.drops, one_in(share)),
        )
        .evidence(facts.evidence(
            format!("qdiscs[{position}].drops"),
            qdisc.drops as f64,
            "packets dropped by the queue on this host",
            0.0,
        ))
        .by_flow(
            facts,
            interface,
            |kind| format!("Replace the plain queue: {kind} drops from the flow that fills it. A longer queue only adds delay."),
            "Fewer drops, and none of them hits a thin flow.",
        )
        .page("bufferbloat")
        .done(),
    )
}

impl Found {
    /// A queue that parts flows in the place of a plain one: the best that this kernel has.
    fn by_flow(
        self,
        facts: &Facts<'_>,
        interface: &Interface,
        summary: impl Fn(&str) -> String,
        expect: &str,
    ) -> Self {
        let has = |kind: &&&str| {
            let kinds = facts.host.queue_kinds.as_ref();
            kinds.is_none_or(|kinds| kinds.iter().any(|there| there == **kind))
        };
        match BY_FLOW.iter().find(has) {
            Some(kind) => self.interface(
                summary(kind),
                interface,
                InterfaceChange::Qdisc((*kind).to_owned()),
                expect,
            ),
            None => self.advice(
                format!(
                    "{} But this kernel has neither it nor another queue that parts flows ({}): it takes a kernel that was built with one.",
                    summary("fq_codel"),
                    BY_FLOW.join(", ")
                ),
                expect,
            ),
        }
    }
}

fn byte_limits(facts: &Facts<'_>, place: usize, interface: &Interface) -> Option<Judged> {
    if !interface.is_physical()
        || interface.byte_limits.is_empty()
        || interface.counters.tx_packets < ENOUGH_SENT
    {
        return None;
    }
    let name = &interface.name;
    let subject = format!("{name} driver queue");
    let largest = interface.byte_limits.iter().map(|l| l.limit_bytes).max()?;
    if largest > 0 {
        return Some(fine(
            subject,
            format!(
                "the driver of {name} queues at most {largest} bytes below the queueing discipline (BQL)"
            ),
        ));
    }
    Some(
        found(
            subject,
            Cause::DriverQueueUnlimited,
            Severity::Info,
            &[PathKind::Router, PathKind::LongPath],
            format!("The driver of {name} puts no limit in bytes on its own queue (BQL), so packets wait where no queueing discipline can sort them."),
        )
        .sure(0.8)
        .evidence(facts.evidence(
            format!("interfaces[{place}].byte_limits[0].limit_bytes"),
            0.0,
            "the limit that the driver has come to after thousands of packets",
            1.0,
        ))
        .advice(
            "Shape a little below the link's rate, so that the queue stays in the queueing discipline; or use a driver with BQL.",
            "Round trips under load grow by less.",
        )
        .done(),
    )
}
