//! Protocols, of probes, loads and transactions.

use crate::vocabulary;

vocabulary! {
    /// What carries probes, a load or transactions. Each kind of measurement uses some of them.
    pub enum Protocol {
        /// ICMP or ICMPv6 echo (RFC 792, RFC 4443).
        Icmp = "icmp",
        /// UDP. To plumb's own responder these are its echoes, whose residence time is taken out.
        Udp = "udp",
        /// Plain datagrams to a UDP port: an echo service, or the host that reports that nothing is there,
        /// answers.
        UdpPort = "udp_port",
        /// TCP. For a ping these are connections, which are reset at once; for a path it is their SYN.
        Tcp = "tcp",
        /// The head of a page over HTTP/1.1, on a connection of its own each.
        Http = "http",
        /// The same over TLS.
        Https = "https",
        /// Questions to a DNS server.
        Dns = "dns",
        /// STAMP test packets (RFC 8762); the reflector's residence time is taken out.
        Stamp = "stamp",
        /// Echoes of an irtt server, version 1 of its protocol; the server's residence time is taken out.
        Irtt = "irtt",
        /// TLS (RFC 8446) over TCP.
        Tls = "tls",
        /// QUIC (RFC 9000) over UDP.
        Quic = "quic",
        /// Messages over a WebSocket (RFC 6455) and their echoes, all on one TCP connection.
        WebSocket = "websocket",
        /// Requests and their responses, in a load beside others.
        Transactions = "transactions",
    }
}

/// What has ports, beneath the other protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// The Transmission Control Protocol (RFC 9293).
    Tcp,
    /// The User Datagram Protocol (RFC 768).
    Udp,
}
