//! What the interface has before anything is done.

use plumb_net::ethtool::Ethtool;
use plumb_net::netlink::link::links;
use plumb_net::netlink::queue::Handle;
use plumb_net::netlink::queue::listed::{Listed, disciplines, filters};
use plumb_net::netlink::{NetlinkError, interface_index};

use super::objects::is_ours;
use super::restore::{Recorded, record};
use crate::facts::{Modules, Source};

/// An interface, as far as plans need it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub index: u32,
    pub mtu_bytes: u32,
    /// Whether its packets have Ethernet's header.
    pub ethernet: bool,
    pub loopback: bool,
    /// The bridge that it is a port of.
    pub bridge: Option<String>,
    /// The rate that its driver reports.
    pub link_bps: Option<u64>,
    pub root: Root,
    pub received: Received,
    /// What the kernel has or could load.
    pub modules: Modules,
}

/// What is at the root.
#[derive(Debug, Clone, PartialEq)]
pub enum Root {
    /// The kernel's own choice.
    Default { kind: String },
    /// A shaper of plumb's.
    Ours,
    /// A configured discipline, and how it is made again, or why it cannot be.
    Theirs {
        kind: String,
        handle: Handle,
        again: Result<Recorded, String>,
    },
}

/// What is there for packets that are received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    Nothing,
    /// A place for filters, and none in it.
    Empty {
        kind: String,
    },
    Filters {
        kind: String,
        count: usize,
    },
}

impl Received {
    /// Whether another program made a clsact qdisc, and left it empty.
    pub fn is_clsact(&self) -> bool {
        matches!(self, Self::Empty { .. })
    }
}

/// What cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadingError {
    #[error("there is no interface {device}: {}", known(.there))]
    NoInterface {
        device: String,
        /// Those that there are, but for the loopback.
        there: Vec<String>,
    },
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

fn known(there: &[String]) -> String {
    match there {
        [] => "there is none but the loopback".to_owned(),
        there => format!("there are {}", there.join(", ")),
    }
}

/// Reads an interface. Where a configured discipline is to be replaced, whether it can be made again is tried in a
/// network namespace made for it, which needs root.
///
/// # Errors
/// When there is no such interface, and errors of the kernel.
pub fn read(device: &str, replace: bool) -> Result<Reading, ReadingError> {
    let links = links()?;
    let Some(link) = links.iter().find(|link| link.name == device) else {
        let there = links.into_iter().map(|link| link.name);
        return Err(ReadingError::NoInterface {
            device: device.to_owned(),
            there: there.filter(|name| name != "lo").collect(),
        });
    };
    let controller = link
        .controller
        .and_then(|index| links.iter().find(|link| link.index == index));
    let bridge = controller.filter(|link| link.kind.as_deref() == Some("bridge"));
    let all: Vec<_> = disciplines()?
        .into_iter()
        .filter(|discipline| discipline.index == link.index)
        .collect();
    // A veth has a rate that it does not heed: 10 Gbit/s, whatever passes (`veth_get_link_ksettings`).
    let real = link.kind.is_none();
    let link_bps = Ethtool::open()
        .and_then(|mut ethtool| ethtool.link(device))
        .ok()
        .and_then(|mode| mode.speed_bps)
        .map(|bps| bps as u64)
        .filter(|_| real);
    Ok(Reading {
        index: link.index,
        mtu_bytes: link.mtu_bytes,
        ethernet: link.hardware == "ethernet",
        loopback: link.hardware == "loopback",
        bridge: bridge.map(|link| link.name.clone()),
        link_bps,
        root: root(&all, replace)?,
        received: received(link.index, &all)?,
        modules: Modules::here(&Source::system()),
    })
}

/// The number of an interface; `None` where there is none of that name.
pub(super) fn number(device: &str) -> Option<u32> {
    interface_index(device).ok()
}

/// The disciplines of an interface.
pub(super) fn of(index: u32) -> Result<Vec<Listed>, NetlinkError> {
    let mut all = disciplines()?;
    all.retain(|discipline| discipline.index == index);
    Ok(all)
}

/// The outermost of them.
pub(super) fn outermost(all: &[Listed]) -> Option<&Listed> {
    all.iter()
        .find(|discipline| discipline.parent == Handle::ROOT)
}

fn root(all: &[Listed], replace: bool) -> Result<Root, NetlinkError> {
    let Some(root) = outermost(all) else {
        return Ok(Root::Default {
            kind: "noqueue".to_owned(),
        });
    };
    if root.handle == Handle::NONE {
        return Ok(Root::Default {
            kind: root.kind.clone(),
        });
    }
    if is_ours(root.handle) {
        return Ok(Root::Ours);
    }
    let inner = all
        .iter()
        .any(|other| other.parent.discipline() == root.handle && other.parent != Handle::ROOT);
    let again = match () {
        () if inner => Err("it has others in it".to_owned()),
        () if !filters(root.index, root.handle)?.is_empty() => Err("it has filters".to_owned()),
        () if replace => record(root),
        () => Err("not tried".to_owned()),
    };
    Ok(Root::Theirs {
        kind: root.kind.clone(),
        handle: root.handle,
        again,
    })
}

pub(super) fn received(index: u32, all: &[Listed]) -> Result<Received, NetlinkError> {
    let place = all
        .iter()
        .find(|discipline| discipline.parent == Handle::INGRESS);
    let Some(place) = place else {
        return Ok(Received::Nothing);
    };
    let kind = place.kind.clone();
    let count = filters(index, Handle::INGRESS_FILTERS)?.len();
    Ok(match count {
        0 => Received::Empty { kind },
        count => Received::Filters { kind, count },
    })
}
