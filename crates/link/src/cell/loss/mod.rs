//! Cells that lose packets. One file a model.

pub mod bernoulli;
