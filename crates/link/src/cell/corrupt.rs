//! Corruption: one bit of what some packets carry is wrong.

use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::packet::Packet;
use crate::random::Random;
use crate::ratio::Ratio;
use crate::segment::{self, Crossing};
use crate::settings::Settings;
use crate::time::Time;

/// `{ type = "corrupt", ratio = "0.1%" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorruptSpec {
    /// The probability that a bit of a packet is flipped.
    pub ratio: Ratio,
}

impl Settings for CorruptSpec {}

/// The cell. It flips any bit after the IP header, so that the packet arrives and its transport checksum fails. A UDP
/// datagram without a checksum is delivered corrupt.
pub(crate) struct Corrupt {
    spec: CorruptSpec,
    random: Random,
}

impl Corrupt {
    pub(crate) fn new(spec: CorruptSpec, seed: u64) -> Self {
        Self {
            spec,
            random: Random::new(seed),
        }
    }

    /// Flips a bit; `false` when there is nothing behind the header.
    fn flip(&mut self, packet: &mut Packet) -> bool {
        // A receiver does not verify a checksum that is still to be completed.
        segment::finalise_checksum(packet);
        let header = usize::from(packet.layout.ip_header);
        let Some(payload) = packet.data.get_mut(header..) else {
            return false;
        };
        let bit = self.random.below(payload.len() * 8);
        let Some(byte) = payload.get_mut(bit / 8) else {
            return false;
        };
        *byte ^= 1 << (bit % 8);
        true
    }
}

impl Filter for Corrupt {
    type Spec = CorruptSpec;
    const CROSSING: Crossing = Crossing::Split;

    fn pass(&mut self, _: Time, mut packet: Packet, out: &mut Outlet<'_>) {
        let chosen = !packet.is_link_multicast() && self.random.chance(self.spec.ratio.value());
        if chosen && self.flip(&mut packet) {
            out.forward_changed(packet);
        } else {
            out.forward(packet);
        }
    }

    fn reconfigure(&mut self, _: Time, spec: CorruptSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::{ACK, tcp, udp};
    use crate::spec::CellSpec;
    use plumb_wire::checksum;
    use plumb_wire::ip::{IpPacket, TCP};
    use plumb_wire::virtio::VirtioHeader;
    use proptest::prelude::*;

    fn corrupted(ratio: &str, packet: Packet) -> (Vec<Packet>, u64) {
        let spec = CellSpec::from_pairs("corrupt", &[("ratio", ratio)]).unwrap();
        let mut cell = spec.build(3, Time::ZERO).own();
        cell.enqueue(Time::ZERO, packet);
        let out = std::iter::from_fn(|| cell.dequeue(Time::ZERO));
        let out = out.map(|(_, packet)| packet).collect();
        (out, cell.stats(Time::ZERO, "corrupt").changed)
    }

    fn bits_changed(before: &[u8], after: &[u8]) -> u32 {
        let pairs = before.iter().zip(after);
        pairs.map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    #[test]
    fn one_bit_behind_the_header() {
        let before = udp(1000, 1, 0);
        for _ in 0..100 {
            let (out, changed) = corrupted("100%", before.clone());
            let after = &out.first().unwrap().data;
            assert_eq!((bits_changed(&before.data, after), changed), (1, 1));
            assert_eq!(after.get(..20), before.data.get(..20));
        }
        let (out, changed) = corrupted("0", before.clone());
        assert_eq!((&out.first().unwrap().data, changed), (&before.data, 0));
        // A header alone has nothing to flip.
        let (out, changed) = corrupted("100%", udp(20, 1, 0));
        assert_eq!((out.len(), changed), (1, 0));
    }

    #[test]
    fn the_receiver_can_tell() {
        let (out, changed) = corrupted("100%", tcp(false, 3 * 1448, 1448, ACK));
        assert_eq!((out.len(), changed), (3, 3));
        for packet in out {
            assert!(!packet.vnet.needs_csum);
            let ip = IpPacket::parse(&packet.data).unwrap();
            let length = ip.payload().len() as u32;
            let sum = checksum::pseudo_header(ip.source(), ip.destination(), TCP, length);
            assert_ne!(sum.bytes(ip.payload()).checksum(), 0);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_packets_do_not_panic(
            data in proptest::collection::vec(any::<u8>(), 0..200),
            header in proptest::array::uniform10(any::<u8>()),
        ) {
            let vnet = VirtioHeader::parse(&header).unwrap_or_default();
            let (out, _) = corrupted("100%", Packet::new(data, vnet, Time::ZERO));
            prop_assert!(!out.is_empty());
        }
    }
}
