//! This host's own queue is a plain first-in-first-out.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::Interface;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found, queueing};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "another queueing discipline lets small packets pass the large ones",
    needs: &[Need::Machine],
    resembles: &[(
        Cause::BufferbloatUp,
        "there the queue is beyond this machine, and its own stays short",
    )],
    audits: &[(Subject::Queue, audit)],
    ..Entry::PLAIN
};

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let all = facts.hardware();
    let judged = all.filter_map(|(_, interface)| judge(facts, interface));
    judged.collect()
}

fn judge(facts: &Facts<'_>, interface: &Interface) -> Option<Judged> {
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
    let unmanaged = here
        .clone()
        .find(|(_, q)| queueing::PLAIN.contains(&q.kind.as_str()));
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
