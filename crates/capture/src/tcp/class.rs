//! What a segment is, in the terms of Wireshark's TCP analysis (its `tcp_analyze_sequence_number`). Where the rules
//! differ, and why, is listed in kb/capture.md.

use super::classes::{Class, Classes};
use super::half::Half;
use super::sequence::{at_most, before};
use crate::packet::{Segment, flags};

/// A retransmission so soon after the last duplicate acknowledgement is an answer to it (Wireshark's 20 ms), as seen at the
/// sender; elsewhere the way from the sender comes on top.
const FAST_WITHIN_NS: u64 = 20_000_000;
/// A segment that fills a gap sooner than this was overtaken, where the round-trip time is unknown (Wireshark's 3 ms).
const OVERTAKEN_WITHIN_NS: u64 = 3_000_000;
/// Duplicate acknowledgements from which on a retransmission is a fast one: Wireshark's rule, since the capture may lack one
/// of the three that RFC 5681 asks for.
const DUPLICATES: u32 = 2;

/// A segment that is to be classed.
pub(super) struct Seen<'a, 'b> {
    pub(super) segment: &'a Segment<'b>,
    pub(super) now: u64,
    /// Shortest full round trip of the connection in nanoseconds, where it is known.
    pub(super) rtt_ns: Option<u64>,
    /// Shortest time in nanoseconds from the place of the capture to the sender of this segment and back.
    pub(super) to_sender_ns: u64,
    /// Whether it selectively acknowledges what was not before.
    pub(super) news: bool,
    /// Identification of its packet.
    pub(super) ident: u16,
}

/// What a segment of `own` is, while `other` is as it was before. Gaps that it fills are closed.
#[inline]
pub(super) fn classify(own: &mut Half, other: &Half, seen: &Seen<'_, '_>) -> Classes {
    let segment = seen.segment;
    let mut classes = Classes::default();
    let plain = !segment.has(flags::SYN | flags::FIN | flags::RST);
    if own.begun && segment.payload_bytes > 0 {
        // The plain case first: the next data, into a window that is wide enough.
        data(own, other, segment, plain, &mut classes);
    } else if own.begun {
        bare(own, other, seen, plain, &mut classes);
    }
    let advances = !own.begun || !before(segment.seq, own.next);
    if !advances && segment.length() > 0 && !classes.has(Class::KeepAlive) {
        classes.add(repeated(own, other, seen));
    }
    classes
}

#[inline]
fn data(own: &Half, other: &Half, segment: &Segment<'_>, plain: bool, classes: &mut Classes) {
    if segment.payload_bytes == 1 && segment.seq == own.next && other.window == 0 && other.acks {
        classes.add(Class::ZeroWindowProbe);
        return;
    }
    if segment.window == 0 && plain {
        classes.add(Class::ZeroWindow);
    }
    if before(own.next, segment.seq) && !segment.has(flags::RST) {
        classes.add(Class::Lost);
    }
    if segment.payload_bytes == 1 && segment.seq == own.next.wrapping_sub(1) && plain {
        classes.add(Class::KeepAlive);
    }
    if plain && other.edge() == Some(segment.end()) {
        classes.add(Class::WindowFull);
    }
}

/// Of a segment without payload.
#[inline]
fn bare(own: &Half, other: &Half, seen: &Seen<'_, '_>, plain: bool, classes: &mut Classes) {
    let segment = seen.segment;
    if !plain {
        if before(own.next, segment.seq) && !segment.has(flags::RST) {
            classes.add(Class::Lost);
        }
        return;
    }
    let (window, same_window) = (segment.window, segment.window == own.window);
    if window == 0 {
        classes.add(Class::ZeroWindow);
    }
    if before(own.next, segment.seq) {
        classes.add(Class::Lost);
    }
    if segment.seq == own.next.wrapping_sub(1) {
        classes.add(Class::KeepAlive);
    }
    let repeats_ack = own.acks && segment.ack == own.acked && segment.seq == own.next;
    if window == 0 {
        let probed = own.acks && segment.seq == own.next && same_window;
        let answered = segment.ack == own.acked || segment.ack == own.acked.wrapping_add(1);
        if probed && answered && other.last.has(Class::ZeroWindowProbe) {
            classes.add(Class::ZeroWindowProbeAck);
        }
    } else if repeats_ack && same_window && other.last.has(Class::KeepAlive) {
        classes.add(Class::KeepAliveAck);
    } else if repeats_ack && (same_window || seen.news) {
        classes.add(Class::DuplicateAck);
    } else if repeats_ack {
        classes.add(Class::WindowUpdate);
    }
}

/// Of a segment that begins before what was sent already.
fn repeated(own: &mut Half, other: &Half, seen: &Seen<'_, '_>) -> Class {
    let segment = seen.segment;
    let (start, end) = (segment.seq, segment.end());
    let (filled, since) = own.gaps.take(start, end);
    own.news += u64::from(filled);
    // A sender learns of a gap from the far end, a round trip later at the soonest; with a tenth for delays that vary.
    let soonest = seen.rtt_ns.map_or(OVERTAKEN_WITHIN_NS, |rtt| rtt / 10 * 9);
    let overtaken = since.is_some_and(|since| {
        let soon = seen.now.saturating_sub(since.ns) < soonest;
        own.idents.precedes(seen.ident, since.ident).unwrap_or(soon)
    });
    if filled > 0 && overtaken {
        return Class::OutOfOrder;
    }
    if filled == 0 && other.acks && segment.payload_bytes > 0 && at_most(end, other.acked) {
        return Class::Spurious;
    }
    let since_duplicate = seen.now.saturating_sub(other.acked_ns);
    let missing = other.acked == start
        || other
            .sacked
            .end()
            .is_some_and(|last| before(start, last) && !other.sacked.has(start));
    if other.duplicates >= DUPLICATES
        && missing
        && since_duplicate < FAST_WITHIN_NS + seen.to_sender_ns
    {
        return Class::Fast;
    }
    Class::Retransmission
}
