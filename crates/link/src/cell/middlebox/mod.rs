//! What middleboxes do to packets besides carrying them. One file a box; the bytes are `plumb_wire`'s.

pub mod dscp_bleach;
pub mod ecn_bleach;
pub mod ecn_syn_drop;
pub mod icmp_deprioritise;
pub mod icmp_filter;
pub mod icmp_kind;
pub mod icmp_limit;
pub mod mss_clamp;
pub mod mtu;
pub mod nat;
mod nat_table;
pub mod strip_tcp_options;

use plumb_wire::ip::{IpPacket, SYN};

use crate::packet::Packet;
use crate::segment;

/// Whether TCP opens a connection with this packet: SYN or SYN-ACK.
fn is_syn(packet: &Packet) -> bool {
    IpPacket::parse(&packet.data)
        .and_then(|ip| ip.tcp_flags())
        .is_some_and(|flags| flags & SYN != 0)
}

/// Whether this packet is a SYN whose options may be changed: its checksum is complete.
fn opens_connection(packet: &mut Packet) -> bool {
    is_syn(packet) && segment::finalise_checksum(packet)
}
