//! What a test does of streams of either kind.

use std::time::Duration;

use plumb_wire::iperf3::Results;

/// What runs, until it is finished.
pub(super) trait Running {
    /// Payload that was carried so far.
    fn carried_bytes(&self) -> u64;

    /// Ends it; what is omitted at the beginning does not count.
    fn finish(self: Box<Self>, omit: Duration) -> Results;
}
