//! Blocks of a pcapng file (draft-ietf-opsawg-pcapng), as captures need them.
//!
//! A file is one [`section_header`], the interfaces in order, and any number of packets.

/// Version 1.0, in the byte order of this file: little endian.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
/// LINKTYPE_RAW: packets begin with their IPv4 or IPv6 header.
pub const LINKTYPE_RAW: u16 = 101;
/// The limit on the length of packets where there is none.
pub const NO_LIMIT: u32 = 0;
/// The length of a section that is not known beforehand.
const UNKNOWN_LENGTH: u64 = u64::MAX;
/// Options, and the end of them.
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_IF_NAME: u16 = 2;
const OPTION_IF_TSRESOL: u16 = 9;
const OPTION_EPB_FLAGS: u16 = 2;
const OPTION_ISB_OSDROP: u16 = 7;
/// Time stamps count in 10⁻⁹ s.
const NANOSECONDS: u8 = 9;

/// The direction in which a packet passed the interface (the low two bits of `epb_flags`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Inbound,
    Outbound,
    /// The capture does not say.
    Unknown,
}

/// What a file begins with; the comment says what was captured.
pub fn section_header(comment: &str) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(BYTE_ORDER_MAGIC.to_le_bytes());
    body.extend(1u16.to_le_bytes());
    body.extend(0u16.to_le_bytes());
    body.extend(UNKNOWN_LENGTH.to_le_bytes());
    option(&mut body, OPTION_COMMENT, comment.as_bytes());
    option(&mut body, OPTION_END, &[]);
    block(SECTION_HEADER, &body)
}

/// An interface by its name, if it is to have one, and link type (LINKTYPE_ of libpcap), of whose packets at most `snaplen` bytes are kept, with
/// stamps in nanoseconds. The first in a file is number 0.
pub fn interface(name: &str, link: u16, snaplen: u32) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(link.to_le_bytes());
    body.extend([0, 0]);
    body.extend(snaplen.to_le_bytes());
    if !name.is_empty() {
        option(&mut body, OPTION_IF_NAME, name.as_bytes());
    }
    option(&mut body, OPTION_IF_TSRESOL, &[NANOSECONDS]);
    option(&mut body, OPTION_END, &[]);
    block(INTERFACE_DESCRIPTION, &body)
}

/// How many packets of an interface the capturing program missed since the capture began, up to a time in nanoseconds
/// since 1970.
pub fn interface_statistics(interface: u32, unix_ns: u64, missed: u64) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(interface.to_le_bytes());
    body.extend(stamp(unix_ns));
    option(&mut body, OPTION_ISB_OSDROP, &missed.to_le_bytes());
    option(&mut body, OPTION_END, &[]);
    block(INTERFACE_STATISTICS, &body)
}

/// A packet that passed an interface at a time in nanoseconds since 1970: its first bytes, and how many it has in all.
pub fn packet(
    interface: u32,
    unix_ns: u64,
    direction: Direction,
    data: &[u8],
    original_bytes: u32,
) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut body = Vec::with_capacity(data.len() + 40);
    body.extend(interface.to_le_bytes());
    body.extend(stamp(unix_ns));
    body.extend(length.to_le_bytes());
    body.extend(original_bytes.to_le_bytes());
    body.extend(data);
    pad(&mut body);
    let flags: u32 = match direction {
        Direction::Unknown => 0,
        Direction::Inbound => 1,
        Direction::Outbound => 2,
    };
    option(&mut body, OPTION_EPB_FLAGS, &flags.to_le_bytes());
    option(&mut body, OPTION_END, &[]);
    block(ENHANCED_PACKET, &body)
}

/// A time stamp, its upper half first.
fn stamp(unix_ns: u64) -> [u8; 8] {
    unix_ns.rotate_left(32).to_le_bytes()
}

/// A block is framed by its length, so that files can be read backwards too.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    const FRAME_BYTES: usize = 12;
    let length = u32::try_from(body.len() + FRAME_BYTES).unwrap_or(u32::MAX);
    let mut block = Vec::with_capacity(body.len() + FRAME_BYTES);
    block.extend(kind.to_le_bytes());
    block.extend(length.to_le_bytes());
    block.extend(body);
    block.extend(length.to_le_bytes());
    block
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    // The length has 16 bits; what does not fit is cut.
    let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

/// Everything is aligned to 32 bits.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn blocks_byte_for_byte() {
        assert_eq!(
            interface("wan", LINKTYPE_RAW, NO_LIMIT),
            [
                1, 0, 0, 0, 40, 0, 0, 0, // type, length
                101, 0, 0, 0, 0, 0, 0, 0, // link type, no limit
                2, 0, 3, 0, b'w', b'a', b'n', 0, // if_name
                9, 0, 1, 0, 9, 0, 0, 0, // if_tsresol
                0, 0, 0, 0, // end of options
                40, 0, 0, 0,
            ]
        );
        let packet = packet(
            0,
            0x1_0000_0002,
            Direction::Outbound,
            &[0x45, 1, 2, 3, 4],
            5,
        );
        assert_eq!(packet.len() % 4, 0);
        assert_eq!(
            packet[8..],
            [
                0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, // interface, time
                5, 0, 0, 0, 5, 0, 0, 0, // captured, original
                0x45, 1, 2, 3, 4, 0, 0, 0, // data, padded
                2, 0, 4, 0, 2, 0, 0, 0, // epb_flags: outbound
                0, 0, 0, 0, 52, 0, 0, 0,
            ][..]
        );
    }

    #[test]
    fn what_was_missed_by_when() {
        let block = interface_statistics(0, 0x1_0000_0002, 3);
        assert_eq!(
            block[8..],
            [
                0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, // interface, time
                7, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0, // isb_osdrop
                0, 0, 0, 0, 40, 0, 0, 0,
            ][..]
        );
    }

    #[test]
    fn lengths_frame_every_block() {
        for block in [
            section_header("a link of a lab"),
            interface(&"x".repeat(100_000), LINKTYPE_RAW, 96),
            interface_statistics(0, 0x1_0000_0002, 3),
            packet(7, 1, Direction::Inbound, &[0; 1501], 9000),
        ] {
            let length = block.len() as u32;
            assert_eq!(block[4..8], length.to_le_bytes());
            assert_eq!(block[block.len() - 4..], length.to_le_bytes());
            assert_eq!(length % 4, 0);
        }
    }
}
