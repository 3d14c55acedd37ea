//! The main job: which phases, in what order, within what budget; and the Run that comes of it.
//!
//! [`full`] is `plumb check` against a native responder, [`limited`] what remains of it without
//! one. [`phase`] is one load phase with probes beside it, which `plumb load` and `plumb rate` use
//! too; [`probes`] are the two probe streams that run from beginning to end; [`assembly`] makes
//! the Run.

pub mod assembly;
pub mod budget;
pub mod error;
pub mod full;
pub mod limited;
pub mod phase;
pub mod ping;
pub mod probes;
pub mod rate;
pub mod watcher;
pub mod windows;
