//! STAMP, the simple two-way active measurement protocol: its packets (RFC 8762), their optional
//! parts (RFC 8972), and the reflector as a state machine.
//!
//! A sender numbers its packets and writes when it sent them; the reflector sends each back with
//! its own number and the times at which it received and answered. Both have the same length.
//! TWAMP Light (RFC 5357, appendix I) has the same fields in the same places: its reflectors
//! answer with 41 bytes, where STAMP has 44.
//!
//! | open | authenticated | field |
//! |------|---------------|-------|
//! | 0..4 | 0..4 | sequence number |
//! | 4..12 | 16..24 | time of sending |
//! | 12..14 | 24..26 | how far that may be off |
//! | 14..16 | 26..28 | session |
//! | 16..24 | 32..40 | reflector: time of receiving |
//! | 24..28 | 48..52 | reflector: the sender's sequence number |
//! | 28..36 | 64..72 | reflector: the sender's time of sending |
//! | 36..38 | 72..74 | reflector: how far the sender said that may be off |
//! | 40 | 80 | reflector: hop limit with which the packet came |
//! | | 96..112 | HMAC over all before it |

mod field;
mod key;
mod reflector;
mod time;
pub mod tlv;

use field::field;
pub use key::{Key, MAX_KEY_BYTES, TAG_BYTES};
pub use reflector::{Arrived, ClockState, Counting, Reflected, Reflector, ReflectorCounters};
pub use time::{ErrorEstimate, TimeFormat};
pub use tlv::Tlv;

/// Port of the reflector, the same as TWAMP's (RFC 8762, section 4.1).
pub const PORT: u16 = 862;

/// Size of a packet without authentication and optional parts.
pub const OPEN_BYTES: usize = 44;

/// Size of a packet with authentication and without optional parts.
pub const AUTHENTICATED_BYTES: usize = 112;

/// Size of the answer of a TWAMP reflector (RFC 5357, section 4.2.1), which lacks STAMP's last
/// three bytes of zeros.
pub const TWAMP_REPLY_BYTES: usize = 41;

/// Where the HMAC is, and what it covers ends (RFC 8762, section 4.4).
const TAG_OFFSET: usize = 96;

/// Where the fields are.
#[derive(Debug, Clone, Copy)]
struct Layout {
    sent: usize,
    error: usize,
    session: usize,
    received: usize,
    echoed_sequence: usize,
    echoed_sent: usize,
    echoed_error: usize,
    hops: usize,
    least: usize,
    /// Where optional parts begin.
    end: usize,
}

const OPEN: Layout = Layout {
    sent: 4,
    error: 12,
    session: 14,
    received: 16,
    echoed_sequence: 24,
    echoed_sent: 28,
    echoed_error: 36,
    hops: 40,
    least: TWAMP_REPLY_BYTES,
    end: OPEN_BYTES,
};

const AUTHENTICATED: Layout = Layout {
    sent: 16,
    error: 24,
    session: 26,
    received: 32,
    echoed_sequence: 48,
    echoed_sent: 64,
    echoed_error: 72,
    hops: 80,
    least: AUTHENTICATED_BYTES,
    end: AUTHENTICATED_BYTES,
};

impl Layout {
    fn of(key: Option<&Key>) -> Self {
        match key {
            None => OPEN,
            Some(_) => AUTHENTICATED,
        }
    }
}

/// What a sender sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub sequence: u32,
    /// When it was sent, ns since 1970 by the sender's clock.
    pub sent_ns: i64,
    /// How far that may be off, and how it is written.
    pub error: ErrorEstimate,
    /// The session (RFC 8972, section 3); a reflector that knows only RFC 8762 answers with zero.
    pub session: u16,
}

impl Request {
    /// The packet, with optional parts, and with zeros up to `size_bytes`; an HMAC over the
    /// optional parts is added where there is a key.
    pub fn write(&self, key: Option<&Key>, tlvs: &[Tlv], size_bytes: usize) -> Vec<u8> {
        let layout = Layout::of(key);
        let mut out = vec![0; layout.end];
        put(&mut out, 0, self.sequence.to_be_bytes());
        put(&mut out, layout.sent, self.error.format.write(self.sent_ns));
        put(&mut out, layout.error, self.error.write());
        put(&mut out, layout.session, self.session.to_be_bytes());
        for tlv in tlvs {
            tlv.write(&mut out);
        }
        if let Some(key) = key {
            seal(&mut out, key);
            if let Some(parts) = out.get(AUTHENTICATED.end..).filter(|_| !tlvs.is_empty()) {
                let tag = key.tag(&[&self.sequence.to_be_bytes(), parts]);
                Tlv::hmac(tag).write(&mut out);
            }
        }
        out.resize(size_bytes.max(out.len()), 0);
        out
    }

