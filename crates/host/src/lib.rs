//! This machine: facts, counters as rates, the speed of its disks and ciphers, the catalogue of
//! knobs, tuning, and actions rendered as commands.

pub mod cipher;
pub mod disk;
pub mod facts;
pub mod knobs;
pub mod metered;
pub mod rates;
pub mod render;
pub mod tune;
