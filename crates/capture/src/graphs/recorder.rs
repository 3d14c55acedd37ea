//! One connection over time.

use plumb_model::results::capture::{CongestionPhase, ConnectionGraph, HalfGraph, PhaseChange};

use super::bins::{Bin, Bins};
use crate::followed::Followed;
use crate::packet::flags;
use crate::tcp::{Class, Side};

const NS_PER_S: f64 = 1e9;
/// Phases that are kept of a direction.
const MOST_PHASES: usize = 200;

/// One direction within a bin.
#[derive(Debug, Default)]
struct HalfBin {
    sent: Option<u64>,
    acked: Option<u64>,
    allowed: Option<u64>,
    wire_bytes: u64,
    payload_bytes: u64,
    retransmissions: u32,
    sacks: u32,
    zero_windows: u32,
    rtt_ns: Option<[u64; 2]>,
    max_in_flight: Option<u32>,
    min_window: Option<u32>,
    congestion: Option<u32>,
}

impl HalfBin {
    fn join(&mut self, next: Self) {
        self.sent = self.sent.max(next.sent);
        self.acked = self.acked.max(next.acked);
        self.allowed = self.allowed.max(next.allowed);
        self.wire_bytes += next.wire_bytes;
        self.payload_bytes += next.payload_bytes;
        self.retransmissions += next.retransmissions;
        self.sacks += next.sacks;
        self.zero_windows += next.zero_windows;
        if let Some([least, most]) = next.rtt_ns {
            self.round_trip(least);
            self.round_trip(most);
        }
        self.max_in_flight = self.max_in_flight.max(next.max_in_flight);
        self.congestion = next.congestion.or(self.congestion);
        if let Some(window) = next.min_window {
            self.window(window);
        }
    }

    fn round_trip(&mut self, ns: u64) {
        let [least, most] = self.rtt_ns.unwrap_or([ns, ns]);
        self.rtt_ns = Some([least.min(ns), most.max(ns)]);
    }

    fn window(&mut self, bytes: u32) {
        self.min_window = Some(self.min_window.map_or(bytes, |least| least.min(bytes)));
    }
}

/// Both directions within a bin, by the side that sends.
#[derive(Debug, Default)]
struct Both([HalfBin; 2]);

impl Bin for Both {
    fn join(&mut self, next: Self) {
        for (half, more) in self.0.iter_mut().zip(next.0) {
            half.join(more);
        }
    }
}

/// What is known of the numbers of one side, counted on beyond 32 bits.
#[derive(Debug, Clone, Copy, Default)]
struct Highest {
    sent: Option<u64>,
    acked: Option<u64>,
    allowed: Option<u64>,
    news_bytes: u64,
}

/// The values of one connection.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) connection: u32,
    highest: [Highest; 2],
    /// When phases began, in the order of their coming.
    phases: [Vec<(u64, CongestionPhase)>; 2],
    bins: Bins<Both>,
}

impl Recorder {
    pub(super) fn new(connection: u32, now: u64) -> Self {
        Self {
            connection,
            highest: [Highest::default(); 2],
            phases: [const { Vec::new() }; 2],
            bins: Bins::new(now),
        }
    }

    /// Payload in bytes so far, of both directions.
    pub(super) fn weight(&self) -> u64 {
        self.highest.iter().map(|side| side.news_bytes).sum()
    }

    /// Takes in a segment.
    #[inline]
    pub(super) fn add(&mut self, followed: &Followed<'_>) {
        let segment = followed.segment;
        self.phase(followed);
        let Some(Both(halves)) = self.bins.at(followed.steady_ns) else {
            return;
        };
        let (Some([own, other]), Some([mine, its])) = (
            ordered(halves, followed.from),
            ordered(&mut self.highest, followed.from),
        ) else {
            return;
        };
        let news = followed.view.news_bytes;
        own.wire_bytes += u64::from(followed.wire_bytes);
        let fresh = news.saturating_sub(mine.news_bytes);
        own.payload_bytes += fresh.min(u64::from(segment.payload_bytes));
        mine.news_bytes = news;
        let [sent, due] = followed.view.in_flight_bytes;
        let classes = followed.classes;
        if segment.length() > 0 {
            raise(
                &mut mine.sent,
                followed.sequence().wrapping_add(segment.length()),
            );
            own.sent = mine.sent;
            own.max_in_flight = own.max_in_flight.max(Some(sent));
            own.congestion = followed.view.congestion_bytes.or(own.congestion);
            own.retransmissions += u32::from(classes.repeats());
        }
        if !segment.has(flags::ACK) || segment.has(flags::RST) {
            return;
        }
        raise(&mut its.acked, followed.of_other(segment.ack));
        other.acked = its.acked;
        if due > 0 || other.max_in_flight.is_some() {
            other.max_in_flight = other.max_in_flight.max(Some(due));
        }
        other.sacks += u32::from(segment.options.sack().next().is_some());
        other.zero_windows += u32::from(classes.has(Class::ZeroWindow));
        if let Some(window) = followed.view.window_bytes {
            raise(
                &mut its.allowed,
                followed.of_other(segment.ack.wrapping_add(window)),
            );
            other.allowed = its.allowed;
            other.window(window);
        }
        if let Some(ns) = followed.rtt_ns {
            other.round_trip(ns);
        }
    }

