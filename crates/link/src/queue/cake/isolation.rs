//! Flow isolation: what a flow is, and over which hosts its share is divided (tc-cake(8),
//! "Flow isolation parameters").

use plumb_wire::ip::IpPacket;
use serde::{Deserialize, Serialize};

use crate::flow_hash::{host_hash, reseeded};
use crate::packet::Packet;

/// What gets a fair share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Nothing: one queue a tin.
    Flowblind,
    Srchost,
    Dsthost,
    Hosts,
    Flows,
    /// Source addresses, and then the flows of each.
    DualSrchost,
    /// Destination addresses, and then the flows of each.
    DualDsthost,
    /// Source and destination addresses, whichever has more flows, and then flows.
    #[default]
    TripleIsolate,
}

/// The hashes by which a packet finds its queue and its hosts; zero for what is no IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Hashes {
    pub(super) flow: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
}

impl Isolation {
    /// Whether the flows of a source address share its share.
    pub(super) fn divides_source(self) -> bool {
        matches!(self, Self::DualSrchost | Self::TripleIsolate)
    }

    /// Whether the flows of a destination address share its share.
    pub(super) fn divides_destination(self) -> bool {
        matches!(self, Self::DualDsthost | Self::TripleIsolate)
    }

    /// `ip` is what the packet is; `None` when it is no IP.
    pub(super) fn hashes(self, packet: &Packet, ip: Option<&IpPacket<'_>>, seed: u64) -> Hashes {
        let Some(ip) = ip else {
            return Hashes::default();
        };
        let source = host_hash(ip.source(), seed) as u32;
        // Another hash, or a pair of the same address would hash to zero.
        let destination = host_hash(ip.destination(), seed ^ 1) as u32;
        let flow = match self {
            Self::Flowblind => 0,
            Self::Srchost => source,
            Self::Dsthost => destination,
            Self::Hosts => source ^ destination,
            Self::Flows | Self::DualSrchost | Self::DualDsthost | Self::TripleIsolate => {
                reseeded(packet.flow_hash, seed) as u32
            }
        };
        Hashes {
            flow,
            source,
            destination,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::udp;

    /// Of four packets (two flows of a pair of hosts, another source, another destination): how
    /// many flows they are.
    fn flows(isolation: Isolation) -> Vec<usize> {
        let packets = [(1, 1, 2), (2, 1, 2), (1, 7, 2), (1, 1, 8)].map(|(port, from, to)| {
            let mut packet = udp(100, port, 0);
            (packet.data[15], packet.data[19]) = (from, to);
            Packet::new(packet.data.clone(), packet.vnet, packet.arrived)
        });
        let hashes = packets.map(|packet| {
            let ip = IpPacket::parse(&packet.data);
            isolation.hashes(&packet, ip.as_ref(), 5).flow
        });
        hashes
            .iter()
            .map(|hash| hashes.iter().position(|other| other == hash).unwrap())
            .collect()
    }

    #[test]
    fn what_a_flow_is() {
        assert_eq!(flows(Isolation::Flowblind), [0, 0, 0, 0]);
        assert_eq!(flows(Isolation::Srchost), [0, 0, 2, 0]);
        assert_eq!(flows(Isolation::Dsthost), [0, 0, 0, 3]);
        assert_eq!(flows(Isolation::Hosts), [0, 0, 2, 3]);
        for isolation in [
            Isolation::Flows,
            Isolation::DualSrchost,
            Isolation::DualDsthost,
            Isolation::TripleIsolate,
        ] {
            assert_eq!(flows(isolation), [0, 1, 2, 3]);
        }
        assert_eq!(
            Isolation::Flows.hashes(&udp(100, 1, 0), None, 5),
            Hashes::default()
        );
    }
}
