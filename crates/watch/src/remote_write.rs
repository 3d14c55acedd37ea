//! Sending the metrics to a receiver of Prometheus Remote Write. What is sent waits in a queue on the disk.

pub(crate) mod queue;
mod receiver;
mod round;
pub mod sending;
pub mod settings;
