//! One side of a connection: the sequence space of what it sends, and what it acknowledges of the other side's.

use plumb_model::results::capture::{Offer, SegmentCounts};

use super::classes::{Class, Classes};
use super::congestion::{Congestion, Heard, Held, Sent};
use super::idents::Idents;
use super::nanos::Nanos;
use super::queue::Queue;
use super::samples::Samples;
use super::seen::Values;
use super::sequence::{Noted, Ranges, at_most, before, later};
use crate::packet::{Segment, flags};

/// Segments and timestamps that wait for their echo; when there are more, the oldest give no sample.
const MOST_WAITING: usize = 16_384;
const MOST_STAMPS: usize = 1024;
/// Right edges of windows kept, at least a sixteenth of the round trip apart: enough for two round trips.
const MOST_EDGES: usize = 32;
const EDGES_PER_RTT: u64 = 16;
/// Silence from which on a retransmission is one after a timeout: Linux's shortest (TCP_RTO_MIN, 200 ms), less a tenth for
/// timers that run early.
const TIMEOUT_NS: u64 = 180_000_000;
/// The largest segment where no maximum was announced (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u32 = 536;
/// A capture is at the sender, and in its order of things, where the round trip to it is so small a part of the whole one.
const AT_SENDER: u64 = 8;
/// What a sender takes at most to answer an acknowledgement with data: a part of the round trip, and in nanoseconds for how
/// long Linux gathers data for a large segment (its TSO autosizing, 1 ms), and as much for the clock of timestamps.
const ANSWERS_PER_RTT: u64 = 8;
const ANSWER_NS: u64 = 2_000_000;
/// Bytes of the timestamps option, with its padding.
const TIMESTAMPS_BYTES: u32 = 12;

/// A segment that waits to be acknowledged.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    end: u32,
    ns: u64,
}

/// A timestamp that waits to be echoed.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    value: u32,
    /// What its segments acknowledge.
    ack: u32,
    ns: u64,
    /// Whether the first of them had payload.
    payload: bool,
}

/// An echo of a timestamp.
#[derive(Debug, Clone, Copy)]
pub(super) struct Echo {
    /// How long ago the timestamp was sent.
    pub(super) ns: u64,
    /// What who echoes it knew to be acknowledged.
    pub(super) ack: u32,
    pub(super) payload: bool,
    /// When the first timestamp was sent that it had not echoed before.
    pub(super) first_ns: u64,
}

/// One side of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Half {
    // What it sent.
    pub(super) packets: u64,
    pub(super) wire_bytes: u64,
    pub(super) sent_bytes: u64,
    /// Payload that was not sent before.
    pub(super) news: u64,
    /// None where each of its segments was plain.
    pub(super) segments: Option<Box<SegmentCounts>>,
    pub(super) timeouts: u32,
    pub(super) syns: u32,
    pub(super) largest: u32,
    pub(super) offer: Option<Offer>,
    /// Its initial sequence number; where no SYN was captured, the one before the first that was seen.
    pub(super) isn: u32,
    /// Whether a sequence number of it is known, and the highest one.
    pub(super) begun: bool,
    pub(super) next: u32,
    pub(super) finished: bool,
    /// What was jumped over and did not come.
    pub(super) gaps: Ranges,
    pub(super) missed: u64,
    pub(super) data_ns: Option<[u64; 2]>,
    pub(super) last: Classes,
    pub(super) idents: Idents,
    // What it acknowledged.
    pub(super) acks: bool,
    pub(super) acked: u32,
    pub(super) acked_ns: u64,
    pub(super) duplicates: u32,
    pub(super) sacked: Ranges,
    pub(super) dsacks: u32,
    pub(super) window: u16,
    /// Power of two of its windows; unknown where its SYN was not captured.
    pub(super) scale: Option<u8>,
    edges: Queue<(u64, u32)>,
    pub(super) windows: Option<[u32; 2]>,
    // Round trips to it and back.
    pub(super) by_sequence: Samples,
    pub(super) by_timestamps: Samples,
    pub(super) nearest_ns: Nanos,
    pub(super) latest_ns: Nanos,
    // What it sent and waits for.
    waiting: Queue<Waiting>,
    /// Up to here acknowledgements are ambiguous (Karn's rule), since something was repeated.
    ambiguous: Option<u32>,
    stamps: Queue<Stamp>,
    /// None before its first full segment.
    pub(super) congestion: Option<Box<Congestion>>,
    pub(super) max_in_flight: u32,
    pub(super) initial_bytes: u64,
    pub(super) initial_until: Nanos,
    pub(super) ce: u64,
    pub(super) ecn: bool,
    pub(super) dscps: Values,
    pub(super) ttls: Values,
}

