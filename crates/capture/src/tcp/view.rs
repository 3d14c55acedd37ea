//! How a connection stands after a segment, for who looks on.

use plumb_model::results::capture::CongestionPhase;

use super::connection::Connection;
use super::spent::{CLIENT, Side};
use crate::packet::{Segment, flags};

/// A connection after a segment, from the side that sent it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// Initial sequence numbers of the sender and of the other side.
    pub(crate) isns: [u32; 2],
    /// The window that the segment allows, in bytes. None where the scale is unknown.
    pub(crate) window_bytes: Option<u32>,
    /// Bytes on their way from the sender, and from the other side.
    pub(crate) in_flight_bytes: [u32; 2],
    /// Payload that was new, of the sender so far, in bytes.
    pub(crate) news_bytes: u64,
    /// Congestion window of the sender in bytes, where it shows.
    pub(crate) congestion_bytes: Option<u32>,
    /// The latest phase of it, and when that began.
    pub(crate) phase: Option<(u64, CongestionPhase)>,
}

impl Connection {
    /// How it stands after a segment of a side.
    pub(crate) fn view(&self, from: Side, segment: &Segment<'_>) -> View {
        let (own, other) = match from {
            CLIENT => (&self.client, &self.server),
            _ => (&self.server, &self.client),
        };
        // The window of a SYN is never scaled (RFC 7323, section 2.2).
        let scale = match segment.has(flags::SYN) {
            true => Some(0),
            false => own.scale,
        };
        let congestion = own.congestion.as_ref().filter(|_| other.scale.is_some());
        View {
            isns: [own.isn, other.isn],
            window_bytes: scale.map(|scale| u32::from(segment.window) << scale),
            in_flight_bytes: [own.in_flight(other), other.in_flight(own)],
            news_bytes: own.news,
            congestion_bytes: congestion.and_then(|all| all.estimate()),
            phase: congestion.map(|all| all.phase()),
        }
    }
}
