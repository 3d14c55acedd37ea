//! This host's own queue drops packets.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::{Interface, Qdisc};

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found, one_in, queueing, ratio};
use crate::signs::COSTLY_RATIO;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a longer queue, or a managed one, leaves its counter of drops still",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there the queue's own counter stands still",
    )],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            let of = |name: &&str| Dropped::at(counted, name, "tx", &["qdisc_drops", "tx_dropped"]);
            counted.interfaces().iter().map(of).collect()
        })
    },
    audits: &[(Subject::QueueDrops, audit)],
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check. A bottleneck in this machine drops what TCP sends too fast, as any full queue does: as many as
/// cost every use are worth fixing.
const SAID: Said = Said {
    cause: Cause::QueueDrops,
    place: Place::ThisHost,
    what: "dropped in its own sending queue",
    warning_ratio: COSTLY_RATIO,
    fix: "Where this machine is not meant to be the bottleneck, find what makes it so: the link's speed, a shaper (`tc -s qdisc`), too short a queue (`ip link` shows qlen).",
    kb: "host",
};

/// Drops of a plain queue for each packet sent, from which on they are no accident.
const DROP_RATIO: f64 = 1e-5;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let all = facts.in_use().flat_map(|(_, interface)| {
        queueing::plain(facts, interface).map(move |(position, qdisc)| (position, interface, qdisc))
    });
    let judged =
        all.filter_map(|(position, interface, qdisc)| judge(facts, position, interface, qdisc));
    judged.collect()
}

fn judge(
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
