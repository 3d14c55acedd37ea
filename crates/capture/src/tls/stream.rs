//! The records that one side of a connection sends (RFC 8446, section 5.1), by their headers: bodies are passed over, but
//! for the first message.

use super::hello::Hello;
use crate::packet::Segment;

/// Types of records (section 5.1).
pub(super) const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const FIRST_TYPE: u8 = 20;
/// Type of heartbeats (RFC 6520).
const LAST_TYPE: u8 = 24;
/// A record's longest body: TLS 1.2 allows 2048 bytes for its protection (RFC 5246, section 6.2.3).
const MAX_BODY_BYTES: u16 = (1 << 14) + 2048;
const HEADER_BYTES: usize = 5;

/// What a record is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    Handshake,
    ApplicationData,
    Other,
}

/// The records of a side, in the order of their sequence numbers.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    /// Sequence number of the next byte that is looked at: of a header, or of the first message.
    at: u32,
    header: [u8; HEADER_BYTES],
    have: usize,
    /// Bytes of the record that the first message is read from.
    left: u32,
    pub(super) hello: Hello,
    /// Where the next record begins is unknown.
    is_lost: bool,
}

impl Stream {
    pub(super) fn new(at: u32) -> Self {
        Self {
            at,
            header: [0; HEADER_BYTES],
            have: 0,
            left: 0,
            hello: Hello::new(),
            is_lost: false,
        }
    }

    /// Reads what a segment has of what comes next; another one is waited for where it has nothing of it.
    pub(super) fn segment(&mut self, segment: &Segment<'_>, record: &mut dyn FnMut(Record)) {
        // Ends with the segment: each turn takes a byte of it, or goes beyond.
        while !self.is_lost {
            let offset = self.at.wrapping_sub(segment.seq);
            if offset >= segment.payload_bytes {
                return;
            }
            let captured = segment.payload.get(offset as usize..).unwrap_or_default();
            match (self.left, captured) {
                // The capture kept less of the packet.
                (0, []) => self.is_lost = true,
                (left, []) => {
                    self.hello.give_up();
                    self.pass(left);
                }
                (0, [byte, ..]) => self.header_byte(*byte, record),
                (left, bytes) => {
                    let part = bytes.get(..left as usize).unwrap_or(bytes);
                    self.hello.feed(part);
                    let passed = match self.hello.is_over() {
                        true => left,
                        false => part.len() as u32,
                    };
                    self.pass(passed);
                }
            }
        }
    }

    /// Moves on within a record that the first message is read from.
    fn pass(&mut self, count: u32) {
        self.at = self.at.wrapping_add(count);
        self.left = self.left.saturating_sub(count);
    }

    fn header_byte(&mut self, byte: u8, record: &mut dyn FnMut(Record)) {
        if let Some(place) = self.header.get_mut(self.have) {
            *place = byte;
        }
        self.at = self.at.wrapping_add(1);
        self.have += 1;
        if self.have < HEADER_BYTES {
            return;
        }
        self.have = 0;
        let [kind, major, _, high, low] = self.header;
        let length = u16::from_be_bytes([high, low]);
        if !(FIRST_TYPE..=LAST_TYPE).contains(&kind) || major != 3 || length > MAX_BODY_BYTES {
            self.is_lost = true;
            return;
        }
        record(match kind {
            HANDSHAKE => Record::Handshake,
            APPLICATION_DATA => Record::ApplicationData,
            _ => Record::Other,
        });
        match kind == HANDSHAKE && !self.hello.is_over() {
            true => self.left = u32::from(length),
            false => self.at = self.at.wrapping_add(u32::from(length)),
        }
    }
}
