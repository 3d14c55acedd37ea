//! Heavy traffic: senders, receivers and samplers that know no role, what their logs come to,
//! and the client of the native responder.

mod certificate;
mod control_client;
pub mod file;
pub mod frames;
mod idle_requests;
pub mod life;
mod limits;
pub mod logs;
mod outcome;
pub mod phase;
pub mod phase_controller;
pub mod phase_state;
mod plausibility;
pub mod quic;
mod responsiveness_probes;
mod series;
mod sharing;
mod slow_start;
mod steady;
pub mod streams;
pub mod summary;
mod tcp;
pub mod tls;
pub mod traffic;
pub mod transactions;
pub mod udp;

pub use control_client::{Caller, Client, ClientError, Waiting};
pub use outcome::{EndedEarly, PhaseOutcome, TransactionsOutcome};
pub use phase::{PhasePlan, Progress};
pub use quic::QuicSide;
pub use quic::summary::QuicOutcome;
pub use summary::DirectionOutcome;
pub use tcp::TcpLoad;
pub use udp::UdpStream;
pub use udp::flood::Flood;
pub use udp::summary::UdpOutcome;
