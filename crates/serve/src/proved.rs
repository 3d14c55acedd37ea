//! Addresses from which somebody proved that he has the key: clients of protocols that have no key come from there.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plumb_wire::native::key::Key;
use plumb_wire::share::Share;

/// How long a proof holds: longer than any series of tests that somebody sits by.
pub(crate) const LASTS: Duration = Duration::from_secs(3600);

/// Time between two attempts of one address: eight characters are not guessed at that pace.
const BETWEEN: Duration = Duration::from_secs(1);

/// Addresses that are remembered at once, 100 bytes each; the oldest goes first.
const MOST: usize = 4096;

/// What is known of the addresses.
#[derive(Debug, Default)]
pub(crate) struct Proved(Mutex<HashMap<Share, Known>>);

#[derive(Debug)]
struct Known {
    /// When it last tried.
    at: Instant,
    /// The key that it had; another one may be in force by now.
    key: Option<Key>,
}

impl Proved {
    /// Whether it proved within the last hour that it has that key.
    pub(crate) fn has(&self, peer: IpAddr, key: &Key) -> bool {
        let known = self.lock();
        let known = known.get(&Share::of(peer));
        known.is_some_and(|known| known.key.as_ref() == Some(key))
    }

    /// Takes an attempt, which `proves` or not; `None` where it comes too soon after the one before.
    pub(crate) fn attempt(
        &self,
        peer: IpAddr,
        key: &Key,
        proves: impl FnOnce() -> bool,
    ) -> Option<bool> {
        let mut known = self.lock();
        let share = Share::of(peer);
        let now = Instant::now();
        let last = known.get(&share);
        if last.is_some_and(|last| now < last.at + BETWEEN) {
            return None;
        }
        if last.is_none() && known.len() >= MOST {
            let oldest = known.iter().min_by_key(|(_, known)| known.at);
            let oldest = oldest.map(|(share, _)| *share);
            oldest.and_then(|oldest| known.remove(&oldest));
        }
        let proves = proves();
        let key = proves.then(|| key.clone());
        known.insert(share, Known { at: now, key });
        Some(proves)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Share, Known>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| known.at.elapsed() < LASTS);
        known
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_proof_is_of_one_key_and_attempts_are_a_second_apart() {
        let proved = Proved::default();
        let (key, other) = (
            Key::new("one of two").unwrap(),
            Key::new("the other").unwrap(),
        );
        let [here, there] = ["9.9.9.9", "9.9.9.8"].map(|address| address.parse().unwrap());
        assert_eq!(proved.attempt(here, &key, || false), Some(false));
        assert_eq!(proved.attempt(here, &key, || true), None, "too soon");
        assert!(!proved.has(here, &key));
        assert_eq!(proved.attempt(there, &key, || true), Some(true));
        assert!(proved.has(there, &key));
        assert!(!proved.has(there, &other), "the key was changed");
        assert!(!proved.has(here, &key));
    }

    #[test]
    fn many_addresses_take_bounded_room() {
        let proved = Proved::default();
        let key = Key::new("one of two").unwrap();
        for number in 0..MOST as u32 + 10 {
            let address = std::net::Ipv4Addr::from_bits(0x0909_0000 + number);
            assert_eq!(proved.attempt(address.into(), &key, || true), Some(true));
        }
        assert_eq!(proved.lock().len(), MOST);
    }
}
