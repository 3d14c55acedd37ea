//! Clients of protocols that have no sessions: so many at once, and so many of one address. Of the web it is those that carry a
//! load; its other connections are [`Greetings`](super::greetings::Greetings).

use std::collections::HashMap;

use plumb_wire::share::Share;

/// Clients at once of all addresses, a thread or task each: sixteen times the loads that may run.
pub(crate) const MAX_VISITS: usize = 64;

/// The same of one address: clients of several hosts behind it that wait for their turn.
const MAX_VISITS_PER_ADDRESS: usize = 32;

/// Connections of the web at once of all addresses, a thread each.
pub(crate) const MAX_WEB: usize = 192;

/// The same of one address: two tests by networkQuality have 16 connections each way and probe beside them.
pub(crate) const MAX_WEB_PER_ADDRESS: usize = 64;

/// How many clients of each address are here.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    by_share: HashMap<Share, usize>,
}

impl Visits {
    /// Whether there is a place for one more of that address, which is then taken.
    pub(crate) fn come(&mut self, share: Share) -> bool {
        let all = self.count();
        let its = self.by_share.get(&share).copied().unwrap_or(0);
        let fits = all < MAX_VISITS && its < MAX_VISITS_PER_ADDRESS;
        if fits {
            self.by_share.insert(share, its + 1);
        }
        fits
    }

    /// How many clients are here.
    pub(crate) fn count(&self) -> usize {
        self.by_share.values().sum()
    }

    /// One of that address has gone.
    pub(crate) fn leave(&mut self, share: Share) {
        if let Some(its) = self.by_share.get_mut(&share) {
            *its = its.saturating_sub(1);
            if *its == 0 {
                self.by_share.remove(&share);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_takes_all_places() {
        let mut visits = Visits::default();
        let share = |last: u8| Share::of([192, 0, 2, last].into());
        let came =
            |visits: &mut Visits, last| (0..300).filter(|_| visits.come(share(last))).count();
        assert_eq!(came(&mut visits, 1), MAX_VISITS_PER_ADDRESS);
        let others: usize = (2..9).map(|last| came(&mut visits, last)).sum();
        assert_eq!(MAX_VISITS_PER_ADDRESS + others, MAX_VISITS);
        visits.leave(share(1));
        assert_eq!(came(&mut visits, 9), 1);
    }
}
