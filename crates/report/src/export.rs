//! Runs in the forms of other programs.

pub mod flent;
mod form;
mod graph;
mod mtr;
pub mod iperf3;
mod order;
pub mod path;
pub mod svg;
