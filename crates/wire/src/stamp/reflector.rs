//! The answering side, as a state machine: what comes in and when are arguments.
//!
//! It cannot know whether a sender receives at the address that it sends from. So an answer is
//! never longer than its request, requests too short for that are not answered, and there are
//! bounds on answers a second, to each address and port and in all. An answer could be taken for a
//! request, and two reflectors would answer each other for ever: neither what comes from a
//! reflector's port is answered, nor what brings an answer of ours back (`loops.rs`).

mod loops;

use std::net::SocketAddr;
use std::time::Duration;

use super::tlv::{self, Flags, Source, Tlv};
use super::{ErrorEstimate, Key, Layout, Request, put, seal, sealed};
use crate::recent::Recent;
use loops::{Allowance, OwnAnswers};

/// Sessions that are counted at once; 4096 of them take about half a megabyte.
const MAX_SESSIONS: usize = 4096;

/// After this time without a packet a session is forgotten (RFC 5357, section 3.1: REFWAIT).
const SESSION_IDLE: Duration = Duration::from_secs(900);

/// Answers that may be given at once after a silence, in seconds of the rate: enough for the
/// first packets of several senders.
const BURST_S: f64 = 0.1;

/// The largest share of all answers for one address and port: a flood from one leaves the rest to the others.
const SHARE_OF_ONE: f64 = 0.5;

/// How the reflector numbers its answers (RFC 8762, section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// Each session from zero, so that the sender knows in which direction packets were lost.
    Stateful,
    /// As the sender did, without remembering anything.
    Stateless,
}

/// What the reflector's host says of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockState {
    /// Whether an external source sets it.
    pub synchronised: bool,
    /// How far it may be off.
    pub error: Duration,
}

/// A packet as it came.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a> {
    pub bytes: &'a [u8],
    pub from: SocketAddr,
    /// When, ns since 1970.
    pub ns: i64,
    /// DSCP that it bore, where that is known.
    pub dscp: Option<u8>,
    /// ECN that it bore, where that is known.
    pub ecn: Option<u8>,
    /// Hop limit with which it came, where that is known.
    pub hops: Option<u8>,
}

/// An answer, still without the time at which it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reflected {
    bytes: Vec<u8>,
    layout_sent: usize,
    session: Session,
    sequence: u32,
    /// DSCP to send it with; `None` where the DSCP of the request is not known.
    pub dscp: Option<u8>,
}

/// Who takes part in a session.
type Session = (SocketAddr, u16);

/// What is remembered of one.
#[derive(Debug, Default)]
struct Known {
    received: u32,
    reflected: u32,
    /// The last answer, and when it left.
    left: Option<(u32, i64)>,
}

/// What a reflector did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReflectorCounters {
    pub reflected: u64,
    /// Packets too short for an answer as short, sealed by another key or none, or from a
    /// reflector's port.
    pub refused: u64,
    /// Answers of ours that came back, as they were or as another reflector's answer to them.
    pub looped: u64,
    /// Packets above the bounds on answers.
    pub above_rate: u64,
}

#[derive(Debug)]
pub struct Reflector {
    port: u16,
    key: Option<Key>,
    counting: Counting,
    sessions: Recent<Session, Known>,
    own: OwnAnswers,
    senders: Recent<SocketAddr, Allowance>,
    rate_pps: f64,
    of_all: Allowance,
    counters: ReflectorCounters,
}

impl Reflector {
    /// A reflector on `port` that answers at most `rate_pps` packets a second: those sealed by
    /// `key`, or all where there is none.
    pub fn new(port: u16, key: Option<Key>, counting: Counting, rate_pps: u32) -> Self {
        let rate_pps = f64::from(rate_pps);
        Self {
            port,
            key,
            counting,
            sessions: Recent::new(MAX_SESSIONS, SESSION_IDLE),
            own: OwnAnswers::new(rate_pps),
            senders: Recent::new(MAX_SESSIONS, SESSION_IDLE),
            rate_pps,
            of_all: Allowance::default(),
            counters: ReflectorCounters::default(),
        }
    }

