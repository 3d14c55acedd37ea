//! Runs in the forms of other programs.

pub mod flent;
mod form;
mod graph;
mod mtr;
mod order;
pub mod path;
pub mod svg;
