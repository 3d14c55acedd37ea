//! Tuning: what a host has ([`snapshot`]), what should change for a path ([`plan`]), how that is written
//! for people and machines ([`render`]), and how it is done and undone ([`apply`], [`journal`]).

pub mod advice;
pub mod apply;
pub mod from_run;
pub mod interface;
pub mod journal;
pub mod machine;
pub mod paste;
pub mod plan;
pub mod render;
pub mod snapshot;
