//! Datagrams of a UDP stream. All are big-endian and begin with the same bytes:
//!
//! | bytes  | field |
//! |--------|-------|
//! | 0..4   | magic `PLMD` |
//! | 4      | version, 1 |
//! | 5      | kind |
//! | 6..8   | number of the stream |
//!
//! A client *attaches* a stream by sending, from the address that the stream is to have, the
//! session's token, which it got over TCP. It sends it again and again until the phase has
//! started, so that no single loss matters:
//!
//! | bytes  | field |
//! |--------|-------|
//! | 8..24  | token |
//! | 24..28 | phase |
//! | 28     | role |
//! | 29..32 | zero |
//!
//! From then on both ends send datagrams with a tag, which only a holder of the token can make:
//!
//! | bytes  | field |
//! |--------|-------|
//! | 8..16  | tag |
//! | 16..24 | sequence, from 0; in an *end*, how many datagrams there were |
//! | 24..32 | when it was sent, ns of the sender's CLOCK_REALTIME |
//!
//! The time is of CLOCK_REALTIME because that is what the kernel stamps arrivals with; a sender
//! whose clock is stepped continues as if it had not been. An *end* is repeated until its *answer* comes or no end can
//! be waiting any more.

use super::control::Token;
use super::control::frame::{self, Preamble};
use super::spec::TOKEN_BYTES;
use crate::keyed;

/// Bytes that every datagram begins with, and so the smallest payload.
pub const HEADER_BYTES: usize = 32;

const MAGIC: [u8; 4] = *b"PLMD";
const VERSION: u8 = 1;
const ATTACH: u8 = 1;
const DATA: u8 = 2;
const END: u8 = 3;
const END_ANSWER: u8 = 4;

/// Identifies the datagrams of one stream: the first bytes of an HMAC-SHA256, under the token, of the stream's phase,
/// number and direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    bytes: [u8; 8],
    stream: u16,
}

impl Tag {
    /// The tag of the stream.
    pub fn of(stream: &Preamble) -> Self {
        let parts: [&[u8]; 4] = [
            b"plumb udp stream",
            &stream.phase.to_be_bytes(),
            &stream.stream.to_be_bytes(),
            &[frame::role_code(stream.role)],
        ];
        let bytes = keyed::code(&keyed::key(&stream.token.0), &parts);
        Self {
            bytes,
            stream: short(stream.stream),
        }
    }

    /// The beginning of a datagram of the stream, of that number and time.
    pub fn data(&self, sequence: u64, sent_ns: i64) -> [u8; HEADER_BYTES] {
        self.header(DATA, sequence, sent_ns)
    }

    /// Says that the stream had so many datagrams.
    pub fn end(&self, datagrams: u64, sent_ns: i64) -> [u8; HEADER_BYTES] {
        self.header(END, datagrams, sent_ns)
    }

    /// Says that the end came.
    pub fn end_answer(&self) -> [u8; HEADER_BYTES] {
        self.header(END_ANSWER, 0, 0)
    }

    fn header(&self, kind: u8, sequence: u64, sent_ns: i64) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let fields = opening(kind, self.stream)
            .into_iter()
            .chain(self.bytes)
            .chain(sequence.to_be_bytes())
            .chain(sent_ns.to_be_bytes());
        header
            .iter_mut()
            .zip(fields)
            .for_each(|(to, from)| *to = from);
        header
    }

    /// What a datagram of the stream says; `None` for what is none of it.
    pub fn parse(&self, datagram: &[u8]) -> Option<Datagram> {
        let header: &[u8; HEADER_BYTES] = datagram.first_chunk()?;
        let kind = *header.get(5)?;
        if field::<8>(header, 0)? != opening(kind, self.stream)
            || field::<8>(header, 8)? != self.bytes
        {
            return None;
        }
        let sequence = u64::from_be_bytes(field(header, 16)?);
        match kind {
            DATA => Some(Datagram::Data {
                sequence,
                sent_ns: i64::from_be_bytes(field(header, 24)?),
            }),
            END => Some(Datagram::End {
                datagrams: sequence,
            }),
            END_ANSWER => Some(Datagram::EndAnswer),
            _ => None,
        }
    }
}

/// What a datagram of a stream says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagram {
    /// One of the stream.
    Data {
        /// Its number, from 0.
        sequence: u64,
        /// When it was sent, ns of the sender's CLOCK_REALTIME.
        sent_ns: i64,
    },
    /// There are no more.
    End {
        /// How many there were.
        datagrams: u64,
    },
    EndAnswer,
}

