//! Heavy traffic: senders, receivers and samplers that know no role, what their logs come to,
//! and the clients of far ends that carry them.

mod certificate;
mod control_client;
pub mod file;
pub mod frames;
mod idle_requests;
mod iperf3;
pub mod life;
mod limits;
pub mod logs;
mod outcome;
mod peer;
mod phase;
pub mod phase_controller;
mod phase_plan;
pub mod phase_state;
mod phase_watch;
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
pub mod web;

pub use control_client::{Caller, Client, ClientError, Waiting};
pub use iperf3::Iperf3;
pub use outcome::{EndedEarly, PhaseOutcome, TransactionsOutcome};
pub use peer::Peer;
pub use phase_plan::PhasePlan;
pub use phase_watch::{Progress, Unconducted};
pub use quic::QuicSide;
pub use quic::summary::QuicOutcome;
pub use summary::DirectionOutcome;
pub use tcp::{TcpLoad, payload};
pub use udp::UdpStream;
pub use udp::flood::Flood;
pub use udp::summary::UdpOutcome;
