//! What happened to each flow in a chain, and which hosts sent and received it.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::net::IpAddr;

use hdrhistogram::Histogram;
use plumb_model::vocabulary::Vocabulary as _;
use plumb_wire::ip::{FlowKey, IpPacket};

use crate::packet::{FlowNumber, Packet};
use crate::stats::{Count, DropCause, FlowStats, HostStats, Transit};

/// Most flows that are counted separately (36 MB when all are busy); later ones are counted together.
const MOST_FLOWS: usize = 1000;
/// Significant decimal digits of a flow's transit quantiles: 1 % in a tenth of the memory of
/// the chain's own.
const DIGITS: u8 = 2;

/// The longest transit that is resolved, in nanoseconds: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// The flows of a chain.
#[derive(Debug)]
pub(crate) struct FlowTable {
    /// By the hash of 64 bits that packets bring along: two of a thousand flows share one once
    /// in 10¹³ tables.
    numbers: HashMap<u64, FlowNumber, BuildHasherDefault<Ready>>,
    /// The first is everything that has no number of its own.
    flows: Vec<Flow>,
}

/// Passes on a hash unchanged.
#[derive(Default)]
struct Ready(u64);

impl Hasher for Ready {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Debug)]
struct Flow {
    key: Option<FlowKey>,
    offered: Count,
    delivered: Count,
    dropped: [u64; DropCause::WORDS.len()],
    marked: u64,
    transit: Option<Histogram<u32>>,
}

impl Flow {
    fn new(key: Option<FlowKey>) -> Self {
        Self {
            key,
            offered: Count::default(),
            delivered: Count::default(),
            dropped: [0; DropCause::WORDS.len()],
            marked: 0,
            transit: Histogram::new(DIGITS).ok(),
        }
    }

    fn transit(&self) -> Option<Transit> {
        let histogram = self.transit.as_ref().filter(|h| !h.is_empty())?;
        let seconds = |ns: u64| ns as f64 / 1e9;
        Some(Transit {
            min: seconds(histogram.min()),
            p50: seconds(histogram.value_at_quantile(0.50)),
            p95: seconds(histogram.value_at_quantile(0.95)),
            p99: seconds(histogram.value_at_quantile(0.99)),
            max: seconds(histogram.max()),
        })
    }
}

impl FlowTable {
    pub(crate) fn new() -> Self {
        Self {
            numbers: HashMap::default(),
            flows: vec![Flow::new(None)],
        }
    }

    /// Counts a packet that comes in.
    pub(crate) fn enter(&mut self, packet: &Packet) -> FlowNumber {
        let number = self
            .numbers
            .get(&packet.flow_hash)
            .copied()
            .unwrap_or_else(|| self.admit(packet));
        if let Some(flow) = self.flows.get_mut(number.0 as usize) {
            flow.offered += Count::of(packet);
        }
        number
    }

    fn admit(&mut self, packet: &Packet) -> FlowNumber {
        match IpPacket::parse(&packet.data) {
            Some(ip) if self.flows.len() <= MOST_FLOWS => {
                let number = FlowNumber(self.flows.len() as u32);
                self.flows.push(Flow::new(Some(ip.flow())));
                self.numbers.insert(packet.flow_hash, number);
                number
            }
            _ => FlowNumber(0),
        }
    }

    /// Counts a packet that leaves after `transit_ns`.
    pub(crate) fn leave(&mut self, packet: &Packet, transit_ns: u64) {
        let Some(flow) = self.flows.get_mut(packet.flow.0 as usize) else {
            return;
        };
        let packets = packet.segments();
        flow.delivered += Count::of(packet);
        if packet.marked {
            flow.marked += u64::from(packets);
        }
        if let Some(histogram) = &mut flow.transit {
            // It grows with the longest time; an hour is beyond any link.
            let _ = histogram.record_n(transit_ns.clamp(1, LONGEST_NS), packets);
        }
    }

    /// Counts packets that were dropped.
    pub(crate) fn lose(&mut self, flow: FlowNumber, cause: DropCause, packets: u64) {
        let counter = self
            .flows
            .get_mut(flow.0 as usize)
            .and_then(|flow| flow.dropped.get_mut(cause as usize));
        if let Some(counter) = counter {
            *counter += packets;
        }
    }

    /// Which flow this is; `None` for those without a number of their own.
    pub(crate) fn key(&self, flow: FlowNumber) -> Option<FlowKey> {
        self.flows.get(flow.0 as usize)?.key
    }

    /// All that were seen, in the order of their first packet; those without a number of
    /// their own come first.
    pub(crate) fn stats(&self) -> Vec<FlowStats> {
        let seen = self.flows.iter().filter(|flow| flow.offered.packets > 0);
        seen.map(|flow| FlowStats {
            source: flow.key.map(|key| key.source),
            destination: flow.key.map(|key| key.destination),
            protocol: flow.key.map_or(0, |key| key.protocol),
            source_port: flow.key.map_or(0, |key| key.source_port),
            destination_port: flow.key.map_or(0, |key| key.destination_port),
            offered: flow.offered,
            delivered: flow.delivered,
            dropped: DropCause::WORDS
                .iter()
                .zip(flow.dropped)
                .filter(|(_, count)| *count > 0)
                .map(|((_, word), count)| ((*word).to_owned(), count))
                .collect(),
            marked: flow.marked,
            transit_s: flow.transit(),
        })
        .collect()
    }

    /// The hosts of all flows that have a number of their own.
    pub(crate) fn hosts(&self) -> BTreeMap<IpAddr, HostStats> {
        let mut hosts: BTreeMap<IpAddr, HostStats> = BTreeMap::new();
        for (key, flow) in self.flows.iter().filter_map(|f| Some((f.key?, f))) {
            let source = hosts.entry(key.source).or_default();
            source.sent += flow.offered;
            source.sent_delivered += flow.delivered;
            hosts.entry(key.destination).or_default().received += flow.delivered;
        }
        hosts
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::udp;

    #[test]
    fn flows_beyond_the_bound_are_counted_together() {
        let mut table = FlowTable::new();
        let count = MOST_FLOWS as u16 + 5;
        for port in 1..=count {
            let mut packet = udp(100, port, 0);
            packet.flow = table.enter(&packet);
            table.leave(&packet, 1_000_000);
        }
        let stats = table.stats();
        assert_eq!(stats.len(), MOST_FLOWS + 1);
        assert_eq!((stats[0].source, stats[0].delivered.packets), (None, 5));
        assert_eq!((stats[1].source_port, stats[1].delivered.packets), (1, 1));
        let p95 = stats[1].transit_s.unwrap().p95;
        assert!((p95 - 0.001).abs() < 1e-5, "{p95}");
        assert_eq!(table.hosts().len(), 2);
    }
}
