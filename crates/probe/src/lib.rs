//! Thin traffic: round-trip probes on an open-loop schedule, stamped by the kernel.
//!
//! [`plan`] says what to send, [`strategy`] decides when and reads what comes back, without
//! sockets or clocks; the network that it does that on is a file a protocol; [`probing`] is the
//! thread it runs in, and [`log`] what remains. [`many`] does the same with many targets at once.

pub mod capacity;
mod channel;
mod connections;
mod dns;
pub mod exchange;
pub mod hop;
mod icmp;
pub mod idle;
pub mod log;
pub mod many;
pub mod mtu;
pub mod path;
pub mod plan;
pub mod probing;
pub mod sample;
mod stamp;
pub mod strategy;
pub mod trust;
mod udp;
mod udp_port;

pub use log::ProbeLog;
pub use plan::{Plan, ProbeError, Sizes};
pub use probing::{Probing, Progress, ProgressHandle, Seen};
pub use sample::{Exchange, FarClock, FarEnd, Phases, Said, Sample};
pub use trust::Trust;
