//! TCP connections, each followed segment by segment.

mod class;
mod classes;
mod congestion;
mod connection;
mod half;
mod idents;
mod nanos;
mod queue;
pub(crate) mod samples;
mod seen;
mod sequence;
mod spent;
mod summary;
mod view;

pub(crate) use classes::{Class, Classes};
pub(crate) use connection::Connection;
pub(crate) use spent::{CLIENT, Side};
pub(crate) use view::View;
