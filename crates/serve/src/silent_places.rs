//! How many connections may be silent, counted by address and in all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use plumb_wire::native::spec::MAX_SILENT_PER_ADDRESS;
use plumb_wire::share::Share;

/// How many silent connections there are, and of whom.
#[derive(Debug)]
pub(crate) struct SilentPlaces {
    most: usize,
    of: Mutex<HashMap<Share, usize>>,
}

impl SilentPlaces {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let of = Mutex::default();
        Arc::new(Self { most, of })
    }

    /// A place for one more; none where that address has as many as it may, or all together.
    pub(crate) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<SilentPlace> {
        let share = Share::of(peer);
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = of.values().sum();
        let its = of.get(&share).copied().unwrap_or(0);
        if all >= self.most || its >= MAX_SILENT_PER_ADDRESS {
            return None;
        }
        of.insert(share, its + 1);
        let places = Arc::clone(self);
        Some(SilentPlace { places, share })
    }
}

/// The place of a silent connection, given back on drop.
#[derive(Debug)]
pub(crate) struct SilentPlace {
    places: Arc<SilentPlaces>,
    share: Share,
}

impl Drop for SilentPlace {
    fn drop(&mut self) {
        let mut of = self
            .places
            .of
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let left = of.get(&self.share).map_or(0, |its| its.saturating_sub(1));
        if left == 0 {
            of.remove(&self.share);
        } else {
            of.insert(self.share, left);
        }
    }
}
