//! This machine: facts, the catalogue of knobs, and actions rendered as commands.

pub mod facts;
pub mod knobs;
pub mod render;
