//! A segment of TCP (RFC 9293, section 3.1).

use plumb_model::results::capture::Offer;
use plumb_wire::tcp_options::{FAST_OPEN, MPTCP, MSS, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE};

use super::cursor::Cursor;
use super::end::End;

/// Flags of the header.
pub(crate) mod flags {
    pub(crate) use plumb_wire::ip::{ACK, CWR, ECE, FIN, RST, SYN};
    /// What was sent so far is to be handed to the program.
    pub(crate) const PSH: u8 = 0x08;
}

/// Selective acknowledgements (RFC 2018, section 3).
const SACK: u8 = 5;
/// Fast Open before it had a number (RFC 7413, appendix A).
const EXPERIMENT: u8 = 254;
const FAST_OPEN_MAGIC: [u8; 2] = [0xf9, 0x89];
/// Larger powers are taken for this one (RFC 7323, section 2.3).
const LARGEST_SCALE: u8 = 14;
/// Bytes of the header without options.
const HEADER: usize = 20;

/// A segment, whose options are borrowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    /// Ports of its source and destination.
    pub ports: [u16; 2],
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    /// As it stands in the header, not scaled.
    pub window: u16,
    pub options: Options<'a>,
    /// Payload on the wire, of which not all need be captured.
    pub payload_bytes: u32,
    /// The payload as far as it was captured.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    #[inline]
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, End> {
        let [
            s0,
            s1,
            d0,
            d1,
            q0,
            q1,
            q2,
            q3,
            a0,
            a1,
            a2,
            a3,
            offset,
            flags,
            w0,
            w1,
            ..,
        ] = *cursor.peek::<HEADER>()?;
        let header = usize::from(offset >> 4) * 4;
        if header < HEADER || (cursor.wire() as usize) < header {
            return Err(End::Malformed);
        }
        cursor.pass(HEADER)?;
        let payload_bytes = cursor.wire() - (header - HEADER) as u32;
        // Options that the capture cut are read as far as they go.
        let length = (header - HEADER).min(cursor.rest().len());
        let options = cursor.take(length)?;
        Ok(Self {
            ports: [u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])],
            seq: u32::from_be_bytes([q0, q1, q2, q3]),
            ack: u32::from_be_bytes([a0, a1, a2, a3]),
            flags,
            window: u16::from_be_bytes([w0, w1]),
            options: Options(options),
            payload_bytes,
            payload: cursor.rest(),
        })
    }

    /// Whether one of these flags is set.
    #[inline]
    pub(crate) fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Sequence numbers that it takes: its payload, and one each for SYN and FIN.
    #[inline]
    pub(crate) fn length(&self) -> u32 {
        self.payload_bytes + u32::from(self.has(flags::SYN)) + u32::from(self.has(flags::FIN))
    }

    /// The sequence number behind it.
    #[inline]
    pub(crate) fn end(&self) -> u32 {
        self.seq.wrapping_add(self.length())
    }
}

/// The options of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options<'a>(&'a [u8]);

impl<'a> Options<'a> {
    /// Value and echo of the timestamps.
    #[inline]
    pub(crate) fn timestamps(&self) -> Option<[u32; 2]> {
        // As nearly everybody sends them, aligned by two NOPs (RFC 7323, appendix A).
        let value = match self.0 {
            [1, 1, TIMESTAMPS, 10, value @ ..] => value,
            _ => self.find(TIMESTAMPS)?,
        };
        let [a, b, c, d, e, f, g, h] = *value.first_chunk::<8>()?;
        Some([
            u32::from_be_bytes([a, b, c, d]),
            u32::from_be_bytes([e, f, g, h]),
        ])
    }

    /// The blocks of a selective acknowledgement, in their order.
    #[inline]
    pub(crate) fn sack(&self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let value = match self.0 {
            [] => None,
            // Timestamps alone, as on nearly every segment.
            [1, 1, TIMESTAMPS, 10, rest @ ..] if rest.len() == 8 => None,
            _ => self.find(SACK),
        };
        let blocks = value.unwrap_or_default().chunks_exact(8);
        blocks.filter_map(|block| {
            let [a, b, c, d, e, f, g, h] = *block.first_chunk::<8>()?;
            Some((
                u32::from_be_bytes([a, b, c, d]),
                u32::from_be_bytes([e, f, g, h]),
            ))
        })
    }

    /// What a SYN with these offers.
    pub(crate) fn offer(&self, ecn: bool) -> Offer {
        let mut offer = Offer {
            ecn,
            ..Offer::default()
        };
        for (kind, value) in self.all() {
            match (kind, value) {
                (MSS, [high, low]) => offer.mss_bytes = Some(u16::from_be_bytes([*high, *low])),
                (WINDOW_SCALE, [scale]) => offer.window_scale = Some((*scale).min(LARGEST_SCALE)),
                (SACK_PERMITTED, _) => offer.sack = true,
                (TIMESTAMPS, _) => offer.timestamps = true,
                (FAST_OPEN, _) => offer.fast_open = true,
                (EXPERIMENT, value) => offer.fast_open |= value.starts_with(&FAST_OPEN_MAGIC),
                (MPTCP, _) => offer.mptcp = true,
                _ => {}
            }
        }
        offer
    }

    /// How long they are in bytes, as far as they were captured.
    pub(crate) fn bytes(&self) -> u32 {
        self.0.len() as u32
    }

    fn find(&self, kind: u8) -> Option<&'a [u8]> {
        self.all()
            .find_map(|(found, value)| (found == kind).then_some(value))
    }

    /// Every option with its value, up to the first that is not whole.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        const END: u8 = 0;
        const NOP: u8 = 1;
        let mut rest = self.0;
        std::iter::from_fn(move || {
            // Ends with the options: each turn passes one.
            loop {
                match rest {
                    [] | [END, ..] => return None,
                    [NOP, after @ ..] => rest = after,
                    [kind, length, ..] => {
                        let value = rest.get(2..usize::from(*length))?;
                        rest = rest.get(usize::from(*length)..)?;
                        return Some((*kind, value));
                    }
                    [_] => return None,
                }
            }
        })
    }
}
