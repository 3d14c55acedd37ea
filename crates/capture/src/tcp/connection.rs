//! One TCP connection, followed segment by segment: a state machine that is fed with segments and their times.

use std::cell::Cell;

use super::class::{Seen, classify};
use super::classes::{Came, Class, Classes};
use super::congestion::{Heard, Held};
use super::half::Half;
use super::nanos::Nanos;
use super::samples::Samples;
use super::sequence::{Noted, at_most, before};
use super::spent::{CLIENT, Next, SERVER, Side, Spent, State};
use crate::packet::{Network, Segment, flags};
use crate::tls::Tls;

/// ECN field of a packet that was marked (RFC 3168, section 5).
const CE: u8 = 0b11;

#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) client: Half,
    pub(super) server: Half,
    pub(super) established: bool,
    /// Whether its SYN was captured.
    pub(super) begun: bool,
    syn_ns: Nanos,
    pub(super) handshake_ns: Nanos,
    pub(super) reset: Option<Side>,
    pub(super) refused: bool,
    // Who sent payload last, and how that left things.
    sender: Option<Side>,
    emptied: bool,
    window_full: bool,
    sent_ns: u64,
    reaction_ns: u64,
    pub(super) turns: u64,
    pub(super) spent: Spent,
    pub(super) think: Samples,
    pub(super) icmp_errors: u64,
    /// Its handshake of TLS, if it begins with one.
    pub(super) tls: Option<Box<Tls>>,
    /// Its place in the order in which connections began.
    pub(crate) number: u32,
    /// Where its graph is, if it has one.
    pub(crate) slot: Cell<u16>,
}

impl Connection {
    /// The connection that a segment begins, the `number`th from 0 on; `reuses` where one between the same ports was there
    /// before.
    pub(crate) fn new(now: u64, reuses: bool, number: u32) -> Self {
        let mut client = Half::default();
        if reuses {
            client.segments.get_or_insert_default().ports_reused = 1;
        }
        Self {
            first_ns: now,
            last_ns: now,
            client,
            server: Half::default(),
            established: false,
            begun: false,
            syn_ns: Nanos::default(),
            handshake_ns: Nanos::default(),
            reset: None,
            refused: false,
            sender: None,
            emptied: false,
            window_full: false,
            sent_ns: now,
            reaction_ns: now,
            turns: 0,
            spent: Spent::default(),
            think: Samples::default(),
            icmp_errors: 0,
            tls: None,
            number,
            slot: Cell::new(0),
        }
    }

    /// Whether the source of a segment is the client, by the segment that is seen first: who sends a SYN alone, or whose
    /// port is higher.
    pub(crate) fn is_from_client(segment: &Segment<'_>) -> bool {
        let [source, destination] = segment.ports;
        match (segment.has(flags::SYN), segment.has(flags::ACK)) {
            (true, acknowledges) => !acknowledges,
            _ => source >= destination,
        }
    }

    /// Whether a segment opens another connection than this one.
    pub(crate) fn is_replaced_by(&self, from: Side, segment: &Segment<'_>) -> bool {
        let own = match from {
            CLIENT => &self.client,
            _ => &self.server,
        };
        let opens = segment.has(flags::SYN) && !segment.has(flags::ACK);
        opens && own.begun && (from == SERVER || !self.begun || own.isn != segment.seq)
    }

    /// Whether it is over: nothing but retransmissions can come.
    pub(crate) fn is_over(&self) -> bool {
        self.reset.is_some() || (self.client.finished && self.server.finished)
    }

    /// When its first packet came.
    pub(crate) fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// When its latest packet came.
    pub(crate) fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Notes an error by ICMP about it.
    pub(crate) fn error(&mut self) {
        self.icmp_errors += 1;
    }

    /// The latest round trips to both sides, as far as they are known.
    pub(crate) fn latest_rtt_ns(&self) -> Option<u64> {
        let known = [self.client.latest_ns, self.server.latest_ns];
        known
            .into_iter()
            .filter_map(Nanos::get)
            .reduce(u64::saturating_add)
    }

