//! What a protocol asks of the responder: who may come, and whose turn it is.

use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plumb_wire::native::key::Key;

use crate::admission::{Queued, Turn};
use crate::policy::StrangersLimits;
pub(crate) use crate::registry::Standing;
use crate::registry::{GreetingPlace, Registry, Reserved, Visitor, WebPlace};
pub(crate) use crate::shared::Entrance;
use crate::shared::Shared;

/// The door of a responder.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    shared: Arc<Shared>,
}

/// Why a client may not come in, for logs and for protocols that can report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    #[error("as many clients as it may have are connected to the responder, or of this address")]
    Full,
    #[error(
        "the responder serves addresses of the Internet only where it is run with --public, has them in its list, or they proved on its web page to have its key"
    )]
    Policy,
}

impl Gate {
    pub(crate) fn of(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
        }
    }

    /// Whether the responder is to stop.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Ends the whole responder: half a one would be taken for a bad path.
    pub(crate) fn close(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// The longest test that is served.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_secs_f64(self.shared.limits.max_duration_s)
    }

    /// The most streams of one test, both directions together.
    pub(crate) fn most_streams(&self) -> u32 {
        self.shared.limits.max_streams
    }

    /// A place for a connection that has not said what it is; another one may have to end for it.
    pub(crate) fn greet(&self, peer: IpAddr, socket: &Arc<TcpStream>) -> GreetingPlace<'_> {
        self.shared.registry.greet(peer, socket)
    }

    /// A place for a connection of the web that is served; another one may have to end for it.
    pub(crate) fn web(&self, peer: IpAddr, socket: &Arc<TcpStream>) -> WebPlace {
        self.shared.registry.web(peer, socket)
    }

    /// Whether an address is answered, where no place is needed for that.
    pub(crate) fn answers(&self, peer: IpAddr) -> bool {
        self.shared.answers(peer)
    }

    /// What an address is given now.
    pub(crate) fn entrance(&self, peer: IpAddr) -> Entrance {
        self.shared.entrance(peer)
    }

    /// Takes an attempt to prove that an address has that key, after which it is answered for an hour; `None` where it comes too
    /// soon after a wrong one.
    pub(crate) fn attempt(
        &self,
        peer: IpAddr,
        key: &Key,
        proves: impl FnOnce() -> bool,
    ) -> Option<bool> {
        let proved = &self.shared.proved;
        let proves = proved.attempt(peer, proves);
        if proves == Some(true) {
            proved.add(peer, key.clone());
        }
        proves
    }

    /// Draws an answer that waits for no turn, of so many bytes.
    ///
    /// # Errors
    /// Where it is too much now: in how much time it is not.
    pub(crate) fn small_answer(&self, peer: IpAddr, bytes: u64) -> Result<(), Duration> {
        let is_stranger = self.shared.policy.get().limits(peer).is_some();
        let registry = &self.shared.registry;
        registry.small_answer(peer, is_stranger, bytes)
    }

    /// Who is here, and what runs.
    pub(crate) fn standing(&self) -> Standing {
        self.shared.registry.standing()
    }

    /// A place for a client, which lasts until it is dropped.
    ///
    /// # Errors
    /// When the client may not come in.
    pub(crate) fn visit(&self, peer: IpAddr) -> Result<Visit, Denied> {
        if !self.answers(peer) {
            return Err(Denied::Policy);
        }
        let visitor = self.shared.registry.visit(peer).ok_or(Denied::Full)?;
        Ok(Visit {
            registry: Arc::clone(&self.shared.registry),
            visitor,
            limits: self.shared.policy.get().limits(peer),
        })
    }
}

/// The place of a client.
#[derive(Debug)]
pub(crate) struct Visit {
    registry: Arc<Registry>,
    visitor: Visitor,
    /// What it may carry, where it is a stranger's.
    limits: Option<StrangersLimits>,
}

impl Visit {
    /// The right to a heavy test, for which the client waits so long: to be asked for its turn.
    pub(crate) fn heavy(&self, waits: Duration) -> Heavy {
        Heavy {
            registry: Arc::clone(&self.registry),
            visitor: self.visitor,
            waits,
            limits: self.limits,
            reserved: None,
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.registry.leave(self.visitor);
    }
}

/// The right to a heavy test, or to wait for it; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Heavy {
    registry: Arc<Registry>,
    visitor: Visitor,
    waits: Duration,
    limits: Option<StrangersLimits>,
    reserved: Option<Reserved>,
}

impl Heavy {
    /// Whether a test of so many streams that lasts so long may run now; to be asked again where it is to wait.
    pub(crate) fn turn(&mut self, streams: u32, lasts: Duration) -> Turn {
        let turn = self
            .registry
            .visitors_turn(self.visitor, streams, lasts, self.waits);
        let (Turn::Now, Some(limits)) = (turn, self.limits) else {
            return turn;
        };
        match self.registry.reserve(limits, lasts) {
            Ok(reserved) => {
                self.reserved = Some(reserved);
                Turn::Now
            }
            Err(after) => {
                self.registry.visitors_test_ends(self.visitor);
                Turn::Never(Queued {
                    ahead: 0,
                    after: Some(after),
                })
            }
        }
    }

    /// The most payload that the test may carry, both directions together, once it is its turn; `None` where nothing limits it.
    pub(crate) fn byte_limit(&self) -> Option<u64> {
        self.reserved.as_ref().map(|reserved| reserved.bytes)
    }

    /// So much payload was carried by now.
    pub(crate) fn carried(&mut self, bytes: u64) {
        if let Some(reserved) = &mut self.reserved {
            reserved.carried(bytes);
        }
    }
}

impl Drop for Heavy {
    fn drop(&mut self) {
        self.registry.visitors_test_ends(self.visitor);
    }
}
