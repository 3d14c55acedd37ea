//! What the measurements of a kind show, for every rule: one file a kind is the only reader of its result's type.
//! Facts, without a judgement.

mod carried;
mod fact;
mod idle;
mod levels;
mod lines;
mod loaded;
mod outages;
mod route;
mod sizes;
mod streamed;

pub(crate) use carried::{Carried, SILENCE_S};
pub(crate) use fact::fact;
pub(crate) use idle::Idle;
pub(crate) use levels::Levels;
pub(crate) use lines::{Lines, of_lines};
pub(crate) use loaded::Loaded;
pub(crate) use outages::{OUTAGE_S, Outage};
pub(crate) use route::{Route, altered, of_route};
pub(crate) use sizes::{Sizes, is_search_of_sizes};
pub(crate) use streamed::{Streamed, streamed};
