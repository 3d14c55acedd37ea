//! What a packet is, read from its headers: borrowed, without an allocation.

mod cursor;
mod end;
pub(crate) mod frame_control;
mod link;
mod network;
pub(crate) mod numbers;
mod ports;
mod segment;
mod types;
mod wireless;

pub(crate) use end::End;
pub(crate) use frame_control::Wireless;
pub(crate) use segment::{Segment, flags};
pub(crate) use types::{Address, Layers, Network, Packet, Transport};

use crate::read::Frame;
use cursor::Cursor;

/// Reads the headers of a frame.
#[inline]
pub(crate) fn decode<'a>(frame: &Frame<'a>) -> Packet<'a> {
    let mut packet = Packet::default();
    let mut cursor = Cursor::new(frame.bytes, frame.original_bytes);
    packet.end = match link::begin(frame.link, &mut cursor, &mut packet) {
        Ok(()) => End::Whole,
        Err(end) => end,
    };
    packet
}

#[cfg(test)]
#[path = "packet/tests.rs"]
mod tests;
