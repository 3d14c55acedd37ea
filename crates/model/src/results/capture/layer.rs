//! The protocols that a capture is read into.

use crate::vocabulary;

vocabulary! {
    /// A protocol, as one layer of a packet.
    pub enum Layer {
        /// A frame of Ethernet, without its checksum.
        Ethernet = "eth",
        /// Linux's own header of captures on every interface, version 1.
        Cooked1 = "sll",
        /// Linux's own header of captures on every interface, version 2.
        Cooked2 = "sll2",
        /// A packet without a header of its link.
        Raw = "raw",
        /// BSD's header of loopback interfaces.
        Null = "null",
        /// What a card reports of a frame of a wireless LAN.
        Radiotap = "radiotap",
        /// A frame of a wireless LAN (IEEE 802.11).
        Wlan = "wlan",
        /// The Point-to-Point Protocol (RFC 1661).
        Ppp = "ppp",
        /// A tag of a virtual network (IEEE 802.1Q).
        Vlan = "vlan",
        /// A label of MPLS.
        Mpls = "mpls",
        /// A session of PPP over Ethernet (RFC 2516).
        Pppoe = "pppoe",
        /// A frame of IEEE 802.3 with LLC.
        Llc = "llc",
        /// The Address Resolution Protocol.
        Arp = "arp",
        /// The Internet Protocol, version 4.
        Ipv4 = "ip",
        /// The Internet Protocol, version 6.
        Ipv6 = "ipv6",
        /// A fragment of IP beyond the first.
        Fragment = "fragment",
        /// A tunnel by generic routing encapsulation (RFC 2784).
        Gre = "gre",
        /// A virtual Ethernet within UDP (RFC 7348).
        Vxlan = "vxlan",
        /// The Transmission Control Protocol (RFC 9293).
        Tcp = "tcp",
        /// The User Datagram Protocol (RFC 768).
        Udp = "udp",
        /// Control messages of IP, version 4.
        Icmp = "icmp",
        /// Control messages of IP, version 6.
        Icmpv6 = "icmpv6",
        /// Membership of multicast groups (RFC 3376).
        Igmp = "igmp",
        /// The Stream Control Transmission Protocol (RFC 9260).
        Sctp = "sctp",
        /// A payload that IPsec encrypted (RFC 4303).
        Esp = "esp",
        /// Link states among routers (OSPF, RFC 2328).
        Ospf = "ospf",
        /// DNS, by its port.
        Dns = "dns",
        /// Multicast DNS, by its port.
        Mdns = "mdns",
        /// HTTP, by its port.
        Http = "http",
        /// TLS, by the port of HTTPS and the like.
        Tls = "tls",
        /// QUIC, by the port of HTTPS.
        Quic = "quic",
        /// Secure Shell, by its port.
        Ssh = "ssh",
        /// NTP, by its port.
        Ntp = "ntp",
        /// DHCP, by its ports.
        Dhcp = "dhcp",
        /// SNMP, by its ports.
        Snmp = "snmp",
        /// SMTP, by its ports.
        Smtp = "smtp",
        /// SMB, by its port.
        Smb = "smb",
        /// NFS, by its port.
        Nfs = "nfs",
        /// plumb's own protocol, by its port.
        Plumb = "plumb",
        /// Payload of no protocol known by its port.
        Data = "data",
        /// What is not read into.
        Other = "other",
        /// Headers that are not whole, or contradict themselves.
        Malformed = "malformed",
    }
}