    #[inline]
    fn phase(&mut self, followed: &Followed<'_>) {
        let phases = self.phases.get_mut(followed.from);
        if let (Some(phases), Some(phase)) = (phases, followed.view.phase)
            && phases.last() != Some(&phase)
            && phases.len() < MOST_PHASES
        {
            phases.push(phase);
        }
    }

    /// The values in bins; times count from `began_ns`.
    pub(super) fn graph(&self, began_ns: u64) -> ConnectionGraph {
        let dense = self.bins.dense();
        let half = |side: Side| {
            let news = self
                .highest
                .get(side)
                .is_some_and(|side| side.news_bytes > 0);
            let bins: Vec<Option<&HalfBin>> = dense
                .iter()
                .map(|bin| bin.and_then(|Both(halves)| halves.get(side)))
                .collect();
            let phases = self.phases.get(side).into_iter().flatten();
            let phases = phases.map(|(ns, phase)| PhaseChange {
                at_s: ns.saturating_sub(began_ns) as f64 / NS_PER_S,
                phase: *phase,
            });
            news.then(|| HalfGraph {
                phases: phases.collect(),
                ..columns(&bins)
            })
        };
        ConnectionGraph {
            connection: 0,
            at_s: self.bins.begin_ns().saturating_sub(began_ns) as f64 / NS_PER_S,
            bin_s: self.bins.bin_ns() as f64 / NS_PER_S,
            up: half(0),
            down: half(1),
        }
    }
}

/// Both sides, the one that sends first.
fn ordered<T>(pair: &mut [T; 2], from: Side) -> Option<[&mut T; 2]> {
    let [client, server] = pair;
    match from {
        0 => Some([client, server]),
        1 => Some([server, client]),
        _ => None,
    }
}

/// Takes a number of 32 bits as the one that is nearest to the highest so far.
fn raise(highest: &mut Option<u64>, number: u32) {
    let so_far = highest.unwrap_or(u64::from(number));
    let further = number.wrapping_sub(so_far as u32) as i32;
    *highest = Some(so_far + u64::try_from(further).unwrap_or(0));
}

fn columns(bins: &[Option<&HalfBin>]) -> HalfGraph {
    let number = |of: fn(&HalfBin) -> Option<u64>| bins.iter().map(|b| b.and_then(of)).collect();
    let count = |of: fn(&HalfBin) -> u64| bins.iter().map(|b| b.map_or(0, of)).collect();
    let time = |of: fn([u64; 2]) -> u64| {
        let each = bins.iter().map(|b| b.and_then(|b| b.rtt_ns));
        each.map(|ns| ns.map(|ns| of(ns) as f64 / NS_PER_S))
            .collect()
    };
    HalfGraph {
        sent_bytes: number(|b| b.sent),
        acked_bytes: number(|b| b.acked),
        allowed_bytes: number(|b| b.allowed),
        wire_bytes: count(|b| b.wire_bytes),
        payload_bytes: count(|b| b.payload_bytes),
        retransmissions: count(|b| u64::from(b.retransmissions)),
        sacks: count(|b| u64::from(b.sacks)),
        zero_windows: count(|b| u64::from(b.zero_windows)),
        min_rtt_s: time(|[least, _]| least),
        max_rtt_s: time(|[_, most]| most),
        max_in_flight_bytes: number(|b| b.max_in_flight.map(u64::from)),
        min_window_bytes: number(|b| b.min_window.map(u64::from)),
        congestion_window_bytes: number(|b| b.congestion.map(u64::from)),
        phases: Vec::new(),
    }
}
