//! Runs in the forms of other programs.

pub mod figure;
pub mod flent;
mod form;
mod graph;
pub mod iperf3;
mod mtr;
mod order;
pub mod path;
pub mod svg;
