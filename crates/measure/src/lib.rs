//! Measuring: steps that each measure one thing, and the conductor that runs a plan of them into one Run.
//!
//! A [`step`] takes the [`session`] and its own settings, and returns what it measured; the [`conductor`] records it in
//! the Run as it ends ([`record`]), within a [`budget`]. Every verb is a plan of steps: [`with_far_end`] is the plan of
//! `plumb check`, `load` and `rate`, [`without_responder`] what remains of a check without a responder, and most others
//! are a plan of one step in the file of their kind.
//!
//! [`idle`] and [`phase`] are the steps of a load test; [`background`] is the probes that run beside them
//! ([`probes`], and [`near_hops`] for the first hops); [`traffic_classes`] is what flows in a phase, and `cut_short` what is said
//! of those that the budget ended; [`responsiveness`] conducts a phase that measures round trips a minute.

mod advice;
pub mod after_silence;
pub mod announcement;
pub mod available;
pub mod background;
pub mod bdp;
pub mod budget;
pub mod capacity;
pub mod capture;
pub mod clocks;
pub mod conductor;
pub mod connects;
mod cut_short;
pub mod error;
mod experiments;
pub mod far_end;
pub mod gateway;
pub mod host;
pub mod idle;
pub mod interception;
pub mod local;
pub mod mtu;
pub mod near_hops;
mod one_way;
pub mod owd;
pub mod page;
mod parts;
pub mod path;
pub mod periodicity;
pub mod phase;
pub mod ping;
pub mod port;
pub mod probes;
pub mod profiles;
pub mod progress;
pub mod record;
pub mod resolver;
pub mod responsiveness;
pub mod session;
pub mod shaping;
mod side_probes;
pub mod small_objects;
pub mod step;
pub mod sweep;
pub mod times;
pub mod traffic_classes;
pub mod transactions;
pub mod tuning;
mod tunnel;
pub mod versions;
pub mod visit;
pub mod with_far_end;
pub mod within;
pub mod without_responder;
pub mod yields;
