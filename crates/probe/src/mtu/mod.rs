//! How large packets may be on a path: packetization layer path MTU discovery (RFC 8899), reported by routers or found
//! by silence, hop by hop. The network is a trait, so that the search runs in virtual time.
//!
//! [`mod@search`] finds sizes, [`mss`] what becomes of TCP's maximum segment size. Both send by the rounds of
//! [`path`](crate::path): many probes at once, and those without an answer again.

pub mod mss;
pub mod search;
#[cfg(test)]
mod tests;

pub use search::{Found, FoundHop, MtuPlan, SearchError, search};