    /// Segments of both sides that carried what was sent before.
    pub(crate) fn repeated(&self) -> u64 {
        let sides = [&self.client, &self.server];
        let counted = sides.iter().filter_map(|side| side.segments.as_ref());
        counted.map(|segments| segments.repeated()).sum()
    }

    /// Payload of both directions, without retransmissions, in bytes.
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.client.news + self.server.news
    }

    /// Takes in a segment that a side sent. Times may run backwards, and count as standing still then.
    #[inline]
    pub(crate) fn segment(
        &mut self,
        from: Side,
        segment: &Segment<'_>,
        network: &Network,
        now: u64,
        wire_bytes: u32,
    ) -> Came {
        let now = now.max(self.last_ns);
        self.spent.pass(&self.state(), self.last_ns, now);
        self.last_ns = now;
        let round_trip = self.round_trip();
        let (own, other) = match from {
            CLIENT => (&mut self.client, &mut self.server),
            _ => (&mut self.server, &mut self.client),
        };
        own.packets += 1;
        own.wire_bytes += u64::from(wire_bytes);
        header(own, network);
        if segment.has(flags::SYN) {
            handshake(own, other, segment);
            if !segment.has(flags::ACK) {
                self.begun = true;
                self.syn_ns = Nanos::known(self.syn_ns.get().unwrap_or(now));
            }
        }
        let news = selective(own, other, segment, now);
        let to_sender_ns = own.nearest_ns.get().unwrap_or_default();
        let seen = Seen {
            segment,
            now,
            rtt_ns: round_trip,
            to_sender_ns,
            news,
            ident: network.ident,
        };
        let mut classes = classify(own, other, &seen);
        let was_in_flight = other.in_flight(own) > 0;
        let rtt_ns = acknowledge(own, other, segment, now, &mut classes);
        own.sent(segment, classes, network.ident, now);
        if let Some([value, echo]) = segment.options.timestamps() {
            if segment.has(flags::ACK)
                && let Some(echo) = other.echoed(echo, now)
            {
                own.nearer(echo.ns);
                if echo.payload {
                    other.by_timestamps.add(echo.ns);
                    own.latest_ns = Nanos::known(echo.ns);
                }
                if let Some(congestion) = &mut own.congestion {
                    congestion.heard = Heard {
                        ack: echo.ack,
                        ns: echo.first_ns,
                    };
                }
            }
            own.stamp(value, segment, now);
        }
        own.allow(segment, now, round_trip.unwrap_or_default());
        own.max_in_flight = own.max_in_flight.max(own.in_flight(other));
        if classes.any() {
            classes.count(own.segments.get_or_insert_default());
        }
        own.last = classes;
        // An acknowledgement of all that was on its way: the other side's next data is due a round trip to it later.
        if was_in_flight && other.in_flight(own) == 0 {
            self.reaction_ns = now + other.nearest_ns.get().unwrap_or_default();
        }
        self.advance(from, segment, classes, now);
        if !segment.payload.is_empty() {
            self.tls(from, segment, now);
        }
        Came { classes, rtt_ns }
    }

    /// What came of a segment for the connection as a whole.
    #[inline]
    fn advance(&mut self, from: Side, segment: &Segment<'_>, classes: Classes, now: u64) {
        if !self.established {
            self.establish(from, segment, now);
        }
        if segment.has(flags::RST) {
            self.refused |= !self.established && from == SERVER;
            self.reset.get_or_insert(from);
        }
        let ends = segment.has(flags::FIN);
        if segment.payload_bytes == 0 && !ends || classes.has(Class::KeepAlive) {
            return;
        }
        let (own, other) = match from {
            CLIENT => (&self.client, &self.server),
            _ => (&self.server, &self.client),
        };
        let answered_ns = self.sent_ns + own.nearest_ns.get().unwrap_or_default();
        if classes.repeats() || classes.has(Class::OutOfOrder) {
            self.spent.resolve(self.sender, Next::Repeated, answered_ns);
            // What is repeated was not all: the path holds what comes after it.
            self.emptied &= own.in_flight(other) == 0;
            if classes.repeats() && segment.payload_bytes > 0 {
                self.congested(from, segment, None, now);
            }
            return;
        }
        self.spent
            .resolve(self.sender, Next::Data(from), answered_ns);
        if segment.payload_bytes == 0 {
            return;
        }
        if from == SERVER && self.sender == Some(CLIENT) {
            self.turns += 1;
            self.think.add(now.saturating_sub(answered_ns));
        }
        let full = own.full_segment(other);
        let held = match self.sender == Some(from) && !self.emptied {
            true if self.window_full => Held::Receiver,
            true => Held::CongestionWindow,
            false => Held::Application,
        };
        self.sender = Some(from);
        self.sent_ns = now;
        self.reaction_ns = now;
        let known = now.saturating_sub(own.nearest_ns.get().unwrap_or_default());
        let room = other
            .edge_at(known)
            .map(|edge| edge.wrapping_sub(segment.end()) as i32);
        self.window_full = room.is_some_and(|room| room < full as i32);
        // A short segment that is to be handed on was all there was, unless the window cut it short.
        let short = segment.has(flags::PSH) && !segment.payload_bytes.is_multiple_of(full);
        self.emptied = short && !self.window_full;
        let own = match from {
            CLIENT => &mut self.client,
            _ => &mut self.server,
        };
        if own.initial_until.get().is_none_or(|until| now < until) {
            own.initial_bytes += u64::from(segment.payload_bytes);
        }
        self.congested(from, segment, Some(held), now);
    }

    /// What a segment with payload shows of its sender's congestion window.
    #[inline]
    fn congested(&mut self, from: Side, segment: &Segment<'_>, held: Option<Held>, now: u64) {
        match from {
            CLIENT => self.client.congested(&self.server, segment, held, now),
            _ => self.server.congested(&self.client, segment, held, now),
        }
    }

    /// Reads the handshake of TLS, where the client's first bytes begin one.
    #[inline]
    fn tls(&mut self, from: Side, segment: &Segment<'_>, now: u64) {
        if self.tls.is_none() {
            let first = self.client.isn.wrapping_add(1);
            let is_first = from == CLIENT && self.client.offer.is_some() && segment.seq == first;
            if !is_first || !Tls::begins(segment.payload) {
                return;
            }
            let server = self.server.offer.map(|_| self.server.isn.wrapping_add(1));
            self.tls = Some(Box::new(Tls::new(first, server, now)));
        }
        if let Some(tls) = &mut self.tls {
            tls.segment(from == CLIENT, segment, now);
        }
    }

    fn establish(&mut self, from: Side, segment: &Segment<'_>, now: u64) {
        if segment.has(flags::SYN | flags::RST) {
            return;
        }
        // The client's answer to the SYN-ACK; or a connection that was there before the capture.
        let answers = self.server.begun && from == CLIENT;
        if !self.begun || answers {
            self.established = true;
            if let (true, Some(syn)) = (self.server.offer.is_some(), self.syn_ns.get()) {
                self.handshake_ns = Nanos::known(now.saturating_sub(syn));
            }
        }
    }

    #[inline]
    fn state(&self) -> State {
        let (own, other) = match self.sender {
            Some(SERVER) => (&self.server, &self.client),
            _ => (&self.client, &self.server),
        };
        State {
            established: self.established,
            sender: self.sender,
            emptied: self.emptied,
            window_full: self.window_full,
            window_zero: other.acks && other.window == 0,
            in_flight: own.in_flight(other) > 0,
            reaction_ns: self.reaction_ns,
        }
    }

    /// The shortest full round trip, where both parts of it were seen.
    #[inline]
    fn round_trip(&self) -> Option<u64> {
        Some(self.client.nearest_ns.get()? + self.server.nearest_ns.get()?)
    }
}

