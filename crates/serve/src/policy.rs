//! Whom a responder serves, and how much of it. Pure: what was used is counted by [`crate::admission`].

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use plumb_model::addresses::is_near;
use plumb_model::prefix::Prefix;
use plumb_wire::native::key::Key;

/// Most that strangers may carry in 24 hours unless configured otherwise, in bytes: 5 Mbit/s of the whole day on the line, which
/// the cheapest hosting has (1 TB a month).
const BYTES_A_DAY: u64 = 20_000_000_000;

/// The rate to which a stranger's load is held unless configured otherwise, in bit/s: the port of a usual host.
const RATE_BPS: u64 = 1_000_000_000;

/// Loads at once, of one address each, unless configured otherwise: more would measure each other on one line.
pub(crate) const LOADS: u32 = 4;

/// Whom a responder serves.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// Whether strangers are served without a key: all whose addresses are not of this host, of a link or of a private network.
    pub is_public: bool,
    /// Served without a key, whatever their addresses are.
    pub allow: Vec<Prefix>,
    /// Never served, also where the other list has them.
    pub deny: Vec<Prefix>,
    /// What a stranger must have.
    pub key: Option<Key>,
    pub limits: StrangersLimits,
}

/// A policy that may be replaced while it is in force.
#[derive(Debug, Default)]
pub struct PolicyCell(RwLock<Arc<Policy>>);

impl PolicyCell {
    /// One that begins with this policy.
    pub fn new(policy: Policy) -> Self {
        Self(RwLock::new(Arc::new(policy)))
    }

    pub(crate) fn get(&self) -> Arc<Policy> {
        // It is replaced as a whole, so that nothing can be half changed.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a policy in force from now on. What was admitted before continues.
    pub fn set(&self, policy: Policy) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }
}

/// What strangers may carry, those with a key among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrangersLimits {
    /// All of them together, in 24 hours.
    pub bytes_a_day: u64,
    /// Each load, as an average of its time.
    pub rate_bps: u64,
}

impl Default for StrangersLimits {
    fn default() -> Self {
        Self {
            bytes_a_day: BYTES_A_DAY,
            rate_bps: RATE_BPS,
        }
    }
}

/// What an address may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Free,
    WithKey,
    Denied,
}

impl Policy {
    pub(crate) fn access(&self, peer: IpAddr) -> Access {
        let is_in = |list: &[Prefix]| list.iter().any(|prefix| prefix.contains(peer));
        if is_in(&self.deny) {
            return Access::Denied;
        }
        if is_in(&self.allow) || is_near(peer) || self.is_public {
            return Access::Free;
        }
        match self.key {
            Some(_) => Access::WithKey,
            None => Access::Denied,
        }
    }

    /// What a client of that address may carry; `None` where nothing limits it.
    pub(crate) fn limits(&self, peer: IpAddr) -> Option<StrangersLimits> {
        let is_limited = !is_near(peer) && !self.allow.iter().any(|p| p.contains(peer));
        is_limited.then_some(self.limits)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn access(policy: &Policy, peer: &str) -> Access {
        policy.access(peer.parse().unwrap())
    }

    #[test]
    fn strangers_need_a_key_and_neighbours_do_not() {
        let policy = Policy {
            key: Key::new("correct horse battery"),
            ..Policy::default()
        };
        for near in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.1.1",
            "169.254.9.9",
            "::1",
            "fe80::1",
            "fd00::1",
            "::ffff:10.0.0.1",
        ] {
            assert_eq!(access(&policy, near), Access::Free, "{near}");
        }
        for far in [
            "9.9.9.9",
            "100.64.0.1",
            "203.0.113.5",
            "240.0.0.5",
            "2606:4700::1",
            "2001:db8::5",
            // How a client of the Internet looks behind a translator of addresses.
            "64:ff9b::909:909",
            "::ffff:9.9.9.9",
        ] {
            assert_eq!(access(&policy, far), Access::WithKey, "{far}");
            assert_eq!(access(&Policy::default(), far), Access::Denied, "{far}");
            let public = Policy {
                is_public: true,
                ..Policy::default()
            };
            assert_eq!(access(&public, far), Access::Free, "{far}");
            assert_eq!(
                public.limits(far.parse().unwrap()),
                Some(StrangersLimits::default())
            );
        }
    }

    #[test]
    fn lists_come_before_all_else() {
        let policy = Policy {
            allow: vec!["9.9.9.0/24".parse().unwrap()],
            deny: ["10.0.0.0/8", "9.9.9.9", "::ffff:192.168.7.0/120"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
            is_public: true,
            ..Policy::default()
        };
        assert_eq!(access(&policy, "9.9.9.8"), Access::Free);
        assert_eq!(policy.limits("9.9.9.8".parse().unwrap()), None);
        assert_eq!(access(&policy, "9.9.9.9"), Access::Denied);
        assert_eq!(access(&policy, "10.0.0.1"), Access::Denied);
        assert_eq!(access(&policy, "192.168.0.1"), Access::Free);
        assert_eq!(access(&policy, "192.168.7.3"), Access::Denied);
    }
}
