//! The rate of a shaper: found by measuring latency under load, kept by watching it, and counted with the framing of the line.
//! The controllers are pure, and the steps measure and set what they say.

pub mod auto;
pub mod device;
pub mod follow;
pub mod following;
pub mod framing_step;
pub mod overhead;
pub mod plans;
pub mod rate_step;
mod reflecting;
pub mod search;
#[cfg(test)]
mod test_line;
