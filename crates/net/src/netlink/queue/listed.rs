//! What the kernel lists: disciplines, their classes, and the filters that sort packets into them.

use nix::sys::socket::SockProtocol;

use super::handle::Handle;
use super::statistics::{Counted, counted};
use crate::netlink::NetlinkError;
use crate::netlink::attribute::{attributes, find, u32_at};
use crate::netlink::connection::list;

const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const RTM_NEWTCLASS: u16 = 40;
const RTM_GETTCLASS: u16 = 42;
const RTM_NEWTFILTER: u16 = 44;
const RTM_GETTFILTER: u16 = 46;

/// Length of `struct tcmsg`: family, index, handle, parent, info.
pub(super) const HEADER_BYTES: usize = 20;

/// `TCA_*` of `linux/rtnetlink.h`.
pub(super) const KIND: u16 = 1;
pub(super) const OPTIONS: u16 = 2;
const STATS2: u16 = 7;
const STAB: u16 = 8;
const HW_OFFLOAD: u16 = 12;
const INGRESS_BLOCK: u16 = 13;
const EGRESS_BLOCK: u16 = 14;

/// A discipline, a class or a filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Number of the interface.
    pub index: u32,
    pub handle: Handle,
    pub parent: Handle,
    /// Of a filter: its priority and protocol. Of a class: the handle of the discipline in it.
    pub info: u32,
    pub kind: String,
    /// What it was made with: attributes, or a structure of its kind.
    pub options: Vec<u8>,
    pub counted: Counted,
    /// What it has beside its options: a table of sizes, a block of filters that is shared, a part in hardware.
    pub beside: Option<&'static str>,
}

/// All disciplines of the namespace of the calling thread.
///
/// # Errors
/// Errors of the kernel.
pub fn disciplines() -> Result<Vec<Listed>, NetlinkError> {
    let what = "queueing disciplines";
    all(RTM_GETQDISC, RTM_NEWQDISC, 0, Handle::NONE, what)
}

/// The classes of all disciplines of an interface; FQ-CoDel's flows that have packets are among them.
///
/// # Errors
/// Errors of the kernel, as that there is no such interface.
pub fn classes(index: u32) -> Result<Vec<Listed>, NetlinkError> {
    all(
        RTM_GETTCLASS,
        RTM_NEWTCLASS,
        index,
        Handle::NONE,
        "classes of queueing disciplines",
    )
}

/// The filters at a discipline or class of an interface.
///
/// # Errors
/// Errors of the kernel.
pub fn filters(index: u32, parent: Handle) -> Result<Vec<Listed>, NetlinkError> {
    all(RTM_GETTFILTER, RTM_NEWTFILTER, index, parent, "filters")
}

fn all(
    get: u16,
    new: u16,
    index: u32,
    parent: Handle,
    what: &str,
) -> Result<Vec<Listed>, NetlinkError> {
    let header = [0, index, 0, parent.0, 0].map(u32::to_ne_bytes).concat();
    let messages = list(SockProtocol::NetlinkRoute, get, &header, what)?;
    let of_its_kind = messages.iter().filter(|message| message.kind == new);
    Ok(of_its_kind
        .filter_map(|message| one(&message.body))
        .collect())
}

/// One of them, of a message's body.
pub(super) fn one(body: &[u8]) -> Option<Listed> {
    let mut listed = Listed {
        index: u32_at(body, 4)?,
        handle: Handle(u32_at(body, 8)?),
        parent: Handle(u32_at(body, 12)?),
        info: u32_at(body, 16)?,
        ..Listed::default()
    };
    for attribute in attributes(body.get(HEADER_BYTES..)?) {
        match attribute.kind {
            KIND => listed.kind = attribute.text(),
            OPTIONS => listed.options = attribute.value.to_vec(),
            STATS2 => listed.counted = counted(attribute.value),
            STAB => listed.beside = Some("a table of sizes (stab)"),
            HW_OFFLOAD if attribute.u8() != Some(0) => listed.beside = Some("a part in hardware"),
            INGRESS_BLOCK | EGRESS_BLOCK => listed.beside = Some("a shared block of filters"),
            _ => {}
        }
    }
    Some(listed)
}

impl Listed {
    /// Where a filter `matchall` redirects packets to, by the number of that interface (`TCA_MATCHALL_ACT`, in it the first
    /// action's options, in these `struct tc_mirred`).
    pub fn redirects_to(&self) -> Option<u32> {
        let action = find(find(&self.options, 2)?.value, 1)?;
        let kind = find(action.value, 1)?.text();
        let parameters = find(find(action.value, 2)?.value, 2)?;
        (self.kind == "matchall" && kind == "mirred")
            .then(|| u32_at(parameters.value, 24))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_panics(body in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(listed) = one(&body) {
                let _ = listed.redirects_to();
            }
        }
    }

    #[test]
    fn the_loopback_has_a_discipline_and_no_classes_that_are_not_its_own() {
        let all = disciplines().unwrap();
        assert!(all.iter().any(|listed| listed.index == 1), "{all:?}");
        assert!(classes(1).unwrap().iter().all(|class| class.index == 1));
        assert!(filters(1, Handle::NONE).is_ok());
    }
}