/// What the header of IP shows.
#[inline]
fn header(own: &mut Half, network: &Network) {
    let ecn = network.traffic_class & CE;
    own.ce += u64::from(ecn == CE);
    own.ecn |= ecn != 0;
    own.dscps.add(network.traffic_class >> 2);
    own.ttls.add(network.ttl);
}

/// What a SYN offers; both windows are scaled where both sides offer it (RFC 7323, section 2.2).
fn handshake(own: &mut Half, other: &mut Half, segment: &Segment<'_>) {
    own.syns += 1;
    let wanted = match segment.has(flags::ACK) {
        // The answer sets ECE alone (RFC 3168, section 6.1.1).
        true => segment.flags & (flags::ECE | flags::CWR) == flags::ECE,
        false => segment.flags & (flags::ECE | flags::CWR) == flags::ECE | flags::CWR,
    };
    let offer = segment.options.offer(wanted);
    own.offer = Some(offer);
    let scales = (
        offer.window_scale,
        other.offer.map(|other| other.window_scale),
    );
    match scales {
        (Some(own_scale), Some(Some(other_scale))) => {
            own.scale = Some(own_scale);
            other.scale = Some(other_scale);
        }
        (None, _) | (_, Some(None)) => {
            own.scale = Some(0);
            other.scale = Some(0);
        }
        (Some(_), None) => {}
    }
}

