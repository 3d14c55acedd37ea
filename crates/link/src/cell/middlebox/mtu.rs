//! A line that takes only small packets, between others that take larger ones: a tunnel, PPPoE.
//!
//! A large TCP segment counts by its segments. A packet above the MTU is fragmented if it is IPv4 without "don't
//! fragment" (RFC 791 section 3.2, RFC 1812 section 5.2.6), or dropped in silence with `fragment = false`. Any other is
//! dropped, and its sender gets an ICMP error (RFC 1191, RFC 8201). With `icmp = false` it gets none: a black hole (RFC
//! 2923 section 2.1). IPv6 hosts need not go below 1280 bytes (RFC 8200 section 5).
//!
//! The error leaves this cell backwards at once: it meets no cell of the other direction.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use plumb_wire::fragment::fragment;
use plumb_wire::ip::IpPacket;
use plumb_wire::too_big::too_big;
use plumb_wire::virtio::VirtioHeader;
use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::packet::Packet;
use crate::segment::{self, Crossing};
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::time::Time;

/// `{ type = "mtu", bytes = 1400 }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MtuSpec {
    /// IP bytes of the largest packet that passes.
    pub bytes: u16,
    /// Whether senders get an ICMP error.
    #[serde(default = "yes")]
    pub icmp: bool,
    /// Whether packets are fragmented that may be.
    #[serde(default = "yes")]
    pub fragment: bool,
    /// Where errors come from; the address of the link's far end, or else the destination of the
    /// packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Ipv4Addr>,
    /// The same for IPv6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_v6: Option<Ipv6Addr>,
}

fn yes() -> bool {
    true
}

/// The least that every IPv4 line takes (RFC 791 section 3.2).
const LEAST_BYTES: u16 = 68;

impl Settings for MtuSpec {
    fn check(&self) -> Result<(), String> {
        if self.bytes < LEAST_BYTES {
            return Err(format!(
                "bytes = {} is less than IP needs: write at least {LEAST_BYTES}",
                self.bytes
            ));
        }
        Ok(())
    }
}

impl MtuSpec {
    /// Fills in the addresses that were not given.
    pub(crate) fn settle(&mut self, far_end: &[IpAddr]) {
        for address in far_end {
            match address {
                IpAddr::V4(address) => self.from = self.from.or(Some(*address)),
                IpAddr::V6(address) => self.from_v6 = self.from_v6.or(Some(*address)),
            }
        }
    }

    fn sender_of_errors(&self, destination: IpAddr) -> IpAddr {
        match destination {
            IpAddr::V4(address) => self.from.unwrap_or(address).into(),
            IpAddr::V6(address) => self.from_v6.unwrap_or(address).into(),
        }
    }
}

pub(crate) struct Mtu {
    spec: MtuSpec,
}

impl Mtu {
    pub(crate) fn new(spec: MtuSpec) -> Self {
        Self { spec }
    }

    /// A packet of the wire that is too large.
    fn refuse(&self, now: Time, mut packet: Packet, out: &mut Outlet<'_>) {
        // The checksum is seen in reassembled fragments, and in what an ICMP error quotes.
        segment::finalise_checksum(&mut packet);
        if self.spec.fragment
            && let Some(fragments) = fragment(&packet.data, usize::from(self.spec.bytes))
        {
            out.forward_fragments(&packet, fragments);
            return;
        }
        if self.spec.icmp
            && let Some(ip) = IpPacket::parse(&packet.data).filter(IpPacket::dont_fragment)
            && let from = self.spec.sender_of_errors(ip.destination())
            && let Some(error) = too_big(&packet.data, self.spec.bytes, from)
        {
            out.reply(Packet::new(error, VirtioHeader::default(), now));
        }
        out.drop(DropCause::TooBig, &packet);
    }
}

impl Filter for Mtu {
    type Spec = MtuSpec;
    const CROSSING: Crossing = Crossing::Whole;
    const REPLIES: bool = true;

    fn pass(&mut self, now: Time, packet: Packet, out: &mut Outlet<'_>) {
        let most = u64::from(self.spec.bytes);
        if packet.segment_ip_bytes() <= most {
            out.forward(packet);
            return;
        }
        for single in segment::split(packet, 1) {
            if single.ip_bytes() <= most {
                out.forward(single);
            } else {
                self.refuse(now, single, out);
            }
        }
    }

