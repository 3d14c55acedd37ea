//! What all threads of a responder share.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::tls::Identity;
use plumb_wire::native::control::Limits;
use plumb_wire::native::key::Key;

use crate::policy::{Access, Policy, PolicyCell};
use crate::proved::Proved;
use crate::registry::Registry;

/// How often a thread that waits looks whether it is to stop.
pub(crate) const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// What all threads of a responder share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    pub(crate) registry: Arc<Registry>,
    pub(crate) identity: Identity,
    pub(crate) disk: Option<PathBuf>,
    pub(crate) traces: bool,
    pub(crate) policy: Arc<PolicyCell>,
    pub(crate) proved: Proved,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Shared {
    /// Whether that address is answered: it needs no key, or proved in a session that lives, or within the last hour, that it
    /// has it.
    pub(crate) fn answers(&self, peer: IpAddr) -> bool {
        let policy = self.policy.get();
        match policy.access(peer) {
            Access::Free => true,
            Access::WithKey => self.registry.is_here(peer) || self.has_proved(peer, &policy),
            Access::Denied => false,
        }
    }

    fn has_proved(&self, peer: IpAddr, policy: &Policy) -> bool {
        let key = policy.key.as_ref();
        key.is_some_and(|key| self.proved.has(peer, key))
    }

    /// The key that an address is asked for, where it is not answered without it.
    pub(crate) fn asks_for(&self, peer: IpAddr) -> Option<Key> {
        let policy = self.policy.get();
        let is_asked = policy.access(peer) == Access::WithKey && !self.answers(peer);
        policy.key.clone().filter(|_| is_asked)
    }
}
