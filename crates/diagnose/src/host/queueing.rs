//! Queues of this host's interfaces that let one flow delay all others, and those that do not.

use plumb_model::finding::InterfaceChange;
use plumb_model::results::host::{Interface, Qdisc};

use super::judged::{Facts, Found};

/// Plain queues, which let one flow fill them before all others.
pub(crate) const PLAIN: [&str; 4] = ["pfifo_fast", "pfifo", "bfifo", "pfifo_head_drop"];

/// Queues that part flows and so keep one from delaying the others, the best first.
const BY_FLOW: [&str; 4] = ["fq_codel", "cake", "fq_pie", "sfq"];

/// Plain queues of an interface, with their places in the list.
pub(crate) fn plain<'a>(
    facts: &Facts<'a>,
    interface: &'a Interface,
) -> impl Iterator<Item = (usize, &'a Qdisc)> + use<'a> {
    let all = facts.host.qdiscs.iter().enumerate();
    all.filter(|(_, qdisc)| {
        qdisc.interface == interface.name && PLAIN.contains(&qdisc.kind.as_str())
    })
}

impl Found {
    /// A queue that parts flows in the place of a plain one: the best that this kernel has.
    pub(crate) fn by_flow(
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
