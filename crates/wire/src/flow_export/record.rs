//! What all protocols report: so many bytes and packets of one flow, in one direction.

use std::net::IpAddr;

/// A report of a flow. What the exporter did not say is `None`, or zero where zero says nothing of its own.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FlowRecord {
    /// Which part of the exporter saw it: engine of version 5, source id of version 9, observation domain of IPFIX, sub-agent of
    /// sFlow.
    pub domain: u32,
    pub source: Option<IpAddr>,
    pub destination: Option<IpAddr>,
    /// The lengths of the prefixes of the exporter's routes to both addresses.
    pub source_prefix_bits: Option<u8>,
    pub destination_prefix_bits: Option<u8>,
    /// Autonomous systems; zero is one that the exporter does not know.
    pub source_as: Option<u32>,
    pub destination_as: Option<u32>,
    /// Protocol number of IP.
    pub protocol: Option<u8>,
    /// Ports of TCP, UDP and SCTP, else zero.
    pub source_port: u16,
    pub destination_port: u16,
    /// The octet of the IP header that has DSCP and ECN.
    pub traffic_class: Option<u8>,
    /// Numbers of the exporter's interfaces (ifIndex).
    pub in_interface: Option<u32>,
    pub out_interface: Option<u32>,
    /// As exported: sampled, where there is sampling. Of IP packets with their headers.
    pub bytes: u64,
    pub packets: u64,
    /// When its first and last packet were seen, ms since 1970 by the exporter's clock.
    pub start_ms: Option<i64>,
    pub end_ms: Option<i64>,
    /// One packet of so many was counted: one without sampling; `None` where the exporter does not say.
    pub one_in: Option<f64>,
    /// What is known of the sizes of its packets beside their mean.
    pub sizes: Sizes,
}

/// What an exporter says of the sizes of a flow's packets, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sizes {
    pub shortest: Option<u32>,
    pub longest: Option<u32>,
    /// The sum of their squares.
    pub squares: Option<u64>,
}

impl FlowRecord {
    /// Differentiated services codepoint (RFC 2474), 0…63.
    pub fn dscp(&self) -> Option<u8> {
        self.traffic_class.map(|class| class >> 2)
    }
}
