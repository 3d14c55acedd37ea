//! Filters beside tcpdump's filters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod beside_tcpdump;
mod packets;
