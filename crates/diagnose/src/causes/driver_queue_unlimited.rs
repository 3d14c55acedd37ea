//! The driver's queue has no limit in bytes.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::Interface;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "with a limit in bytes the queueing discipline has the queue, and can manage it",
    needs: &[Need::Machine],
    audits: &[(Subject::DriverQueue, audit)],
    ..Entry::PLAIN
};

/// Packets sent before the absence of byte limits says anything of the driver: they begin to count
/// with the first.
const ENOUGH_SENT: u64 = 10_000;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let all = facts.hardware();
    let judged = all.filter_map(|(place, interface)| judge(facts, place, interface));
    judged.collect()
}

fn judge(facts: &Facts<'_>, place: usize, interface: &Interface) -> Option<Judged> {
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
