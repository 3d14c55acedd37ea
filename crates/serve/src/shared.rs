//! What all threads of a responder share.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::tls::Identity;
use plumb_wire::native::control::Limits;
use plumb_wire::native::key::Key;

use crate::policy::{Access, PolicyCell};
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

/// What an address is given.
pub(crate) enum Entrance {
    /// It needs no key, or proved in a session that lives, or within the last hour, that it has it.
    Open,
    /// It has to prove first that it has this key.
    Locked(Key),
    Closed,
}

impl Shared {
    /// What an address is given now.
    pub(crate) fn entrance(&self, peer: IpAddr) -> Entrance {
        let policy = self.policy.get();
        match (policy.access(peer), &policy.key) {
            (Access::Free, _) => Entrance::Open,
            (Access::WithKey, Some(key)) => {
                match self.registry.is_here(peer) || self.proved.has(peer, key) {
                    true => Entrance::Open,
                    false => Entrance::Locked(key.clone()),
                }
            }
            (Access::WithKey | Access::Denied, _) => Entrance::Closed,
        }
    }

    /// Whether that address is answered.
    pub(crate) fn answers(&self, peer: IpAddr) -> bool {
        matches!(self.entrance(peer), Entrance::Open)
    }
}
