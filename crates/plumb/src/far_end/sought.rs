//! Where a far end is looked for, and what is found there.

use plumb_load::Peer;
use plumb_wire::native::spec::PORT;

use crate::target::{ResponderOptions, Target};
use crate::trust::TrustOptions;

/// Where a far end is looked for.
#[derive(Clone, Copy)]
pub(crate) struct Sought<'a> {
    /// As it was typed.
    pub(crate) host: &'a str,
    pub(crate) target: &'a Target,
    pub(crate) responder: &'a ResponderOptions,
    pub(crate) trust: &'a TrustOptions,
}

impl Sought<'_> {
    /// The port that was typed, if one was: `-p` has that of a responder where none was.
    pub(crate) fn port(&self) -> Option<u16> {
        let option = Some(self.responder.port).filter(|port| *port != PORT);
        let typed = Some(self.target.address.port()).filter(|port| *port != 0);
        typed.or(option)
    }
}

/// A server of others.
pub(crate) struct Server {
    pub(crate) peer: Box<dyn Peer>,
    /// Whether it carries load to here only.
    pub(crate) only_down: bool,
}

impl Server {
    pub(crate) fn of(peer: impl Peer + 'static) -> Self {
        Self {
            peer: Box::new(peer),
            only_down: false,
        }
    }
}
