//! Pages and texts of Runs, good and hostile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod arbitrary;
mod baseline;
mod cases;
mod check;
mod comparison;
mod figures;
mod goldens;
mod history;
mod hostile;
mod places;
mod problem;
mod sample;
mod seen;
mod segments;
mod visited;