impl Half {
    /// The sequence number behind the window that it allows, where its scale is known.
    #[inline]
    pub(super) fn edge(&self) -> Option<u32> {
        self.edges.back().map(|(_, edge)| *edge)
    }

    /// The same as it was known by a time.
    pub(super) fn edge_at(&self, ns: u64) -> Option<u32> {
        let mut known = self.edges.iter().rev();
        let at = known.find(|(since, _)| *since <= ns);
        at.or(self.edges.front()).map(|(_, edge)| *edge)
    }

    /// Bytes that it sent and the other side has not acknowledged, in order or not.
    #[inline]
    pub(super) fn in_flight(&self, other: &Half) -> u32 {
        if !self.begun || !other.acks || !before(other.acked, self.next) {
            return 0;
        }
        self.next
            .wrapping_sub(other.acked)
            .saturating_sub(other.sacked.total())
    }

    /// The payload of a full segment in bytes: by the offered segment sizes, or else by the largest segment seen.
    pub(super) fn full_segment(&self, other: &Half) -> u32 {
        match other.offer {
            Some(offer) => {
                let mss = offer.mss_bytes.map_or(DEFAULT_MSS, u32::from);
                let own = self
                    .offer
                    .and_then(|own| own.mss_bytes)
                    .map_or(mss, u32::from);
                let options = if self.has_stamps(other) {
                    TIMESTAMPS_BYTES
                } else {
                    0
                };
                mss.min(own).saturating_sub(options).max(1)
            }
            None => self.largest.clamp(1, 1460),
        }
    }

    /// Notes what a segment of this side adds to its sequence space; `repeats` when nothing is to be learnt of its
    /// acknowledgement.
    #[inline]
    pub(super) fn sent(&mut self, segment: &Segment<'_>, classes: Classes, ident: u16, now: u64) {
        let end = segment.end();
        if segment.has(flags::SYN) {
            self.isn = segment.seq;
        }
        if segment.payload_bytes > 0 {
            self.sent_bytes += u64::from(segment.payload_bytes);
            self.largest = self.largest.max(segment.payload_bytes);
            let silent_since = self.data_ns.map(|[_, last]| last);
            let silence = now.saturating_sub(silent_since.unwrap_or(now));
            self.timeouts += u32::from(classes.has(Class::Retransmission) && silence >= TIMEOUT_NS);
            self.data_ns = Some([self.data_ns.map_or(now, |[first, _]| first), now]);
        }
        if !self.begun {
            self.begun = true;
            self.next = end;
            if !segment.has(flags::SYN) {
                self.isn = segment.seq.wrapping_sub(1);
            }
            self.news += u64::from(segment.payload_bytes);
            if segment.length() > 0 {
                self.wait_for(end, now);
            }
        } else if before(self.next, end)
            && !classes.has(Class::ZeroWindowProbe)
            && !segment.has(flags::RST)
        {
            if before(self.next, segment.seq) {
                self.gaps
                    .add(self.next, segment.seq, Noted { ns: now, ident });
            }
            let fresh = end.wrapping_sub(later(self.next, segment.seq));
            self.news += u64::from(fresh.min(segment.payload_bytes));
            self.next = end;
            if segment.length() > 0 {
                self.wait_for(end, now);
                self.idents.sent(ident);
            }
        }
        if classes.repeats() || classes.has(Class::OutOfOrder) {
            self.ambiguous = Some(self.next);
        }
        self.finished |= segment.has(flags::FIN);
    }

    #[inline]
    fn wait_for(&mut self, end: u32, now: u64) {
        self.waiting.push(Waiting { end, ns: now }, MOST_WAITING);
    }

    /// Notes the timestamp of a segment that it sent, and what that acknowledges.
    #[inline]
    pub(super) fn stamp(&mut self, value: u32, segment: &Segment<'_>, now: u64) {
        match self.stamps.back_mut() {
            Some(last) if last.value == value => {
                last.ack = later(last.ack, segment.ack);
                return;
            }
            Some(last) if !before(last.value, value) => return,
            _ => {}
        }
        let stamp = Stamp {
            value,
            ack: segment.ack,
            ns: now,
            payload: segment.length() > 0,
        };
        self.stamps.push(stamp, MOST_STAMPS);
    }

    /// The other side echoed a timestamp, the first time.
    #[inline]
    pub(super) fn echoed(&mut self, echo: u32, now: u64) -> Option<Echo> {
        let mut found = None;
        let first_ns = self.stamps.front().map_or(now, |stamp| stamp.ns);
        // Ends when the rest is later: each turn takes one away.
        while let Some(stamp) = self.stamps.take_if(|stamp| at_most(stamp.value, echo)) {
            if stamp.value == echo {
                found = Some(Echo {
                    ns: now.saturating_sub(stamp.ns),
                    ack: stamp.ack,
                    payload: stamp.payload,
                    first_ns,
                });
            }
        }
        found
    }

