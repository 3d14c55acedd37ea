//! What a capture file consists of, whatever its format.

use std::io;

/// A packet longer than this is none: libpcap allows 256 KiB, USB captures 128 MiB, IP with segmentation offload (BIG TCP)
/// half a megabyte.
pub(super) const MAX_PACKET_BYTES: u32 = 16 << 20;

/// How long a packet was on the wire, by what its record claims. What claims more than any packet has was as long as what
/// was captured of it: a record of few bytes must not make work for gigabytes.
#[inline]
pub(super) fn on_the_wire(claimed: u32, captured: u32) -> u32 {
    match claimed > MAX_PACKET_BYTES {
        true => captured,
        false => claimed.max(captured),
    }
}

/// A packet as the capture has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When it was captured, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// The link type of the interface that it was captured at (LINKTYPE_ of libpcap).
    pub link: u16,
    /// Its first bytes, as many as were captured.
    pub bytes: &'a [u8],
    /// Its length on the wire, in bytes.
    pub original_bytes: u32,
}

/// Where a frame is in the window, before it is lent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    pub(super) unix_ns: u64,
    pub(super) link: u16,
    /// The frame's bytes: how far before the window's start, and how many.
    pub(super) back: usize,
    pub(super) captured: usize,
    pub(super) original: u32,
}

/// Why a capture could not be read on. What was read before stays good.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing that is a capture.
    #[error(
        "it is no capture that can be read: it begins with the bytes {0}; pcap and pcapng can be read, and both in gzip, zstd or lz4"
    )]
    Unknown(String),
    /// The stream has no bytes at all.
    #[error("it is empty")]
    Empty,
    /// A packing, where the file is to be read while it grows.
    #[error("it is packed: such a file cannot be read while it grows")]
    Packed,
    /// A version whose records look otherwise.
    #[error("it is {format} of version {major}.{minor}, which cannot be read")]
    Version {
        format: &'static str,
        major: u16,
        minor: u16,
    },
    /// The end came within a record.
    #[error("it is cut short: it ends within the record that begins at byte {at}")]
    Cut { at: u64 },
    /// A record whose length cannot be true.
    #[error("it is damaged: the record at byte {at} claims {length} bytes, which no packet has")]
    Absurd { at: u64, length: u64 },
    /// A block that contradicts itself.
    #[error("it is damaged: the block at byte {at} {what}")]
    Damaged { at: u64, what: &'static str },
    /// The stream could not be read, or not be unpacked.
    #[error("it cannot be read on: {0}")]
    Io(#[from] io::Error),
}
