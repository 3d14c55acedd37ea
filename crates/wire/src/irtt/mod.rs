//! irtt (heistp/irtt, `packet.go`, `params.go`, version 1 of its protocol): packets, parameters, and client and server as
//! state machines. Numbers are little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 3 | `14 a7 5b` |
//! | 1 | flags |
//! | 16 | HMAC-MD5 over all with this field zero, where the flags say so |
//! | 8 | token of the session |
//! | 4 | sequence number, of an echo |
//! | 4, 8 | reply: packets received, and which of the last 64, as agreed |
//! | 8 each | reply: times of receiving, of the midpoint, of sending; wall clock and then monotonic, as agreed |
//!
//! An open packet has no token in the request, and parameters after the last field.

mod client;
mod key;
mod packet;
mod parameters;
mod server;

pub use client::{Agreed, Client, Echoed, Refusal};
pub use key::Key;
pub use parameters::{Clock, Parameters, StampAt, Stats};
pub use server::{Arrived, Limits, Reply, Server};

/// The port on which the server listens (`DefaultPort`).
pub const PORT: u16 = 2112;