    /// Takes in for its congestion window that it sent a segment with payload, and what had held it back before; it repeats
    /// what was sent where nothing is said of that.
    #[inline]
    pub(super) fn congested(
        &mut self,
        other: &Half,
        segment: &Segment<'_>,
        held: Option<Held>,
        now: u64,
    ) {
        let Some(heard) = self.heard(other, now).filter(|_| other.acks) else {
            return;
        };
        let end = self.next;
        let Some(held) = held else {
            if let Some(congestion) = &mut self.congestion {
                congestion.repeated(now, end, heard.ack);
            }
            return;
        };
        let round_trip = self.nearest_ns.get().zip(other.nearest_ns.get());
        let slack_ns = round_trip.map_or(u64::MAX, |(own, other)| {
            ((own + other) / ANSWERS_PER_RTT).max(ANSWER_NS)
        });
        let waited_ns = now.saturating_sub(heard.ns);
        let sent = Sent {
            now,
            end,
            heard,
            waited_ns: waited_ns.saturating_sub(self.nearest_ns.get().unwrap_or_default()),
            slack_ns,
            held,
            has_gaps: other.sacked.total() > 0,
        };
        if let Some(congestion) = &mut self.congestion {
            congestion.data(&sent);
        } else if segment.payload_bytes >= self.full_segment(other) {
            self.congestion = Some(Box::new(Congestion::new(&sent)));
        }
    }

    /// What it knew to be acknowledged when it sent its latest segment: at its own end of the path all that the capture has
    /// seen, and elsewhere what came with the timestamp that it echoed.
    fn heard(&self, other: &Half, now: u64) -> Option<Heard> {
        let at_sender = self
            .nearest_ns
            .get()
            .zip(other.nearest_ns.get())
            .is_some_and(|(own, other)| own.saturating_mul(AT_SENDER) <= own + other);
        let congestion = self.congestion.as_deref();
        let unanswered_ns = congestion.and_then(Congestion::unanswered_ns);
        let latest = Heard {
            ack: other.acked,
            ns: unanswered_ns.unwrap_or(now),
        };
        if at_sender {
            return Some(latest);
        }
        let heard = congestion.map(|all| all.heard);
        self.has_stamps(other).then(|| heard.unwrap_or(latest))
    }

    fn has_stamps(&self, other: &Half) -> bool {
        let offers = [self.offer, other.offer];
        offers
            .iter()
            .all(|offer| offer.is_some_and(|offer| offer.timestamps))
    }

    /// The other side acknowledged up to a number; how long ago the last segment before it was sent, where that says
    /// something.
    #[inline]
    pub(super) fn acknowledged(&mut self, ack: u32, now: u64) -> Option<u64> {
        let mut last = None;
        // Ends when the rest is later: each turn takes one away.
        while let Some(waiting) = self.waiting.take_if(|waiting| at_most(waiting.end, ack)) {
            last = Some(waiting);
        }
        let last = last?;
        match self.ambiguous {
            Some(until) if at_most(last.end, until) => return None,
            _ => self.ambiguous = None,
        }
        Some(now.saturating_sub(last.ns))
    }

    /// Notes the window that a segment of this side allows.
    #[inline]
    pub(super) fn allow(&mut self, segment: &Segment<'_>, now: u64, round_trip_ns: u64) {
        self.window = segment.window;
        let Some(scale) = self.scale else {
            return;
        };
        // The window of a SYN is never scaled (RFC 7323, section 2.2).
        let scale = if segment.has(flags::SYN) { 0 } else { scale };
        let bytes = u32::from(segment.window) << scale;
        if !segment.has(flags::SYN) {
            let [least, most] = self.windows.unwrap_or([bytes, bytes]);
            self.windows = Some([least.min(bytes), most.max(bytes)]);
        }
        let edge = segment.ack.wrapping_add(bytes);
        if self.edge() == Some(edge) {
            return;
        }
        let apart = round_trip_ns / EDGES_PER_RTT;
        let before = self.edges.iter().rev().nth(1);
        let close = before.is_some_and(|(since, _)| now.saturating_sub(*since) < apart);
        match self.edges.back_mut() {
            // The newest always counts; in between, one for each sixteenth of the round trip.
            Some(newest) if close => *newest = (now, edge),
            _ => self.edges.push((now, edge), MOST_EDGES),
        }
    }

    /// Takes a round trip to this side as the shortest, if it is.
    #[inline]
    pub(super) fn nearer(&mut self, ns: u64) {
        let nearest_ns = self.nearest_ns.get();
        self.nearest_ns = Nanos::known(nearest_ns.map_or(ns, |nearest| nearest.min(ns)));
    }
}