    /// What it did so far.
    pub fn counters(&self) -> ReflectorCounters {
        self.counters
    }

    /// The answer to a packet, as long as it, or `None` when there is to be none. `now` is a time
    /// since any fixed origin that never goes back.
    pub fn reflect(
        &mut self,
        now: Duration,
        clock: ClockState,
        arrived: &Arrived<'_>,
    ) -> Option<Reflected> {
        let from_reflector = [super::PORT, self.port].contains(&arrived.from.port());
        let request = Request::parse(arrived.bytes, self.key.as_ref());
        let Some(request) = request.filter(|_| !from_reflector) else {
            self.counters.refused += 1;
            return None;
        };
        let layout = Layout::of(self.key.as_ref());
        if self.own.come_back_in(arrived.bytes, layout) {
            self.counters.looped += 1;
            return None;
        }
        if !self.may_answer(now, arrived.from) {
            self.counters.above_rate += 1;
            return None;
        }
        self.counters.reflected += 1;
        let session = (arrived.from, request.session);
        let known = self.sessions.at(now, session);
        let counted = known.received;
        known.received = known.received.wrapping_add(1);
        known.reflected = known.reflected.wrapping_add(1);
        let sequence = match self.counting {
            Counting::Stateful => counted,
            Counting::Stateless => request.sequence,
        };
        let mut bytes = arrived.bytes.to_vec();
        write_head(&mut bytes, layout, sequence, clock, arrived);
        let mut reflected = Reflected {
            bytes,
            layout_sent: layout.sent,
            session,
            sequence,
            dscp: arrived.dscp,
        };
        let head_bytes = layout.end.min(reflected.bytes.len());
        let (_, parts) = reflected.bytes.split_at_mut(head_bytes);
        let asked = answer_parts(parts, &request, clock, arrived, known, self.key.as_ref());
        if let Some(key) = &self.key {
            reseal_parts(parts, sequence, key);
        }
        reflected.dscp = asked.or(reflected.dscp);
        Some(reflected)
    }

    /// The bytes of an answer that leaves now; the last thing before it does.
    pub fn depart(&mut self, reflected: &mut Reflected, ns: i64) -> Vec<u8> {
        put(
            &mut reflected.bytes,
            reflected.layout_sent,
            super::TimeFormat::Ntp.write(ns),
        );
        if let Some(key) = &self.key {
            seal(&mut reflected.bytes, key);
        }
        self.own
            .remember(&reflected.bytes, Layout::of(self.key.as_ref()));
        std::mem::take(&mut reflected.bytes)
    }

    /// An answer really left then: what the next one of its session says in a follow-up.
    pub fn departed(&mut self, reflected: &Reflected, ns: i64) {
        if let Some(known) = self.sessions.get_mut(&reflected.session) {
            known.left = Some((reflected.sequence, ns));
        }
    }

    /// Whether there is an answer left for that sender, which is then taken. With a key, no attacker can forge a packet
    /// that begins a loop.
    fn may_answer(&mut self, now: Duration, from: SocketAddr) -> bool {
        let of_one_pps = self.rate_pps * SHARE_OF_ONE;
        let sender = self.senders.at(now, from);
        sender.take(now, of_one_pps, BURST_S, self.key.is_none())
            && self.of_all.take(now, self.rate_pps, BURST_S, false)
    }
}

/// Fills in the reflector's fields over the sender's.
fn write_head(
    bytes: &mut [u8],
    layout: Layout,
    sequence: u32,
    clock: ClockState,
    arrived: &Arrived<'_>,
) {
    let original = arrived.bytes;
    let copy = |bytes: &mut [u8], from: usize, to: usize, length: usize| {
        if let (Some(place), Some(value)) = (
            bytes.get_mut(to..to + length),
            original.get(from..from + length),
        ) {
            place.copy_from_slice(value);
        }
    };
    // All between the fields is zero, also where the sender had something else there.
    if let Some(rest) = bytes.get_mut(layout.session + 2..layout.end.min(original.len())) {
        rest.fill(0);
    }
    copy(bytes, 0, layout.echoed_sequence, 4);
    copy(bytes, layout.sent, layout.echoed_sent, 8);
    copy(bytes, layout.error, layout.echoed_error, 2);
    put(bytes, 0, sequence.to_be_bytes());
    let error = ErrorEstimate::new(clock.synchronised, clock.error);
    put(bytes, layout.error, error.write());
    put(bytes, layout.received, error.format.write(arrived.ns));
    put(bytes, layout.hops, [arrived.hops.unwrap_or(u8::MAX)]);
}

