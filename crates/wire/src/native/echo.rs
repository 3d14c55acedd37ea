//! plumb's UDP echo: the datagram, the cookie, and the answering side as a state machine.
//!
//! Every datagram is big-endian and has the same 64-byte head; zeros fill it up to the size
//! asked for. A client first fetches a cookie, which proves that it receives at the address it
//! sends from; probes with a valid cookie are answered. An answer is as large as its request, or as the probe asks:
//! only the holder of an address's cookie can have more sent there than was sent from it.
//!
//! | bytes  | field |
//! |--------|-------|
//! | 0..4   | magic `PLMB` |
//! | 4      | version, 1 |
//! | 5      | kind |
//! | 6..8   | flags, zero |
//! | 8..24  | cookie |
//! | 24..28 | session: the client's random number |
//! | 28..32 | client sequence |
//! | 32..36 | server sequence |
//! | 36..38 | size of the answer that a probe asks for; 0: as its own |
//! | 38..40 | how far the server's clock may be off, as STAMP has it (RFC 8762, section 4.2.1); 0: it does not say |
//! | 40..48 | client send time, ns, opaque to the server |
//! | 48..56 | server receive time, ns of CLOCK_REALTIME |
//! | 56..64 | server send time, ns of CLOCK_REALTIME |

mod cookie;
mod responder;

pub use cookie::{Cookie, CookieJar, EPOCH};
pub use responder::{EchoCounters, Responder};

use crate::stamp::ErrorEstimate;

/// Size of the head, and so of the smallest datagram, in bytes.
pub const MIN_BYTES: usize = 64;

const MAGIC: [u8; 4] = *b"PLMB";
const VERSION: u8 = 1;
/// Where the server's receive and send times are.
const SERVER_RECEIVE_OFFSET: usize = 48;
const SERVER_SEND_OFFSET: usize = 56;

/// What a datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A client asks for a cookie.
    CookieRequest,
    /// The server hands one out.
    CookieReply,
    /// A client asks for an answer.
    Probe,
    Reply,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::CookieRequest => 1,
            Self::CookieReply => 2,
            Self::Probe => 3,
            Self::Reply => 4,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [
            Self::CookieRequest,
            Self::CookieReply,
            Self::Probe,
            Self::Reply,
        ]
        .into_iter()
        .find(|kind| kind.code() == code)
    }
}

/// The head of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// What it is for.
    pub kind: Kind,
    /// The cookie; zero in a request for one.
    pub cookie: Cookie,
    /// The client's random number, the same in all its probes.
    pub session: u32,
    /// The client's number of the probe.
    pub client_sequence: u32,
    /// How many probes of this session the server has received, this one included, from 1.
    ///
    /// A gap in the client's numbers but not in the server's is loss upstream; a gap in both is loss downstream.
    pub server_sequence: u32,
    /// Size that a probe asks its answer to have; its own where that is 0.
    pub answer_bytes: u16,
    /// How far the server's clock may be off, in a reply of one that says so.
    pub server_clock: Option<ErrorEstimate>,
    /// The client's own note of when it sent, ns; echoed untouched.
    pub client_send_ns: i64,
    /// When the server received the probe, ns of CLOCK_REALTIME.
    pub server_receive_ns: i64,
    /// When the server sent the reply, ns of CLOCK_REALTIME.
    pub server_send_ns: i64,
}

impl Datagram {
    /// A request for a cookie.
    pub fn cookie_request(session: u32) -> Self {
        Self::of_client(Kind::CookieRequest, [0; 16], session, 0, 0)
    }

    pub fn probe(cookie: Cookie, session: u32, client_sequence: u32, client_send_ns: i64) -> Self {
        Self::of_client(
            Kind::Probe,
            cookie,
            session,
            client_sequence,
            client_send_ns,
        )
    }

    fn of_client(
        kind: Kind,
        cookie: Cookie,
        session: u32,
        client_sequence: u32,
        client_send_ns: i64,
    ) -> Self {
        Self {
            kind,
            cookie,
            session,
            client_sequence,
            server_sequence: 0,
            answer_bytes: 0,
            server_clock: None,
            client_send_ns,
            server_receive_ns: 0,
            server_send_ns: 0,
        }
    }

