//! What one measurement of a load carried, for forms that show TCP and datagrams alike.

use plumb_model::results::{CpuUse, Direction, StreamResult};

/// What passed in one direction.
pub(crate) struct Carried<'a> {
    pub(crate) direction: Direction,
    pub(crate) cpu: &'a CpuUse,
    pub(crate) by: CarriedBy<'a>,
}

/// What it passed by.
pub(crate) enum CarriedBy<'a> {
    Tcp(Segments<'a>),
    Udp(Datagrams),
}

/// Streams of TCP in one direction.
pub(crate) struct Segments<'a> {
    pub(crate) bytes: u64,
    pub(crate) retransmits: u64,
    pub(crate) min_rtt_s: Option<f64>,
    pub(crate) max_srtt_s: Option<f64>,
    pub(crate) mss_bytes: u64,
    pub(crate) cc: &'a str,
    pub(crate) streams: &'a [StreamResult],
}

/// One stream of datagrams, or several added up.
#[derive(Clone, Copy, Default)]
pub(crate) struct Datagrams {
    pub(crate) payload_bytes: u32,
    pub(crate) asked_bps: Option<f64>,
    pub(crate) sent: u64,
    pub(crate) received_bytes: u64,
    pub(crate) lost: u64,
    pub(crate) reordered: u64,
    /// The mean of the running estimate, in seconds.
    pub(crate) jitter_s: f64,
}
