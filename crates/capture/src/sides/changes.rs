//! What the path changed of packets that both captures have.

use std::collections::{BTreeMap, HashMap};

use plumb_model::direction::OneDirection;
use plumb_model::results::capture::sides::{Changed, PathChange};
use plumb_wire::tcp_options::{FAST_OPEN, MPTCP, MSS, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE};

use super::fingerprint::{End, Summary, Syn};
use super::pairs::FlowId;
use crate::table::Seeded;

/// Changes that are kept apart; of address translation each connection has its own.
const MOST_CHANGES: usize = 1 << 14;
/// Changes of a direction that are reported.
const MOST_TOLD: usize = 50;
/// Kinds of options that fit a bit each.
const KINDS: u8 = 64;

/// What stands in a packet at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Value {
    Absent,
    Number(u64),
    End(End),
    /// What has no number of its own.
    Other,
}

type Change = (Changed, Value, Value);

/// Changes with how many packets had them, from the first capture to the second.
#[derive(Debug, Default)]
pub(super) struct Changes {
    seen: HashMap<(FlowId, Change), u64, Seeded>,
}

impl Changes {
    /// Compares a packet of the first capture with the same of the second.
    pub(super) fn note(&mut self, flow: FlowId, first: &Summary, second: &Summary) {
        let mut rewritten = false;
        for (what, place) in [(Changed::Source, 0), (Changed::Destination, 1)] {
            let end = |summary: &Summary| summary.ends.get(place).copied().map(Value::End);
            if let (Some(one), Some(two)) = (end(first), end(second)) {
                rewritten |= self.count(flow, (what, one, two));
            }
        }
        if let (Some(one), Some(two)) = (first.syn(), second.syn()) {
            rewritten |= self.syn(flow, one, two);
        }
        let differ = first
            .checksum
            .zip(second.checksum)
            .is_some_and(|(one, two)| one != two);
        let unwritten = first.unwritten || second.unwritten;
        if differ && !rewritten && !unwritten {
            // Each packet has its own, which is not reported.
            self.count(flow, (Changed::Checksum, Value::Number(0), Value::Other));
        }
        let mut bits = |what, one: u8, two: u8| {
            self.count(
                flow,
                (what, Value::Number(one.into()), Value::Number(two.into())),
            );
        };
        let (one, two) = (first.traffic_class, second.traffic_class);
        bits(Changed::Ttl, first.ttl, second.ttl);
        bits(Changed::Dscp, one >> 2, two >> 2);
        bits(Changed::Ecn, one & 3, two & 3);
    }

    /// Compares what two SYNs offer; whether anything was changed.
    fn syn(&mut self, flow: FlowId, (seq, first): (u32, Syn), (after, second): (u32, Syn)) -> bool {
        let mss = |mss: Option<u16>| mss.map_or(Value::Absent, |mss| Value::Number(mss.into()));
        let mut changed = self.count(flow, (Changed::Mss, mss(first.mss), mss(second.mss)));
        for kind in 0..KINDS {
            let of = |kinds: u64| match kinds & (1 << kind) {
                0 => Value::Absent,
                _ => Value::Number(kind.into()),
            };
            let change = (Changed::TcpOption, of(first.kinds), of(second.kinds));
            changed |= self.count(flow, change);
        }
        if seq != after {
            changed |= self.count(flow, (Changed::Sequence, Value::Number(0), Value::Other));
        }
        changed
    }

    /// Counts a packet that was changed so, where it was changed.
    fn count(&mut self, flow: FlowId, (what, one, two): Change) -> bool {
        if one == two {
            return false;
        }
        let key = (flow, (what, one, two));
        if self.seen.len() < MOST_CHANGES || self.seen.contains_key(&key) {
            *self.seen.entry(key).or_default() += 1;
        }
        true
    }

    /// All of both directions.
    pub(super) fn finish(self, direction: &dyn Fn(FlowId) -> OneDirection) -> Vec<PathChange> {
        let mut sums: BTreeMap<(OneDirection, Change), u64> = BTreeMap::new();
        for ((flow, (what, first, second)), packets) in self.seen {
            let way = direction(flow);
            let change = match (way, what) {
                // Of which the place does not matter.
                (_, Changed::Sequence | Changed::Checksum) => (what, first, second),
                (OneDirection::Up, _) => (what, first, second),
                (OneDirection::Down, _) => (what, second, first),
            };
            *sums.entry((way, change)).or_default() += packets;
        }
        let mut told = Vec::new();
        for way in [OneDirection::Up, OneDirection::Down] {
            let mut own: Vec<_> = sums.iter().filter(|((of, _), _)| *of == way).collect();
            own.sort_by_key(|((_, change), packets)| (std::cmp::Reverse(**packets), *change));
            let own = own.into_iter().take(MOST_TOLD);
            told.extend(own.map(|((_, (what, before, after)), packets)| PathChange {
                direction: way,
                what: *what,
                before: text(*what, *before),
                after: text(*what, *after),
                packets: *packets,
            }));
        }
        told
    }
}

/// As people write it.
fn text(what: Changed, value: Value) -> Option<String> {
    let number = match value {
        Value::Absent => return None,
        Value::Other => return Some("rewritten".to_owned()),
        Value::End((address, 0)) => return Some(address.to_string()),
        Value::End((address, port)) => {
            return Some(std::net::SocketAddr::new(address.ip(), port).to_string());
        }
        Value::Number(number) => number,
    };
    let named = |name: &str| Some(name.to_owned());
    match (what, number) {
        (Changed::Sequence | Changed::Checksum, _) => named("as sent"),
        // RFC 3168, section 5.
        (Changed::Ecn, 0) => named("Not-ECT"),
        (Changed::Ecn, 1) => named("ECT(1)"),
        (Changed::Ecn, 2) => named("ECT(0)"),
        (Changed::Ecn, _) => named("CE"),
        (Changed::TcpOption, kind) => match u8::try_from(kind).unwrap_or(0) {
            MSS => named("MSS"),
            WINDOW_SCALE => named("window scale"),
            SACK_PERMITTED => named("SACK permitted"),
            TIMESTAMPS => named("timestamps"),
            MPTCP => named("MPTCP"),
            FAST_OPEN => named("Fast Open"),
            kind => Some(format!("option {kind}")),
        },
        _ => Some(number.to_string()),
    }
}
