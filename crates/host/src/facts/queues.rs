//! Queueing disciplines and what they counted.

use plumb_model::results::host::Qdisc;
use plumb_net::netlink::link::links;
use plumb_net::netlink::queue::qdiscs as ask;

use super::Source;

/// The queueing disciplines of this namespace, without the disciplines of an interface that has gone meanwhile.
pub(crate) fn qdiscs(source: &mut Source) -> Vec<Qdisc> {
    let found = source.asked("queueing disciplines", ask());
    let links = source.asked("interfaces", links());
    let named = found.into_iter().filter_map(|(index, mut qdisc)| {
        let link = links.iter().find(|link| link.index == index)?;
        qdisc.interface.clone_from(&link.name);
        Some(qdisc)
    });
    named.collect()
}