/// Answers the optional parts in place; gives the DSCP that the sender asked for.
fn answer_parts(
    parts: &mut [u8],
    request: &Request,
    clock: ClockState,
    arrived: &Arrived<'_>,
    known: &Known,
    key: Option<&Key>,
) -> Option<u8> {
    let placed: Vec<_> = tlv::read(parts, request.error.format).collect();
    let unverified = key.is_some_and(|key| !sealed(parts, &placed, request.sequence, key));
    let mut asked = None;
    for part in placed {
        let answer = part.tlv.as_ref().map(|tlv| match tlv {
            // What cannot be trusted is sent back as it came (RFC 8972, section 4.8).
            _ if unverified => Some(tlv.clone()),
            tlv if tlv.is_hmac() => key.map(|_| tlv.clone()),
            tlv => answer_part(tlv, clock, arrived, known),
        });
        if let (false, Some(Tlv::ClassOfService { wanted_dscp, .. })) = (unverified, &part.tlv) {
            asked = Some(*wanted_dscp);
        }
        let flags = Flags {
            unrecognised: matches!(answer, Some(None)),
            malformed: answer.is_none(),
            unverified,
        };
        tlv::replace(parts, part.offset, flags, answer.flatten().as_ref());
    }
    asked
}

/// The answer to one part; `None` to one that is not known here.
fn answer_part(tlv: &Tlv, clock: ClockState, arrived: &Arrived<'_>, known: &Known) -> Option<Tlv> {
    Some(match tlv {
        Tlv::ExtraPadding(_) => tlv.clone(),
        Tlv::TimestampInformation { .. } => {
            // The kernel reports whether the clock is synchronised, but not by which source.
            let source = if clock.synchronised {
                Source::Ntp
            } else {
                Source::Free
            };
            Tlv::TimestampInformation {
                receive: (source, tlv::SOFTWARE),
                send: (source, tlv::SOFTWARE),
            }
        }
        Tlv::ClassOfService { wanted_dscp, .. } => Tlv::ClassOfService {
            wanted_dscp: *wanted_dscp,
            received_dscp: arrived.dscp.unwrap_or(0),
            received_ecn: arrived.ecn.unwrap_or(0),
            refused: false,
        },
        Tlv::DirectMeasurement { sent, .. } => Tlv::DirectMeasurement {
            sent: *sent,
            received: known.received,
            reflected: known.reflected,
        },
        Tlv::FollowUp { .. } => {
            let (sequence, sent_ns) = known.left.unwrap_or_default();
            Tlv::FollowUp {
                sequence,
                sent_ns,
                method: if known.left.is_some() {
                    tlv::SOFTWARE
                } else {
                    0
                },
            }
        }
        Tlv::Other { .. } => return None,
    })
}

/// Writes the HMAC over the parts anew, where it fitted before.
fn reseal_parts(parts: &mut [u8], sequence: u32, key: &Key) {
    let last = tlv::read(parts, super::TimeFormat::Ntp).last();
    let Some(last) =
        last.filter(|last| !last.flags.unverified && last.tlv.as_ref().is_some_and(Tlv::is_hmac))
    else {
        return;
    };
    let covered = parts.get(..last.offset).unwrap_or_default();
    let tag = key.tag(&[&sequence.to_be_bytes(), covered]);
    tlv::replace(parts, last.offset, Flags::default(), Some(&Tlv::hmac(tag)));
}

#[cfg(test)]
mod tests;
