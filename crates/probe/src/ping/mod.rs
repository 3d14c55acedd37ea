//! Round trips to one far end: [`plan`] says what to send, [`strategy`] decides when and reads what comes
//! back, without sockets or clocks; the network that it does that on is a file a protocol; [`probing`] is
//! the thread it runs in, and [`log`] what remains.

mod channel;
pub(crate) mod connections;
pub(crate) mod dns;
mod greeting;
pub(crate) mod icmp;
pub(crate) mod irtt;
pub mod log;
pub mod pattern;
pub mod plan;
pub mod probing;
pub mod progress;
pub mod sample;
pub(crate) mod socket;
pub(crate) mod stamp;
pub mod strategy;
pub(crate) mod udp;
mod udp_port;
