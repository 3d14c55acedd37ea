//! Filters beside those of tcpdump.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod beside_tcpdump;
mod packets;
