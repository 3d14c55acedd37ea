//! The hosts of one capture, two by two: which of them is on the client's side, and what became of their packets.

use plumb_model::direction::OneDirection;

use super::fingerprint::End;
use crate::packet::Address;
use crate::table::Table;

/// Pairs of hosts that are kept apart in each capture.
const MOST_PAIRS: usize = 1 << 16;
/// Packets of both directions that are so far apart at most are compared, in ns: in that time clocks drift by less than a
/// millisecond (RFC 5905, appendix A.5.5.6: 500 ppm).
const COMPARED_NS: u64 = 1_000_000_000;

/// A direction between two hosts: the number of the pair, and which of the two sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FlowId {
    pub(super) pair: u32,
    pub(super) from: u8,
}

/// The pairs of one capture.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    places: Table<(Address, Address), u32>,
    all: Vec<Pair>,
}

/// Two hosts, the lower address first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pair {
    pub(super) flows: [Flow; 2],
    /// How much more often the first host seemed to be the client's than the second.
    votes: i64,
    /// Which sent the first packet.
    first_from: u8,
}

/// What became of the packets of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flow {
    pub(super) both: u64,
    /// Packets that the other capture has not, while it ran.
    pub(super) missing: u64,
    /// The same while it did not run.
    pub(super) outside: u64,
    /// Packets that this capture has more often than the other one.
    pub(super) copies: u64,
    /// The same where no identification shows whether it is one packet or two like each other: resets, and packets of IPv6.
    pub(super) alike: u64,
    /// Packets behind one that the other capture has later.
    pub(super) late: u64,
    latest_partner_ns: u64,
    /// Of the last packet: the time of the first capture, and the clock of the second less the clock of the first with
    /// the time on the path.
    pub(super) last: Option<(u64, i64)>,
    /// The smallest and the largest such difference.
    pub(super) range_ns: Option<[i64; 2]>,
}

impl Flow {
    /// Whether what is alike was captured twice rather than sent twice: a capture of all devices, or of a mirrored port, has most
    /// packets twice.
    pub(super) fn is_captured_twice(&self) -> bool {
        self.alike * 2 > self.both
    }

    /// Counts a packet that both captures have, in this one's order, which identical packets have none of: resets and keep-alives without
    /// identification.
    pub(super) fn found(&mut self, partner_ns: u64, alone: bool) {
        self.both += 1;
        if !alone {
            return;
        }
        self.late += u64::from(partner_ns < self.latest_partner_ns);
        self.latest_partner_ns = self.latest_partner_ns.max(partner_ns);
    }
}

impl Pairs {
    /// The direction of a packet; `None` where there are too many pairs.
    pub(super) fn flow_of(&mut self, [source, destination]: [End; 2]) -> Option<FlowId> {
        let (source, destination) = (source.0, destination.0);
        let from = u8::from(source > destination);
        let key = (source.min(destination), source.max(destination));
        if self.places.len() >= MOST_PAIRS && self.places.get_mut(&key).is_none() {
            return None;
        }
        let next = self.all.len() as u32;
        let pair = *self.places.entry(key, || next)?;
        if pair == next {
            self.all.push(Pair {
                first_from: from,
                ..Pair::default()
            });
        }
        Some(FlowId { pair, from })
    }

    pub(super) fn get(&self, id: FlowId) -> Option<&Flow> {
        let pair = self.all.get(id.pair as usize)?;
        pair.flows.get(usize::from(id.from))
    }

    pub(super) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        let pair = self.all.get_mut(id.pair as usize)?;
        pair.flows.get_mut(usize::from(id.from))
    }

    /// Notes a packet that both captures have, in any order.
    pub(super) fn note(&mut self, id: FlowId, first_ns: u64, difference_ns: i64) {
        let Some(pair) = self.all.get_mut(id.pair as usize) else {
            return;
        };
        let [low, high] = &mut pair.flows;
        let (flow, opposite, sign) = match id.from {
            0 => (low, high, 1),
            _ => (high, low, -1),
        };
        flow.last = Some((first_ns, difference_ns));
        let [min, max] = flow.range_ns.unwrap_or([difference_ns; 2]);
        flow.range_ns = Some([min.min(difference_ns), max.max(difference_ns)]);
        let opposite = opposite.last;
        if let Some((_, theirs)) = opposite.filter(|(at, _)| at.abs_diff(first_ns) < COMPARED_NS) {
            // The delay up adds to the difference of the clocks, and the delay down is taken off.
            pair.votes += sign * (difference_ns > theirs) as i64;
            pair.votes -= sign * (difference_ns < theirs) as i64;
        }
    }

    /// Which way packets go, by what both directions of the pair show.
    pub(super) fn voted(&self, id: FlowId) -> Option<OneDirection> {
        let pair = self.all.get(id.pair as usize)?;
        match pair.votes {
            0 => None,
            votes => Some(up_if((votes > 0) == (id.from == 0))),
        }
    }

    /// The same of a pair of which one direction was seen alone: by the clocks, of which the second is `offset_ns` ahead at a time of the
    /// first, and else as if the client sent the first packet.
    pub(super) fn direction(
        &self,
        id: FlowId,
        offset_ns: &dyn Fn(u64) -> Option<i64>,
    ) -> OneDirection {
        if let Some(voted) = self.voted(id) {
            return voted;
        }
        let Some(pair) = self.all.get(id.pair as usize) else {
            return OneDirection::Up;
        };
        let seen = (0_u8..).zip(&pair.flows).find_map(|(from, flow)| {
            let (at, difference) = flow.last?;
            Some((from, difference > offset_ns(at)?))
        });
        match seen {
            Some((from, up)) => up_if(up == (from == id.from)),
            None => up_if(id.from == pair.first_from),
        }
    }

    /// Every direction, and what became of its packets.
    pub(super) fn flows(&self) -> impl Iterator<Item = (FlowId, &Pair, &Flow)> {
        (0_u32..).zip(&self.all).flat_map(|(pair, both)| {
            let each = (0_u8..).zip(&both.flows);
            each.map(move |(from, flow)| (FlowId { pair, from }, both, flow))
        })
    }
}

impl Pair {
    /// Whether the other capture has any of their packets.
    pub(super) fn is_matched(&self) -> bool {
        self.flows.iter().any(|flow| flow.both > 0)
    }
}

fn up_if(up: bool) -> OneDirection {
    match up {
        true => OneDirection::Up,
        false => OneDirection::Down,
    }
}
