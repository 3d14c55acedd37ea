//! What the measurements of a kind show, for every rule: one file a kind is the only reader of its result's type.
//! Facts, without a judgement.

mod carried;
mod idle;
mod loaded;

pub(crate) use carried::Carried;
pub(crate) use idle::Idle;
pub(crate) use loaded::Loaded;