    /// Reads a packet that a sender sent; `None` when it is too short for one, or `key` does not
    /// fit.
    pub fn parse(bytes: &[u8], key: Option<&Key>) -> Option<Self> {
        let layout = Layout::of(key);
        verify(bytes, key)?;
        let error = ErrorEstimate::read(field(bytes, layout.error)?);
        Some(Self {
            sequence: u32::from_be_bytes(field(bytes, 0)?),
            sent_ns: error.format.read(field(bytes, layout.sent)?),
            error,
            // Over TWAMP it is padding, which is the same for a whole session.
            session: u16::from_be_bytes(field(bytes, layout.session)?),
        })
    }
}

/// What a reflector answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The reflector's own number, or the sender's where it counts nothing.
    pub sequence: u32,
    /// When it was sent, ns since 1970 by the reflector's clock.
    pub sent_ns: i64,
    /// How far the reflector's times may be off.
    pub error: ErrorEstimate,
    /// The session, zero where the reflector knows of none.
    pub session: u16,
    /// When the request was received, by the same clock.
    pub received_ns: i64,
    /// Number, time and session of the request; its session is the one above.
    pub request: Request,
    /// Hop limit with which the request came; 255 where it started there and met no router, and
    /// where the reflector could not know (RFC 5357, section 4.2.1).
    pub request_hops: u8,
}

impl Reply {
    /// Reads what a reflector sent; `None` when it is too short, or `key` does not fit.
    pub fn parse(bytes: &[u8], key: Option<&Key>) -> Option<Self> {
        let layout = Layout::of(key);
        verify(bytes, key)?;
        let error = ErrorEstimate::read(field(bytes, layout.error)?);
        let echoed = ErrorEstimate::read(field(bytes, layout.echoed_error)?);
        let session = u16::from_be_bytes(field(bytes, layout.session)?);
        let [request_hops] = field(bytes, layout.hops)?;
        Some(Self {
            sequence: u32::from_be_bytes(field(bytes, 0)?),
            sent_ns: error.format.read(field(bytes, layout.sent)?),
            error,
            session,
            received_ns: error.format.read(field(bytes, layout.received)?),
            request: Request {
                sequence: u32::from_be_bytes(field(bytes, layout.echoed_sequence)?),
                sent_ns: echoed.format.read(field(bytes, layout.echoed_sent)?),
                error: echoed,
                session,
            },
            request_hops,
        })
    }

    /// The optional parts of the answer whose head this is; none where the HMAC over them does
    /// not fit.
    pub fn tlvs(&self, bytes: &[u8], key: Option<&Key>) -> Vec<tlv::Placed> {
        let parts = bytes.get(Layout::of(key).end..).unwrap_or_default();
        let placed: Vec<_> = tlv::read(parts, self.error.format).collect();
        match key {
            Some(key) if !sealed(parts, &placed, self.sequence, key) => Vec::new(),
            Some(_) | None => placed,
        }
    }
}

/// Whether the optional parts end in the HMAC that they should have.
fn sealed(parts: &[u8], placed: &[tlv::Placed], sequence: u32, key: &Key) -> bool {
    let Some((last, before)) = placed.split_last() else {
        return true;
    };
    let covered = parts.get(..last.offset).unwrap_or_default();
    match &last.tlv {
        Some(tlv @ Tlv::Other { value, .. }) if tlv.is_hmac() => {
            !before
                .iter()
                .any(|placed| placed.tlv.as_ref().is_some_and(Tlv::is_hmac))
                && key.verifies(&[&sequence.to_be_bytes(), covered], value)
        }
        _ => false,
    }
}

/// Writes the HMAC of an authenticated packet.
fn seal(packet: &mut [u8], key: &Key) {
    if let Some((covered, rest)) = packet.split_at_mut_checked(TAG_OFFSET) {
        let tag = key.tag(&[covered]);
        put(rest, 0, tag);
    }
}

/// Whether a packet is long enough and, with a key, sealed by it.
fn verify(packet: &[u8], key: Option<&Key>) -> Option<()> {
    let long_enough = packet.len() >= Layout::of(key).least;
    let right = match key {
        None => true,
        Some(key) => {
            let tag: [u8; TAG_BYTES] = field(packet, TAG_OFFSET)?;
            key.verifies(&[packet.get(..TAG_OFFSET)?], &tag)
        }
    };
    (long_enough && right).then_some(())
}

fn put<const N: usize>(bytes: &mut [u8], offset: usize, value: [u8; N]) {
    if let Some(place) = bytes.get_mut(offset..offset + N) {
        place.copy_from_slice(&value);
    }
}

#[cfg(test)]
mod tests;
