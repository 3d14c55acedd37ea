//! The main job: which phases, in what order, within what budget; and the Run that comes of it.
//!
//! [`with_responder`] is `plumb check`, `load` and `rate` against a native responder,
//! [`without_responder`] what remains of a check without one. [`phase`] is one load phase with
//! probes beside it; [`probes`] are the probe streams that run from beginning to end, [`places`] those on the
//! way that they are aimed at; [`shape`] is what flows in a phase, `cut_short` what is said of those that the budget ended;
//! [`responsiveness`] conducts a phase that measures round trips a minute;
//! [`mtu`] is how large packets may be, [`owd`] each way by itself, [`capacity`] what each line could carry;
//! [`transactions`] are requests and answers instead of a load; [`assembly`] makes the Run.

mod announcement;
pub mod assembly;
pub mod available;
mod beside;
pub mod budget;
pub mod capacity;
pub mod clocks;
mod cut_short;
pub mod error;
pub mod host;
pub mod mtu;
pub mod owd;
pub mod path;
pub mod periodicity;
pub mod phase;
pub mod ping;
pub mod pings;
pub mod places;
pub mod port;
pub mod probes;
pub mod profiles;
pub mod responsiveness;
pub mod shape;
pub mod transactions;
pub mod tuning;
mod tunnel;
pub mod watcher;
pub mod windows;
pub mod with_responder;
pub mod without_responder;
