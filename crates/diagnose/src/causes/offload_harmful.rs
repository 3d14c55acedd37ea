//! An offload damages what is forwarded.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::Interface;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "forwarded packets keep their sizes once the offload is off",
    needs: &[Need::Machine],
    audits: &[(Subject::LargeReceive, audit)],
    ..Entry::PLAIN
};

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let all = facts.with_offloads();
    let judged = all.filter_map(|(place, interface)| judge(facts, place, interface));
    judged.collect()
}

/// Large receive offload joins packets so that they cannot be parted again as they were, which
/// routers and bridges must (Documentation/networking/segmentation-offloads.rst).
fn judge(facts: &Facts<'_>, place: usize, interface: &Interface) -> Option<Judged> {
    let position = interface.offloads.iter().position(|o| o.name == "rx-lro")?;
    let lro = interface.offloads.get(position)?;
    let passes_on = facts.host.forwards() || interface.controller.is_some();
    (lro.on && passes_on).then(|| {
        let name = &interface.name;
        found(
            format!("{name} rx-lro"),
            Cause::OffloadHarmful,
            Severity::Warning,
            &[PathKind::Router],
            format!("{name} joins received packets (LRO), and this host passes packets on: what was joined cannot be sent on as it was."),
        )
        .evidence(facts.evidence(
            format!("interfaces[{place}].offloads[{position}].on"),
            1.0,
            "large receive offload is in use (1) on a machine that forwards",
            0.0,
        ))
        .interface(
            "Switch LRO off; GRO does the same in a way that can be undone.",
            interface,
            InterfaceChange::Offload {
                feature: "rx-lro".to_owned(),
                on: false,
            },
            "Forwarded connections no longer stall or resend.",
        )
        .done()
    })
}
