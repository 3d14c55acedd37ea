//! Queue management: what is asked for ([`request`]), what the interface has ([`reading`]), what follows from both
//! ([`plan`], pure, of [`objects`]), how that is written for people and other systems ([`render`], [`mod@write`]), how it is done and undone
//! ([`apply`], [`journal`]), and what it does ([`status`]).

pub mod apply;
mod cake;
mod htb;
pub mod journal;
pub mod objects;
pub mod plan;
pub mod rates;
pub mod reading;
pub mod render;
pub mod request;
pub mod restore;
pub mod status;
pub mod write;
