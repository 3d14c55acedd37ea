//! Making, changing and removing disciplines, classes and filters.

use super::filter::Filter;
use super::handle::Handle;
use super::listed::{KIND, OPTIONS};
use super::options::{Discipline, HtbClass, rate_alone};
use crate::netlink::attribute::{nested, text};
use crate::netlink::connection::{CREATE, EXCLUSIVE, REPLACE};
use crate::netlink::{Netlink, NetlinkError};

const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_NEWTCLASS: u16 = 40;
const RTM_NEWTFILTER: u16 = 44;
const RTM_DELTFILTER: u16 = 45;

/// What becomes of that which is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It stays, and the request fails. The kernel's own default discipline at a root is no obstacle.
    New,
    /// What is there is replaced.
    InPlace,
}

impl How {
    const fn flags(self) -> u16 {
        match self {
            Self::New => CREATE | EXCLUSIVE,
            Self::InPlace => CREATE | REPLACE,
        }
    }
}

/// `struct tcmsg`.
fn header(index: u32, handle: Handle, parent: Handle, info: u32) -> Vec<u8> {
    [0, index, handle.0, parent.0, info]
        .map(u32::to_ne_bytes)
        .concat()
}

impl Netlink {
    /// Puts a discipline on an interface, at its root, in a class, or where it receives.
    ///
    /// # Errors
    /// Errors of the kernel; "not found" where it has no such kind.
    pub fn put_discipline(
        &mut self,
        index: u32,
        parent: Handle,
        handle: Handle,
        discipline: &Discipline,
        how: How,
    ) -> Result<(), NetlinkError> {
        let kind = discipline.kind();
        // A discipline may want its options as a structure, which is no attribute.
        let options = discipline.encoded();
        let options = match options.is_empty() {
            true => Vec::new(),
            false => nested(OPTIONS, &[options]),
        };
        let body = [header(index, handle, parent, 0), text(KIND, kind), options];
        self.request(RTM_NEWQDISC, how.flags(), &body, || {
            format!("put {kind} at {parent} of interface {index}")
        })
        .map(drop)
    }

    /// Gives a CAKE another rate, and changes nothing else of it.
    ///
    /// # Errors
    /// Errors of the kernel, as where that discipline is no CAKE.
    pub fn set_cake_rate(
        &mut self,
        index: u32,
        handle: Handle,
        rate_bps: u64,
    ) -> Result<(), NetlinkError> {
        let body = [
            header(index, handle, Handle::ROOT, 0),
            text(KIND, "cake"),
            nested(OPTIONS, &[rate_alone(rate_bps)]),
        ];
        self.request(RTM_NEWQDISC, 0, &body, || {
            format!("change the rate of interface {index}")
        })
        .map(drop)
    }

    /// Gives a token bucket other settings, in place.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn change_discipline(
        &mut self,
        index: u32,
        parent: Handle,
        handle: Handle,
        discipline: &Discipline,
    ) -> Result<(), NetlinkError> {
        let kind = discipline.kind();
        let options = nested(OPTIONS, &[discipline.encoded()]);
        let body = [header(index, handle, parent, 0), text(KIND, kind), options];
        self.request(RTM_NEWQDISC, 0, &body, || {
            format!("change {kind} of interface {index}")
        })
        .map(drop)
    }

    /// Removes a discipline with all in it; at a root the kernel then puts its own choice.
    ///
    /// # Errors
    /// Errors of the kernel; "not found" where there is none.
    pub fn remove_discipline(
        &mut self,
        index: u32,
        parent: Handle,
        handle: Handle,
    ) -> Result<(), NetlinkError> {
        let body = [header(index, handle, parent, 0)];
        self.request(RTM_DELQDISC, 0, &body, || {
            format!("remove the queueing discipline at {parent} of interface {index}")
        })
        .map(drop)
    }

    /// Makes a class of HTB, or gives it other rates.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn put_class(
        &mut self,
        index: u32,
        parent: Handle,
        handle: Handle,
        class: &HtbClass,
    ) -> Result<(), NetlinkError> {
        let body = [
            header(index, handle, parent, 0),
            text(KIND, "htb"),
            nested(OPTIONS, &[class.encoded()]),
        ];
        self.request(RTM_NEWTCLASS, CREATE, &body, || {
            format!("set class {handle} of interface {index}")
        })
        .map(drop)
    }

    /// Adds a filter, which is asked in the order of priorities, lowest first.
    ///
    /// # Errors
    /// Errors of the kernel; "not found" where it has no such kind of filter, or of its action.
    pub fn add_filter(
        &mut self,
        index: u32,
        parent: Handle,
        priority: u16,
        filter: &Filter,
    ) -> Result<(), NetlinkError> {
        let info = u32::from(priority) << 16 | u32::from(filter.protocol().to_be());
        let kind = filter.kind();
        let number = filter.number().map_or(Handle::NONE, Handle);
        let body = [
            header(index, number, parent, info),
            text(KIND, kind),
            nested(OPTIONS, &[filter.encoded()]),
        ];
        self.request(RTM_NEWTFILTER, CREATE | EXCLUSIVE, &body, || {
            format!("add a filter {kind} at {parent} of interface {index}")
        })
        .map(drop)
    }

    /// Removes all filters of a priority, with `info` as they are listed with.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn remove_filters(
        &mut self,
        index: u32,
        parent: Handle,
        info: u32,
    ) -> Result<(), NetlinkError> {
        let body = [header(index, Handle::NONE, parent, info)];
        self.request(RTM_DELTFILTER, 0, &body, || {
            format!("remove a filter at {parent} of interface {index}")
        })
        .map(drop)
    }
}
