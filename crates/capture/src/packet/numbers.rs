//! Numbers by which one header names the next.

/// Link types (the list of LINKTYPE_ values of libpcap); raw IP has the numbers of several systems.
pub(crate) mod link {
    pub(crate) const NULL: u16 = 0;
    pub(crate) const ETHERNET: u16 = 1;
    pub(crate) const PPP: u16 = 9;
    pub(crate) const RAW: [u16; 5] = [12, 14, 101, 228, 229];
    pub(crate) const PPP_HDLC: u16 = 50;
    pub(crate) const PPP_ETHER: u16 = 51;
    pub(crate) const IEEE802_11: u16 = 105;
    pub(crate) const LOOP: u16 = 108;
    pub(crate) const COOKED_1: u16 = 113;
    pub(crate) const RADIOTAP: u16 = 127;
    pub(crate) const COOKED_2: u16 = 276;
}

/// What a frame carries (IEEE 802 Numbers of IANA).
pub(crate) mod ethertype {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const ARP: u16 = 0x0806;
    pub(crate) const ETHERNET: u16 = 0x6558;
    pub(crate) const VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
    pub(crate) const IPV6: u16 = 0x86dd;
    pub(crate) const MPLS: [u16; 2] = [0x8847, 0x8848];
    pub(crate) const PPPOE_SESSION: u16 = 0x8864;
    /// Smaller numbers are lengths, and LLC follows.
    pub(crate) const SMALLEST: u16 = 0x0600;
}

/// What PPP carries (IANA's PPP protocol numbers).
pub(crate) mod ppp {
    pub(crate) const IPV4: u16 = 0x0021;
    pub(crate) const IPV6: u16 = 0x0057;
    pub(crate) const MPLS: u16 = 0x0281;
}

/// Numbers of protocols in IP (IANA).
pub(crate) mod protocol {
    pub(crate) use plumb_wire::ip::{ICMP, ICMPV6, TCP, UDP};
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const IGMP: u8 = 2;
    pub(crate) const IPV4: u8 = 4;
    pub(crate) const IPV6: u8 = 41;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const GRE: u8 = 47;
    pub(crate) const ESP: u8 = 50;
    pub(crate) const AUTHENTICATION: u8 = 51;
    pub(crate) const NO_NEXT: u8 = 59;
    pub(crate) const DESTINATION_OPTIONS: u8 = 60;
    pub(crate) const OSPF: u8 = 89;
    pub(crate) const SCTP: u8 = 132;
    pub(crate) const MOBILITY: u8 = 135;
}

/// RFC 7348, section 5.
pub(crate) const VXLAN_PORT: u16 = 4789;