    /// The datagram, filled with zeros up to `size_bytes` and never shorter than its head.
    pub fn write(&self, size_bytes: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(size_bytes.max(MIN_BYTES));
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, self.kind.code(), 0, 0]);
        out.extend_from_slice(&self.cookie);
        out.extend_from_slice(&self.session.to_be_bytes());
        out.extend_from_slice(&self.client_sequence.to_be_bytes());
        out.extend_from_slice(&self.server_sequence.to_be_bytes());
        out.extend_from_slice(&self.answer_bytes.to_be_bytes());
        let clock = self.server_clock.map_or([0; 2], ErrorEstimate::write);
        out.extend_from_slice(&clock);
        out.extend_from_slice(&self.client_send_ns.to_be_bytes());
        out.extend_from_slice(&self.server_receive_ns.to_be_bytes());
        out.extend_from_slice(&self.server_send_ns.to_be_bytes());
        out.resize(size_bytes.max(MIN_BYTES), 0);
        out
    }

    /// Reads the head; `None` when it is no datagram of this protocol and version.
    ///
    /// Flags and padding are not looked at, so that a later version can use them.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if field::<4>(bytes, 0)? != MAGIC || field::<1>(bytes, 4)? != [VERSION] {
            return None;
        }
        let [kind] = field(bytes, 5)?;
        Some(Self {
            kind: Kind::from_code(kind)?,
            cookie: field(bytes, 8)?,
            session: u32::from_be_bytes(field(bytes, 24)?),
            client_sequence: u32::from_be_bytes(field(bytes, 28)?),
            server_sequence: u32::from_be_bytes(field(bytes, 32)?),
            answer_bytes: u16::from_be_bytes(field(bytes, 36)?),
            // A multiplier of zero says nothing.
            server_clock: Some(ErrorEstimate::read(field(bytes, 38)?))
                .filter(|clock| clock.multiplier != 0),
            client_send_ns: i64::from_be_bytes(field(bytes, 40)?),
            server_receive_ns: i64::from_be_bytes(field(bytes, SERVER_RECEIVE_OFFSET)?),
            server_send_ns: i64::from_be_bytes(field(bytes, SERVER_SEND_OFFSET)?),
        })
    }
}

/// Writes the server's send time into a finished reply: the last thing before it leaves.
pub fn set_server_send_time(reply: &mut [u8], ns: i64) {
    if let Some(field) = reply.get_mut(SERVER_SEND_OFFSET..SERVER_SEND_OFFSET + 8) {
        field.copy_from_slice(&ns.to_be_bytes());
    }
}

fn field<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk::<N>().copied()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::stamp::TimeFormat;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_the_one_that_recorders_rely_on() {
        let datagram = Datagram {
            kind: Kind::Reply,
            cookie: *b"0123456789abcdef",
            session: 0x0102_0304,
            client_sequence: 0x1112_1314,
            server_sequence: 0x2122_2324,
            answer_bytes: 0x2526,
            server_clock: Some(ErrorEstimate {
                synchronised: true,
                format: TimeFormat::Ntp,
                scale: 0x12,
                multiplier: 0x77,
            }),
            client_send_ns: 0x3132_3334_3536_3738,
            server_receive_ns: 0x4142_4344_4546_4748,
            server_send_ns: 0x5152_5354_5556_5758,
        };
        let bytes = datagram.write(70);
        assert_eq!(bytes.len(), 70);
        assert_eq!(&bytes[..8], b"PLMB\x01\x04\0\0");
        assert_eq!(&bytes[8..24], b"0123456789abcdef");
        assert_eq!(bytes[24..32], [1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14]);
        assert_eq!(
            bytes[32..40],
            [0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x92, 0x77]
        );
        assert_eq!((bytes[40], bytes[48], bytes[56]), (0x31, 0x41, 0x51));
        assert_eq!(bytes[64..], [0; 6]);
        assert_eq!(Datagram::parse(&bytes), Some(datagram));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(kind in 1u8..5, cookie: Cookie, session: u32, sequence: u32, ns: i64, answer_bytes: u16, size in 0usize..1500) {
            let datagram = Datagram { kind: Kind::from_code(kind).unwrap(), answer_bytes, ..Datagram::probe(cookie, session, sequence, ns) };
            prop_assert_eq!(Datagram::parse(&datagram.write(size)), Some(datagram));
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Datagram::parse(&bytes);
            let framed = [b"PLMB\x01\x03".as_slice(), &bytes].concat();
            prop_assert_eq!(Datagram::parse(&framed).is_some(), framed.len() >= MIN_BYTES);
        }
    }
}
