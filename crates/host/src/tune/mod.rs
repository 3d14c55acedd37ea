//! Tuning: what a host has ([`snapshot`]), what should change for a path ([`plan`]), what advice is worth for it
//! ([`advice`]), how that is written for people and machines ([`render`]), and how it is done and undone ([`apply`],
//! [`journal`]).

pub mod advice;
pub mod apply;
mod at_boot;
pub mod interface;
pub mod journal;
mod judge;
pub mod machine;
mod memory;
pub mod paste;
pub mod plan;
pub mod render;
pub mod snapshot;
