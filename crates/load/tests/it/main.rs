//! The client against ports that are no responder.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod client;
