//! What all threads of a responder share.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_load::tls::Identity;
use plumb_wire::native::control::Limits;

use crate::policy::{Access, PolicyCell};
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
    pub(crate) stop: Arc<AtomicBool>,
}

impl Shared {
    /// Whether datagrams of that address are answered: it needs no key, or proved in a session that lives that it has it.
    pub(crate) fn answers(&self, peer: IpAddr) -> bool {
        match self.policy.get().access(peer) {
            Access::Free => true,
            Access::WithKey => self.registry.is_here(peer),
            Access::Denied => false,
        }
    }
}
