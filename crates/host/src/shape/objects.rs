//! What shapers are made of, and by what they are known again.

use plumb_net::netlink::queue::Handle;
use plumb_net::netlink::queue::filter::Filter;
use plumb_net::netlink::queue::options::{Discipline, FqCodel, HtbClass};

/// First number of the handles of plumb's shaper, next to plumb's port read as hexadecimal: what bears it is ours.
pub(super) const SHAPER: u16 = 0x7587;
/// First number of the handles of the bucket around it, which cuts super-packets apart.
pub(super) const SPLITTER: u16 = 0x7588;

/// Priority of the filter that redirects what is received, by which it is known again.
pub const REDIRECT_PRIORITY: u16 = SHAPER;

/// Super-packets are cut apart up to this rate, as CAKE does by itself (`CAKE_SPLIT_GSO_THRESHOLD`, sch_cake.c):
/// 64 KiB take half a millisecond at it.
pub(super) const SPLIT_BPS: u64 = 1_000_000_000;

/// Fifteen bytes at most (`IFNAMSIZ`), so that it cannot have the interface's own name in it.
pub(super) fn ifb_name(index: u32) -> String {
    format!("plumb{index}")
}

/// Whether a handle at a root is plumb's.
pub fn is_ours(handle: Handle) -> bool {
    [SHAPER, SPLITTER].contains(&((handle.0 >> 16) as u16))
}

/// On which device an object stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// The interface to the line.
    Line,
    /// The device through which what it receives passes.
    Ifb,
}

/// Something that is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// The device for what is received, up.
    Ifb,
    Discipline {
        on: On,
        parent: Handle,
        handle: Handle,
        what: Discipline,
    },
    Class {
        on: On,
        parent: Handle,
        handle: Handle,
        what: HtbClass,
    },
    /// Equal classes, numbered from the first on, each with a discipline of its own.
    Hosts {
        on: On,
        parent: Handle,
        first: Handle,
        count: u16,
        each: HtbClass,
        /// Handle of the first discipline.
        disciplines: Handle,
        queue: FqCodel,
    },
    Filter {
        on: On,
        parent: Handle,
        priority: u16,
        what: Filter,
    },
    /// What the interface receives passes the other device from here on.
    Redirect,
}

impl Object {
    /// The modules of the kernel that it needs.
    pub(super) fn modules(&self) -> Vec<String> {
        let one = |prefix: &str, kind: &str| vec![format!("{prefix}_{kind}")];
        match self {
            Self::Ifb => vec!["ifb".to_owned()],
            Self::Discipline { what, .. } => one("sch", what.kind()),
            // It comes with its discipline.
            Self::Class { .. } => Vec::new(),
            Self::Hosts { .. } => one("sch", "fq_codel"),
            Self::Filter { what, .. } => one("cls", what.kind()),
            Self::Redirect => ["cls_matchall", "act_mirred"].map(str::to_owned).into(),
        }
    }
}
