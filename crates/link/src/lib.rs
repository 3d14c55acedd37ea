//! Emulated links, without I/O: a direction of a link is a [`Chain`](chain::Chain) of named
//! cells that packets pass one after the other.
//!
//! Time is an argument everywhere, and a departure carries its exact time, so the same
//! arrivals and the same seed give the same departures however late the caller asks for them.

#[cfg(not(feature = "schema"))]
extern crate plumb_schemaless as schemars;

mod backlog;
pub mod cell;
pub mod chain;
mod flow_hash;
pub mod flows;
mod grid;
pub mod limit;
pub mod outcome;
pub mod packet;
#[cfg(test)]
mod properties;
pub mod queue;
mod random;
pub mod ratio;
pub mod record;
pub mod segment;
pub mod settings;
pub mod spec;
pub mod stats;
mod tally;
pub mod time;
