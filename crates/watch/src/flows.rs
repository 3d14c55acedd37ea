//! Flows that routers and switches export: a [`collector`] reads them, a [`minute`] sums them up by what they have in common, with
//! an [`estimate`] of what sampling makes uncertain, and the store keeps the largest sums.

pub mod collector;
pub mod dimension;
pub mod estimate;
mod keyed;
pub mod listening;
pub mod look;
pub mod minute;
pub mod settings;
pub mod state;
pub mod table;
pub mod windows;
