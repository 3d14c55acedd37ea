//! A packet that is copied header by header: what is not copied explicitly is not in the copy.

use plumb_wire::checksum::Sum;

use super::addresses::Addresses;
use crate::read::Frame;

/// Headers copied of a packet, which bounds tunnels within tunnels; the analysis reads fewer.
const MOST_HEADERS: u32 = 16;

/// What is left of the original, and the copy so far.
pub(super) struct Copied<'a> {
    rest: &'a [u8],
    /// Bytes of the rest on the wire, of which not all need be captured.
    wire: u32,
    out: &'a mut Vec<u8>,
    addresses: &'a mut Addresses,
    sums: Vec<Checksum>,
    headers: u32,
    /// Bytes by which the copy is shorter on the wire.
    removed: u32,
}

/// A checksum that is to be written when all that it covers is there.
struct Checksum {
    /// Where in the copy what it covers begins; it goes to the end.
    from: usize,
    /// Where in the copy it stands.
    at: usize,
    /// The sum of the pseudo-header.
    pseudo: Sum,
    /// Whether 0 would mean that there is none (RFC 768).
    zero_is_none: bool,
}

impl<'a> Copied<'a> {
    pub(super) fn new(
        frame: &Frame<'a>,
        out: &'a mut Vec<u8>,
        addresses: &'a mut Addresses,
    ) -> Self {
        Self {
            rest: frame.bytes,
            wire: frame.original_bytes,
            out,
            addresses,
            sums: Vec::new(),
            headers: 0,
            removed: 0,
        }
    }

    /// Counts a header; `None` where there were too many.
    pub(super) fn begin_header(&mut self) -> Option<()> {
        self.headers += 1;
        (self.headers <= MOST_HEADERS).then_some(())
    }

    pub(super) fn peek<const N: usize>(&self) -> Option<[u8; N]> {
        self.rest.first_chunk().copied()
    }

    /// The next bytes, which are passed and not copied; `None` where they are not all there.
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = self.peek()?;
        self.part(N);
        Some(taken)
    }

    /// As many of the next bytes as are there, which are passed and not copied.
    pub(super) fn part(&mut self, count: usize) -> &'a [u8] {
        let (part, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        self.wire = self.wire.saturating_sub(part.len() as u32);
        part
    }

    /// Copies bytes that say nothing of people; `None` where they are not all there.
    pub(super) fn keep<const N: usize>(&mut self) -> Option<[u8; N]> {
        let kept = self.take::<N>()?;
        self.push(&kept);
        Some(kept)
    }

    /// Ends the packet after so many bytes, as its header has it: what comes after is padding.
    pub(super) fn end_after(&mut self, count: u32) {
        self.wire = self.wire.min(count);
        self.rest = self.rest.get(..count as usize).unwrap_or(self.rest);
    }

    /// Notes that a header is shorter by so many bytes than it was on the wire.
    pub(super) fn shorten(&mut self, bytes: usize) {
        self.removed = self.removed.saturating_add(bytes as u32);
    }

    pub(super) fn wire(&self) -> u32 {
        self.wire
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn push_v4(&mut self, address: [u8; 4]) -> [u8; 4] {
        let other = self.addresses.v4(address);
        self.push(&other);
        other
    }

    pub(super) fn push_v6(&mut self, address: [u8; 16]) -> [u8; 16] {
        let other = self.addresses.v6(address);
        self.push(&other);
        other
    }

    pub(super) fn push_mac(&mut self, address: [u8; 6]) {
        let other = self.addresses.mac(address);
        self.push(&other);
    }

    /// Another IPv6 network: the bits behind its prefix are zero.
    pub(super) fn push_network(&mut self, prefix: [u8; 16], bits: u8) {
        let network = self.addresses.v6_network(prefix, bits);
        self.push(&network);
    }

    /// Where in the copy the next byte goes.
    pub(super) fn place(&self) -> usize {
        self.out.len()
    }

    /// A checksum at `at` of all from `from` on.
    pub(super) fn checksum(&mut self, from: usize, at: usize, pseudo: Sum) {
        self.sums.push(Checksum {
            from,
            at,
            pseudo,
            zero_is_none: false,
        });
    }

    /// The same of UDP, where 0 means that there is none.
    pub(super) fn checksum_or_none(&mut self, from: usize, at: usize, pseudo: Sum) {
        self.sums.push(Checksum {
            from,
            at,
            pseudo,
            zero_is_none: true,
        });
    }

    /// Writes the checksum of a header that is whole.
    pub(super) fn checksum_now(&mut self, from: usize, at: usize) {
        write(
            self.out,
            &Checksum {
                from,
                at,
                pseudo: Sum::new(),
                zero_is_none: false,
            },
        );
    }

    /// Writes the checksums, the innermost first: others cover it. What was not copied counts as zeros, so that it cannot
    /// be found from them. Returns how much shorter the packet is on the wire.
    pub(super) fn finish(self) -> u32 {
        for sum in self.sums.iter().rev() {
            write(self.out, sum);
        }
        self.removed
    }
}

fn write(out: &mut [u8], sum: &Checksum) {
    let Some(field) = out.get_mut(sum.at..sum.at + 2) else {
        return;
    };
    if sum.zero_is_none && *field == [0, 0] {
        return;
    }
    field.fill(0);
    let covered = out.get(sum.from..).unwrap_or_default();
    let mut checksum = sum.pseudo.bytes(covered).checksum();
    if sum.zero_is_none && checksum == 0 {
        // Its other form (RFC 768).
        checksum = u16::MAX;
    }
    if let Some(field) = out.get_mut(sum.at..sum.at + 2) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}