/// Selective acknowledgements of a segment; whether one is new.
#[inline]
fn selective(own: &mut Half, other: &Half, segment: &Segment<'_>, now: u64) -> bool {
    let mut news = false;
    let mut first = None;
    for (index, (start, end)) in segment.options.sack().enumerate() {
        // A first block below what is acknowledged, or within the second, is of a segment that came twice (RFC 2883).
        let twice = match index {
            0 => at_most(end, segment.ack),
            1 => first.is_some_and(|(s, e)| at_most(start, s) && at_most(e, end)),
            _ => false,
        };
        own.dsacks += u32::from(twice);
        first = first.or(Some((start, end)));
        if before(segment.ack, end) && at_most(end, other.next) {
            news |= own.sacked.add(start, end, Noted { ns: now, ident: 0 });
        }
    }
    news
}

/// What a segment of `own` acknowledges; the round trip that it ended.
#[inline]
fn acknowledge(
    own: &mut Half,
    other: &mut Half,
    segment: &Segment<'_>,
    now: u64,
    classes: &mut Classes,
) -> Option<u64> {
    if !segment.has(flags::ACK) || segment.has(flags::RST) {
        return None;
    }
    let ack = segment.ack;
    if !other.begun {
        // Nothing of the other side was captured yet: it had sent this much.
        other.begun = true;
        other.next = ack;
        other.isn = ack.wrapping_sub(1);
    }
    if before(other.next, ack) {
        classes.add(Class::AckedUnseen);
        other.missed += u64::from(ack.wrapping_sub(other.next));
        other.next = ack;
    }
    let missed = other.gaps.pass(ack);
    if missed > 0 {
        classes.add(Class::AckedUnseen);
        other.missed += u64::from(missed);
    }
    if classes.has(Class::DuplicateAck) {
        own.duplicates += 1;
        own.acked_ns = now;
    }
    if own.acks && !before(own.acked, ack) {
        return None;
    }
    own.acks = true;
    own.acked = ack;
    own.acked_ns = now;
    own.duplicates = 0;
    own.sacked.pass(ack);
    if let Some(congestion) = &mut other.congestion {
        congestion.acknowledged(now);
    }
    let rtt_ns = other.acknowledged(ack, now);
    if let Some(ns) = rtt_ns {
        other.by_sequence.add(ns);
        own.nearer(ns);
        own.latest_ns = Nanos::known(ns);
    }
    if other.initial_until.get().is_none() && other.initial_bytes > 0 {
        other.initial_until = Nanos::known(now + other.nearest_ns.get().unwrap_or_default());
    }
    rtt_ns
}

#[cfg(test)]
#[path = "connection/tests.rs"]
mod tests;