/// Asks for a stream.
pub fn attach(stream: &Preamble) -> [u8; HEADER_BYTES] {
    let mut datagram = [0; HEADER_BYTES];
    let fields = opening(ATTACH, short(stream.stream))
        .into_iter()
        .chain(stream.token.0)
        .chain(stream.phase.to_be_bytes())
        .chain([frame::role_code(stream.role)]);
    datagram
        .iter_mut()
        .zip(fields)
        .for_each(|(to, from)| *to = from);
    datagram
}

/// The stream that a datagram asks for, if that is what it does.
pub fn parse_attach(datagram: &[u8]) -> Option<Preamble> {
    let header: &[u8; HEADER_BYTES] = datagram.first_chunk()?;
    let stream = u16::from_be_bytes(field(header, 6)?);
    if field::<8>(header, 0)? != opening(ATTACH, stream) {
        return None;
    }
    Some(Preamble {
        token: Token(field::<TOKEN_BYTES>(header, 8)?),
        phase: u32::from_be_bytes(field(header, 24)?),
        stream: u32::from(stream),
        role: frame::role_of_code(*header.get(28)?)?,
        tls: false,
    })
}

fn opening(kind: u8, stream: u16) -> [u8; 8] {
    let [m0, m1, m2, m3] = MAGIC;
    let [s0, s1] = stream.to_be_bytes();
    [m0, m1, m2, m3, VERSION, kind, s0, s1]
}

/// There are at most [`MOST_STREAMS`](super::spec::MOST_STREAMS).
fn short(stream: u32) -> u16 {
    u16::try_from(stream).unwrap_or(u16::MAX)
}

fn field<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk::<N>().copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use plumb_model::direction::OneDirection;
    use proptest::prelude::*;

    fn preamble(token: u8, phase: u32, stream: u32, role: OneDirection) -> Preamble {
        Preamble {
            token: Token([token; TOKEN_BYTES]),
            phase,
            stream,
            role,
            tls: false,
        }
    }

    #[test]
    fn the_layout_is_as_specified() {
        let stream = preamble(0xaa, 0x0102_0304, 0x0506, OneDirection::Up);
        let bytes = attach(&stream);
        assert_eq!(&bytes[..8], b"PLMD\x01\x01\x05\x06");
        assert_eq!(bytes[8..24], [0xaa; 16]);
        assert_eq!(bytes[24..], [1, 2, 3, 4, 2, 0, 0, 0]);
        let bytes = Tag::of(&stream).data(0x1112, -2);
        assert_eq!(&bytes[..8], b"PLMD\x01\x02\x05\x06");
        assert_eq!(bytes[16..24], [0, 0, 0, 0, 0, 0, 0x11, 0x12]);
        assert_eq!(
            bytes[24..],
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]
        );
    }

    #[test]
    fn another_session_phase_stream_or_role_is_not_this_one() {
        let tag = Tag::of(&preamble(1, 1, 1, OneDirection::Up));
        let others = [
            preamble(2, 1, 1, OneDirection::Up),
            preamble(1, 2, 1, OneDirection::Up),
            preamble(1, 1, 2, OneDirection::Up),
            preamble(1, 1, 1, OneDirection::Down),
        ];
        for other in others {
            assert_eq!(tag.parse(&Tag::of(&other).data(0, 0)), None);
        }
        assert_eq!(
            tag.parse(&attach(&preamble(1, 1, 1, OneDirection::Up))),
            None
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            token: u8, phase: u32, number in 0u32..1000, up: bool, sequence: u64, sent_ns: i64,
            padding in 0usize..100,
        ) {
            let role = if up { OneDirection::Up } else { OneDirection::Down };
            let stream = preamble(token, phase, number, role);
            prop_assert_eq!(parse_attach(&attach(&stream)), Some(stream));
            let tag = Tag::of(&stream);
            let padded = |header: [u8; HEADER_BYTES]| [header.as_slice(), &vec![0; padding]].concat();
            prop_assert_eq!(tag.parse(&padded(tag.data(sequence, sent_ns))), Some(Datagram::Data { sequence, sent_ns }));
            prop_assert_eq!(tag.parse(&padded(tag.end(sequence, sent_ns))), Some(Datagram::End { datagrams: sequence }));
            prop_assert_eq!(tag.parse(&padded(tag.end_answer())), Some(Datagram::EndAnswer));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..60), kind in 0u8..6) {
            let tag = Tag::of(&preamble(1, 1, 0, OneDirection::Up));
            let framed = [opening(kind, 0).as_slice(), &bytes].concat();
            let _ = (tag.parse(&bytes), parse_attach(&bytes));
            prop_assert_eq!(tag.parse(&framed), None, "nobody guesses a tag");
            let whole = framed.len() >= HEADER_BYTES;
            prop_assert!(whole || parse_attach(&framed).is_none());
        }
    }
}
