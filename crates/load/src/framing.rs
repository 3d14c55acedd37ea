//! What a protocol of others puts around payload on a connection.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use crate::loaded::Loaded;

/// Payload in and out of a protocol that has the connection: calls take at most twice
/// [`POLL_INTERVAL`](crate::phase_state::POLL_INTERVAL), and end as if they would block where nothing moved meanwhile.
pub trait Framing: Read + Write + Send + fmt::Debug {
    /// By which requests are made beside the load, where the protocol has that and it was asked for.
    fn asks(&self) -> Option<Arc<dyn Loaded>> {
        None
    }
}