    fn reconfigure(&mut self, _: Time, spec: MtuSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::cell::Cell;
    use crate::packet::tests::{ACK, ipv4_header, tcp, udp};
    use crate::spec::AnyCell;
    use crate::spec::CellSpec;
    use plumb_wire::checksum::{checksum, pseudo_header};
    use plumb_wire::ip::{TCP, UDP};

    fn cell(pairs: &[(&str, &str)]) -> Box<dyn AnyCell> {
        CellSpec::from_pairs("mtu", pairs)
            .unwrap()
            .build(1, Time::ZERO)
            .own()
    }

    /// The packets forwarded and the packets sent back.
    fn pass(cell: &mut dyn Cell, packet: Packet) -> (Vec<Packet>, Vec<Packet>) {
        cell.enqueue(Time::ZERO, packet);
        std::iter::from_fn(|| cell.dequeue(Time::ZERO))
            .map(|(_, packet)| packet)
            .partition(|packet| !packet.back)
    }

    /// UDP that may be cut up.
    fn fragile(len: usize) -> Packet {
        let mut data = ipv4_header(len, UDP, 0);
        data[6] = 0;
        data[10..12].fill(0);
        let sum = checksum(&data);
        data[10..12].copy_from_slice(&sum.to_be_bytes());
        data.extend([0, 1, 0, 9]);
        data.resize(len, 7);
        Packet::new(data, VirtioHeader::default(), Time::ZERO)
    }

    #[test]
    fn the_largest_passes_and_one_byte_more_does_not() {
        let mut cell = cell(&[("bytes", "1400")]);
        let (on, back) = pass(cell.as_mut(), udp(1400, 1, 0));
        assert_eq!((on.len(), back.len()), (1, 0));
        let (on, back) = pass(cell.as_mut(), udp(1401, 1, 0));
        assert_eq!((on.len(), back.len()), (0, 1));
        // Without another address it comes from where the packet was going.
        let ip = IpPacket::parse(&back[0].data).unwrap();
        assert_eq!(ip.source().to_string(), "10.0.0.2");
        assert_eq!(ip.destination().to_string(), "10.0.0.1");
        assert_eq!(ip.icmp_type(), Some((3, 4)));
        assert_eq!(back[0].data[26..28], 1400u16.to_be_bytes());
        let stats = cell.stats(Time::ZERO, "mtu");
        assert_eq!((stats.dropped["too_big"], stats.replied), (1, 1));
    }

    #[test]
    fn large_segments_count_by_their_segments() {
        let mut cell = cell(&[("bytes", "1400"), ("from", "10.9.9.9")]);
        let (on, back) = pass(cell.as_mut(), tcp(false, 20_000, 1348, ACK));
        assert_eq!((on.len(), on[0].segments(), back.len()), (1, 15, 0));
        // Three of 1401 bytes, and a last one that fits.
        let (on, back) = pass(cell.as_mut(), tcp(false, 3 * 1349 + 100, 1349, ACK));
        assert_eq!(
            (on.len(), on[0].tcp_payload_bytes(), back.len()),
            (1, 100, 3)
        );
        for (number, error) in back.iter().enumerate() {
            let ip = IpPacket::parse(&error.data).unwrap();
            assert_eq!(ip.source().to_string(), "10.9.9.9");
            assert_eq!(checksum(ip.payload()), 0);
            // It quotes the segment as it would have been on the wire.
            let quoted = IpPacket::parse(&error.data[28..]).unwrap();
            assert_eq!((quoted.total_len(), quoted.protocol()), (1401, TCP));
            let sequence = 0xffff_ff00u32.wrapping_add(number as u32 * 1349);
            assert_eq!(quoted.payload()[4..8], sequence.to_be_bytes());
        }
        assert_eq!(cell.crossing(), Crossing::Whole);
    }

    #[test]
    fn ipv6_is_told_with_a_right_checksum() {
        let mut cell = cell(&[("bytes", "1400"), ("from_v6", "fd00::2")]);
        let (on, back) = pass(cell.as_mut(), tcp(true, 1429, 0, ACK));
        assert_eq!((on.len(), back.len()), (0, 1));
        let ip = IpPacket::parse(&back[0].data).unwrap();
        assert_eq!(
            (ip.source().to_string().as_str(), ip.icmp_type()),
            ("fd00::2", Some((2, 0)))
        );
        let pseudo = pseudo_header(ip.source(), ip.destination(), 58, ip.payload().len() as u32);
        assert_eq!(pseudo.bytes(ip.payload()).checksum(), 0);
    }

    #[test]
    fn what_may_be_cut_is_and_everything_is_accounted_for() {
        let mut cell = cell(&[("bytes", "600")]);
        let (on, back) = pass(cell.as_mut(), fragile(1500));
        let lengths: Vec<usize> = on.iter().map(|p| p.data.len()).collect();
        // 576 bytes of payload a fragment: 580 are not whole eights.
        assert_eq!((lengths, back.len()), (vec![596, 596, 348], 0));
        let stats = cell.stats(Time::ZERO, "mtu");
        assert_eq!((stats.offered.bytes, stats.duplicated.bytes), (1500, 40));
        assert_eq!((stats.delivered.bytes, stats.delivered.packets), (1540, 3));
        assert_eq!(stats.duplicated.packets, 2);
    }

    #[test]
    fn in_silence() {
        let black_hole = &[("bytes", "1400"), ("icmp", "false")];
        let (on, back) = pass(cell(black_hole).as_mut(), udp(1500, 1, 0));
        assert_eq!((on.len(), back.len()), (0, 0));
        let rigid = &[("bytes", "1400"), ("fragment", "false")];
        let (on, back) = pass(cell(rigid).as_mut(), fragile(1500));
        assert_eq!(
            (on.len(), back.len()),
            (0, 0),
            "may be cut, is not, and no sender is informed"
        );
        assert!(CellSpec::from_pairs("mtu", &[("bytes", "67")]).is_err());
    }

    #[test]
    fn the_link_gives_the_addresses_that_are_not_written() {
        let far = ["10.0.3.2".parse().unwrap(), "fd00::2".parse().unwrap()];
        let CellSpec::Mtu(mut spec) = CellSpec::from_pairs("mtu", &[("bytes", "1400")]).unwrap()
        else {
            panic!()
        };
        spec.settle(&far);
        assert_eq!(spec.from, Some(Ipv4Addr::new(10, 0, 3, 2)));
        assert_eq!(spec.from_v6.map(IpAddr::from), Some(far[1]));
        spec.from = Some(Ipv4Addr::LOCALHOST);
        spec.settle(&far);
        assert_eq!(spec.from, Some(Ipv4Addr::LOCALHOST));
    }
}
