//! Tuning of a machine that ends at every moment.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod killed;
mod tc_reads_it;
