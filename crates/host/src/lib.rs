//! This machine: facts, and actions rendered as commands.

pub mod facts;
pub mod render;
