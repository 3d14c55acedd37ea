//! Where a far end is looked for.

use std::time::Duration;

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
    /// How long others may be served first.
    pub(crate) patience: Duration,
}

impl Sought<'_> {
    /// The port that was typed, if one was. Where none was, `-p` has the default port of a responder.
    pub(crate) fn port(&self) -> Option<u16> {
        let option = Some(self.responder.port).filter(|port| *port != PORT);
        let typed = Some(self.target.address.port()).filter(|port| *port != 0);
        typed.or(option)
    }
}
