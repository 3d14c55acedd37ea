//! This machine: facts, the catalogue of knobs, tuning, and actions rendered as commands.

pub mod facts;
pub mod knobs;
pub mod render;
pub mod tune;
