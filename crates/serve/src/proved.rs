//! Addresses from which a client proved that it has the key. Clients of protocols without a key come from there.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plumb_wire::native::key::Key;
use plumb_wire::share::{Bucket, Share};

/// How long a proof holds: longer than any series of tests that a person waits for.
pub(crate) const LASTS: Duration = Duration::from_secs(3600);

/// Time after a wrong answer in which no other of its address is looked at.
const BETWEEN: Duration = Duration::from_secs(1);

/// Wrong answers a second of all addresses together: at this rate guessing twelve letters takes for ever, however many
/// addresses an attacker has.
const ATTEMPTS_PER_S: f64 = 50.0;

/// Proofs that are remembered at once, some 300 bytes each; the oldest goes first.
const MOST: usize = 4096;

/// What is known of the addresses.
#[derive(Debug)]
pub(crate) struct Proved {
    begun: Instant,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Since when, and the key that was in force.
    proofs: HashMap<Share, (Instant, Key)>,
    /// Wrong answers of the last second.
    failed: HashMap<Share, Instant>,
    /// What wrong answers of all addresses draw on.
    all: Bucket,
}

impl Proved {
    /// Nothing is known yet.
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            known: Mutex::default(),
        }
    }

    /// Whether it proved within the last hour that it has that key.
    pub(crate) fn has(&self, peer: IpAddr, key: &Key) -> bool {
        let known = self.lock();
        let proof = known.proofs.get(&Share::of(peer));
        proof.is_some_and(|(since, its)| since.elapsed() < LASTS && its == key)
    }

    /// Takes an answer by which an address would prove that it has the key: whether it does. Right ones are free; after a wrong one the
    /// address has to wait, and `None` says that the answer came too soon and was not looked at.
    pub(crate) fn attempt(&self, peer: IpAddr, proves: impl FnOnce() -> bool) -> Option<bool> {
        let known = &mut *self.lock();
        known.failed.retain(|_, at| at.elapsed() < BETWEEN);
        let share = Share::of(peer);
        let now = self.begun.elapsed();
        let draws =
            |bucket: &mut Bucket, count| bucket.draw(now, count, ATTEMPTS_PER_S, ATTEMPTS_PER_S);
        // One that is looked at while nothing is left would be an attempt too many.
        if known.failed.contains_key(&share) || !draws(&mut known.all.clone(), 1.0) {
            return None;
        }
        let proves = proves();
        if !proves {
            draws(&mut known.all, 1.0);
            known.failed.insert(share, Instant::now());
        }
        Some(proves)
    }

    /// Remembers that an address proved that it has that key.
    pub(crate) fn add(&self, peer: IpAddr, key: Key) {
        let proofs = &mut self.lock().proofs;
        proofs.retain(|_, (since, _)| since.elapsed() < LASTS);
        if proofs.len() >= MOST {
            let oldest = proofs.iter().min_by_key(|(_, (since, _))| *since);
            let oldest = oldest.map(|(share, _)| *share);
            oldest.and_then(|oldest| proofs.remove(&oldest));
        }
        proofs.insert(Share::of(peer), (Instant::now(), key));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0x0909_0000 + number).into()
    }

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    #[test]
    fn a_proof_is_of_one_address_and_one_key() {
        let proved = Proved::new();
        proved.add(address(1), key("the one of two"));
        assert!(proved.has(address(1), &key("the one of two")));
        assert!(
            !proved.has(address(1), &key("the other one")),
            "it was changed"
        );
        assert!(!proved.has(address(2), &key("the one of two")));
    }

    #[test]
    fn wrong_answers_are_a_second_apart_and_few_of_all() {
        let proved = Proved::new();
        proved.add(address(0), key("the one of two"));
        for _ in 0..1000 {
            assert_eq!(proved.attempt(address(0), || true), Some(true));
        }
        assert_eq!(proved.attempt(address(0), || false), Some(false));
        assert_eq!(proved.attempt(address(0), || true), None, "too soon");
        let failed = (1..1000).filter(|n| proved.attempt(address(*n), || false).is_some());
        let failed = failed.count();
        assert!((49..200).contains(&failed), "{failed}");
        assert!(
            proved.has(address(0), &key("the one of two")),
            "it stays proved"
        );
    }

    #[test]
    fn many_addresses_take_bounded_room() {
        let proved = Proved::new();
        for number in 0..MOST as u32 + 10 {
            proved.add(address(number), key("the one of two"));
        }
        assert_eq!(proved.lock().proofs.len(), MOST);
        assert!(!proved.has(address(0), &key("the one of two")));
    }
}
