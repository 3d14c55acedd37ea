//! Exploring a path: probes whose time to live ends on the way, so that the routers there tell of
//! themselves.
//!
//! [`probe`] says what a probe and its answer are, and is the seam: [`probe::HopNetwork`] sends and
//! receives. [`raw`] does that with raw sockets, [`unprivileged`] with what every user may open;
//! [`open()`] takes the first that is allowed.

mod known;
mod open;
pub mod probe;
pub mod raw;
pub mod unprivileged;

pub use open::{Access, OpenError, Opened, Protocol, Target, UDP_PORT, open};
pub use probe::{Answer, AnswerKind, Answered, HopNetwork, Probe, ProbeId};
