//! A box that takes options out of SYNs, so that both ends do without: no window scale (64 kB
//! under way at most), no selective acknowledgements, no timestamps.

use plumb_wire::tcp_options;
use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::cell::middlebox::opens_connection;
use crate::packet::Packet;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::time::Time;

/// `{ type = "strip_tcp_options", options = ["wscale"] }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StripTcpOptionsSpec {
    /// What is taken out.
    pub options: Vec<TcpOption>,
}

impl Default for StripTcpOptionsSpec {
    /// The three that old firewalls did not know (RFC 1323, RFC 2018).
    fn default() -> Self {
        Self {
            options: vec![TcpOption::Wscale, TcpOption::Sack, TcpOption::Timestamps],
        }
    }
}

/// An option of a SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TcpOption {
    /// Window scale (RFC 7323).
    Wscale,
    /// Selective acknowledgements permitted (RFC 2018).
    Sack,
    Timestamps,
    /// Multipath TCP (RFC 8684).
    Mptcp,
    /// Fast Open's cookie (RFC 7413).
    Fastopen,
}

impl TcpOption {
    fn kind(self) -> u8 {
        match self {
            Self::Wscale => tcp_options::WINDOW_SCALE,
            Self::Sack => tcp_options::SACK_PERMITTED,
            Self::Timestamps => tcp_options::TIMESTAMPS,
            Self::Mptcp => tcp_options::MPTCP,
            Self::Fastopen => tcp_options::FAST_OPEN,
        }
    }
}

impl Settings for StripTcpOptionsSpec {}

pub(crate) struct StripTcpOptions {
    kinds: Vec<u8>,
}

impl StripTcpOptions {
    pub(crate) fn new(spec: &StripTcpOptionsSpec) -> Self {
        Self {
            kinds: spec.options.iter().map(|option| option.kind()).collect(),
        }
    }
}

impl Filter for StripTcpOptions {
    type Spec = StripTcpOptionsSpec;
    const CROSSING: Crossing = Crossing::Whole;

    fn pass(&mut self, _: Time, mut packet: Packet, out: &mut Outlet<'_>) {
        if opens_connection(&mut packet) && tcp_options::strip(&mut packet.data, &self.kinds) {
            out.forward_changed(packet);
        } else {
            out.forward(packet);
        }
    }

    fn reconfigure(&mut self, _: Time, spec: StripTcpOptionsSpec) {
        *self = Self::new(&spec);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::{ACK, ipv4_header, ipv6_header, tcp};
    use crate::spec::CellSpec;
    use plumb_wire::checksum::pseudo_header;
    use plumb_wire::ip::{IpPacket, SYN, TCP};
    use plumb_wire::virtio::VirtioHeader;
    use tcp_options::{MSS, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE};

    /// A packet with the options of a Linux SYN (MSS 1460) and a checksum left to the hardware.
    pub(crate) fn syn(v6: bool, flags: u8) -> Packet {
        let ip_header = if v6 { 40 } else { 20 };
        let mut data = if v6 {
            ipv6_header(80, TCP)
        } else {
            ipv4_header(60, TCP, 0)
        };
        let ip = IpPacket::parse(&data).unwrap();
        let partial = pseudo_header(ip.source(), ip.destination(), TCP, 40).folded();
        data.extend([0x30, 0x39, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0xa0, flags, 1, 0]);
        data.extend(partial.to_be_bytes());
        data.extend([0, 0, 2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0]);
        data.extend([1, 3, 3, 7]);
        let vnet = VirtioHeader {
            needs_csum: true,
            csum_start: ip_header,
            csum_offset: 16,
            ..VirtioHeader::default()
        };
        Packet::new(data, vnet, Time::ZERO)
    }

    pub(crate) fn checksum_is_right(packet: &Packet) -> bool {
        let ip = IpPacket::parse(&packet.data).unwrap();
        let tcp = ip.payload();
        let pseudo = pseudo_header(ip.source(), ip.destination(), TCP, tcp.len() as u32);
        !packet.vnet.needs_csum && pseudo.bytes(tcp).checksum() == 0
    }

    fn kinds_after(pairs: &[(&str, &str)], packet: Packet) -> Vec<u8> {
        let is_syn = super::super::is_syn(&packet);
        let spec = CellSpec::from_pairs("strip_tcp_options", pairs).unwrap();
        let mut cell = spec.build(1, Time::ZERO).own();
        cell.enqueue(Time::ZERO, packet);
        let (_, packet) = cell.dequeue(Time::ZERO).unwrap();
        assert!(!is_syn || checksum_is_right(&packet));
        tcp_options::kinds(&packet.data)
    }

    #[test]
    fn what_is_named_is_gone() {
        let everything = [MSS, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE];
        for v6 in [false, true] {
            assert_eq!(kinds_after(&[], syn(v6, SYN)), [MSS]);
            let one = [("options", "['wscale', 'mptcp']")];
            let rest = [MSS, SACK_PERMITTED, TIMESTAMPS];
            assert_eq!(kinds_after(&one, syn(v6, SYN | ACK)), rest);
            assert_eq!(kinds_after(&[], syn(v6, ACK)), everything, "not a SYN");
        }
        // Large segments pass as they are.
        let spec = CellSpec::from_pairs("strip_tcp_options", &[]).unwrap();
        let mut cell = spec.build(1, Time::ZERO).own();
        cell.enqueue(Time::ZERO, tcp(false, 10_000, 1448, ACK));
        let (_, packet) = cell.dequeue(Time::ZERO).unwrap();
        assert_eq!((packet.segments(), cell.tally().changed), (7, 0));
    }
}
