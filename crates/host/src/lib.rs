//! This machine: facts, counters as rates, the speed of its disks and ciphers, the catalogue of
//! knobs, tuning, shaping, and actions rendered as commands.

pub mod cipher;
pub mod disk;
pub mod facts;
mod kept;
pub mod knobs;
pub mod metered;
pub mod rates;
pub mod render;
pub mod shape;
pub mod tune;
