//! Other rates for a shaper that stands: nothing else of it changes, and no packet waits for it.

use std::path::Path;

use plumb_model::direction::OneDirection;
use plumb_model::shape::Scheme;
use plumb_net::netlink::queue::Handle;
use plumb_net::netlink::{Netlink, index_of};

use super::apply::ApplyError;
use super::htb::{self, HOSTS, Line};
use super::journal::{Journal, Journals, State};
use super::objects::{SHAPER, SPLITTER, is_ours};
use super::reading::{self, number, outermost};

/// A shaper that plumb applied, whose rates can be changed as often as need be.
pub struct Shaped {
    journal: Journal,
    netlink: Netlink,
}

/// Gives the shaper of an interface other rates, in bits a second; a direction without one keeps its own.
///
/// # Errors
/// Errors of [`Shaped::find`] and [`Shaped::set_rates`].
pub fn set_rates(
    state: &Path,
    device: &str,
    up_bps: Option<u64>,
    down_bps: Option<u64>,
) -> Result<(), ApplyError> {
    Shaped::find(state, device)?.set_rates(up_bps, down_bps)
}

impl Shaped {
    /// The shaper of an interface, by the journals of a directory.
    ///
    /// # Errors
    /// When plumb applied none there, or it has gone.
    pub fn find(state: &Path, device: &str) -> Result<Self, ApplyError> {
        let journal = Journals::look(state, device)?
            .filter(|journal| journal.state == State::Applied)
            .filter(|journal| number(device) == Some(journal.index));
        Ok(Self {
            journal: journal.ok_or_else(|| ApplyError::Not {
                device: device.to_owned(),
            })?,
            netlink: Netlink::open()?,
        })
    }

    /// What a direction was asked to be; none where it is not shaped.
    pub fn asked(&self, direction: OneDirection) -> Option<&plumb_model::finding::ShaperAction> {
        self.journal.request.shaper(direction)
    }

    /// Gives it other rates, in bits a second; a direction without one keeps its own.
    ///
    /// # Errors
    /// When that direction is not shaped, and errors of the kernel, as when another program removed the shaper.
    pub fn set_rates(
        &mut self,
        up_bps: Option<u64>,
        down_bps: Option<u64>,
    ) -> Result<(), ApplyError> {
        if let Some(bps) = up_bps {
            self.set(OneDirection::Up, self.journal.index, bps)?;
        }
        if let Some(bps) = down_bps {
            let index = index_of(self.journal.ifb.as_deref().unwrap_or_default())?;
            self.set(OneDirection::Down, index, bps)?;
        }
        Ok(())
    }

    fn set(
        &mut self,
        direction: OneDirection,
        index: u32,
        rate_bps: u64,
    ) -> Result<(), ApplyError> {
        let not = || ApplyError::Not {
            device: self.journal.request.device.clone(),
        };
        let asked = self.journal.request.shaper(direction).ok_or_else(not)?;
        let shaper = plumb_model::finding::ShaperAction {
            // CAKE takes 0 for no limit at all.
            rate_bps: rate_bps.max(8),
            ..asked.clone()
        };
        let handle = Handle::new(SHAPER, 0);
        if self.journal.scheme == Scheme::Cake {
            self.netlink.set_cake_rate(index, handle, shaper.rate_bps)?;
            return Ok(());
        }
        let line = Line {
            shaper: &shaper,
            mtu_bytes: self.journal.mtu_bytes,
            ethernet: self.journal.ethernet,
        };
        // Making a class that is not there would make one that nothing leads to.
        let all = reading::of(index)?;
        let root = outermost(&all).filter(|root| is_ours(root.handle));
        let root = root.ok_or_else(not)?.handle;
        let netlink = &mut self.netlink;
        if root == Handle::new(SPLITTER, 0) {
            let splitter = line.splitter_anyway();
            netlink.change_discipline(index, Handle::ROOT, root, &splitter)?;
        }
        netlink.put_class(index, handle, htb::WHOLE, &line.whole())?;
        let classes = htb::classes(self.journal.request.classes);
        for (place, class) in (0..).zip(&classes) {
            let mut parent = htb::WHOLE;
            if classes.len() > 1 {
                parent = htb::of_traffic(place);
                netlink.put_class(index, htb::WHOLE, parent, &line.share(class))?;
            }
            let (first, each) = (htb::of_hosts(place), line.host(class));
            for host in 0..u32::from(HOSTS) {
                netlink.put_class(index, parent, Handle(first.0 + host), &each)?;
            }
        }
        Ok(())
    }
}
