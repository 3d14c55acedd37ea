//! Watching what programs of others answer.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod device;
mod flows;
mod radius;
mod remote_write;
