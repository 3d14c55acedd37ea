//! Heavy traffic: senders, receivers and samplers that know no role, what their logs come to,
//! and the client of the native responder.

pub mod client;
pub mod constant;
pub mod frames;
pub mod phase;
pub mod receiver;
pub mod sampler;
pub mod sender;
mod series;
mod streams;
pub mod summary;
pub mod traffic;

pub use client::{Client, ClientError};
pub use phase::{EndedEarly, PhaseOutcome, PhasePlan, Progress};
pub use summary::DirectionOutcome;
