//! Loading a web page: the page, and the objects that a list or the page itself names, over HTTP/1.1 and HTTP/2, each part
//! of each timed.
//!
//! What to look up, connect to and ask for is decided by `loader.rs`, which speaks HTTP and knows neither sockets nor a
//! clock; `network.rs` is the sockets, threads and the clock around it; `result.rs` is what came of it.

mod address_space;
mod cache_fields;
mod loader;
mod network;
mod object;
mod origin;
mod plan;
mod result;

#[cfg(test)]
mod test_server;

pub use network::load;
pub use plan::{Limits, Objects, PageError, PagePlan};
