//! Heavy traffic: senders, receivers and samplers that know no role, what their logs come to,
//! and the client of the native responder.

pub mod client;
pub mod frames;
pub mod phase;
mod series;
pub mod stage;
pub mod streams;
pub mod summary;
mod tcp;
pub mod tls;
pub mod traffic;
mod udp;

pub use client::{Client, ClientError};
pub use phase::{EndedEarly, PhaseOutcome, PhasePlan, Progress};
pub use summary::DirectionOutcome;
pub use tcp::TcpLoad;
pub use udp::UdpStream;
pub use udp::flood::Flood;
pub use udp::summary::UdpOutcome;
