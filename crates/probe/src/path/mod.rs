//! Exploring a path: probes whose time to live ends on the way, so that the routers there answer.
//!
//! [`probe`] says what a probe and its answer are, and is the seam: [`probe::HopNetwork`] sends and receives. [`raw`]
//! does that with raw sockets, [`unprivileged`] with what every user may open; [`open()`] takes the first that is
//! allowed. `retransmit` sends many probes at once, and those without an answer again.
//!
//! [`trace`] probes all hops of a path, once or for as long as wanted; [`result`] says what came of it, with
//! [`plumb_model::hop_loss`] (where packets are lost), [`routes`] (which routes they took) and [`altered`] (what was
//! done to them). [`marks`] asks a reflector at the target. [`through`] takes the protocol that gets through.
//! [`remote_trace`] is how a responder reports the reverse path to its client, and [`symmetry`] compares that with the
//! forward path. [`names`] and [`atlas`] add what hops are called, whose they are, and where.

mod access;
pub mod altered;
pub mod atlas;
mod in_flight;
pub mod marks;
pub mod multipath;
pub mod names;
pub mod networks;
pub mod probe;
pub mod raw;
pub mod remote_trace;
pub mod result;
pub(crate) mod retransmit;
pub mod routes;
pub mod symmetry;
mod target;
pub mod through;
pub mod trace;
pub mod unprivileged;
#[cfg(test)]
pub(crate) mod virtual_time;

pub use access::{Access, OpenError, Opened, open, open_as};
pub use probe::{Answer, AnswerKind, Answered, HopNetwork, Nowhere, Probe, ProbeId};
pub use target::{ProtocolAndPort, Target, UDP_PORT};
