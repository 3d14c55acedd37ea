//! What the measurements of a kind show, for every rule: one file a kind is the only reader of its result's type.
//! Facts, without a judgement.

mod altered;
mod captured;
mod carried;
mod counted;
mod fact;
mod gateway;
mod held;
mod idle;
mod levels;
mod lines;
mod loaded;
mod names;
mod outages;
mod port;
mod radio;
mod route;
mod sizes;
mod small_objects;
mod streamed;
mod waits;

pub(crate) use altered::{altered, ect1_alone, shows_marks};
pub(crate) use captured::Captured;
pub(crate) use carried::{Carried, SILENCE_S, USUAL_SEGMENT_BYTES};
pub(crate) use counted::Counted;
pub(crate) use fact::{fact, fact_of_series};
#[cfg(test)]
pub(crate) use gateway::tests::gateway as asked_gateway;
pub(crate) use gateway::{Gateway, OTHERS_RATIO};
pub(crate) use held::{HELD_S, Held};
pub(crate) use idle::Idle;
pub(crate) use levels::LEAST_TIMES;
pub(crate) use lines::{Lines, of_lines};
pub(crate) use loaded::{ENOUGH_OF_PLACE, Loaded};
pub(crate) use names::Names;
pub(crate) use outages::{OUTAGE_S, Outage};
pub(crate) use port::Port;
pub(crate) use radio::Radio;
pub(crate) use route::{Route, of_route};
pub(crate) use sizes::{Sizes, is_search_of_sizes};
pub(crate) use streamed::{CUT_RATIO, FLOWS_TIMES, RAISES, Streamed, streamed};
pub(crate) use waits::{STANDS_S, Varying};
