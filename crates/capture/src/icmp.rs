//! Errors that ICMP reports (RFC 792, RFC 4443), and the flow that each is about.

use plumb_model::results::capture::IcmpErrorCount;
use plumb_wire::ip::{TCP, UDP};

use crate::flows::{Flows, socket};
use crate::packet::{Network, decode};
use crate::read::Frame;
use crate::table::FlowKey;

/// Errors that are distinguished.
const MOST: usize = 1000;
/// LINKTYPE_RAW: what an error quotes begins with its IP header.
const RAW: u16 = 101;
/// Bytes of an IPv6 header; errors quote few packets with extension headers.
const IPV6_HEADER: usize = 40;

/// Errors by kind and flow.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    counts: Vec<(&'static str, FlowKey, IcmpErrorCount)>,
}

impl Errors {
    /// Takes in a message, of whose kind and code the error is.
    pub(crate) fn message(
        &mut self,
        network: &Network,
        kind: (bool, u8, u8),
        body: &[u8],
        flows: &mut Flows,
    ) {
        let (Some(error), Some(quoted)) = (error(kind), body.get(4..)) else {
            return;
        };
        let Some((key, flow)) = flow(quoted) else {
            return;
        };
        let flow_packets = flows.error_about(&key);
        let known = self
            .counts
            .iter_mut()
            .find(|(e, k, _)| (*e, *k) == (error, key));
        if let Some((_, _, known)) = known {
            known.count += 1;
            known.flow_packets = known.flow_packets.max(flow_packets);
        } else if self.counts.len() < MOST {
            let count = IcmpErrorCount {
                error: error.to_owned(),
                reporter: network.source.to_string(),
                flow,
                flow_packets,
                count: 1,
            };
            self.counts.push((error, key, count));
        }
    }

    /// The most frequent first.
    pub(crate) fn finish(self) -> Vec<IcmpErrorCount> {
        let mut counts: Vec<_> = self.counts.into_iter().map(|(.., count)| count).collect();
        counts.sort_by_key(|count| std::cmp::Reverse(count.count));
        counts
    }
}

/// What an error says; `None` where the message is none.
fn error((v6, kind, code): (bool, u8, u8)) -> Option<&'static str> {
    Some(match (v6, kind, code) {
        (false, 3, 0) => "network unreachable",
        (false, 3, 1) | (true, 1, 3) => "host unreachable",
        (false, 3, 2) => "protocol unreachable",
        (false, 3, 3) | (true, 1, 4) => "port unreachable",
        (false, 3, 4) => "fragmentation needed",
        (false, 3, 9 | 10 | 13) | (true, 1, 1) => "administratively prohibited",
        (true, 1, 0) => "no route",
        (true, 2, _) => "packet too big",
        (false, 3, _) | (true, 1, _) => "unreachable",
        (false, 11, 0) | (true, 3, 0) => "time to live exceeded",
        (false, 11, _) | (true, 3, _) => "reassembly time exceeded",
        (false, 4, _) => "source quench",
        (false, 5, _) | (true, 137, _) => "redirect",
        (false, 12, _) | (true, 4, _) => "parameter problem",
        _ => return None,
    })
}

/// The flow of a packet of which an error quotes the first bytes.
fn flow(quoted: &[u8]) -> Option<(FlowKey, String)> {
    let network = decode(&Frame {
        unix_ns: 0,
        link: RAW,
        bytes: quoted,
        // As long as its own header has it.
        original_bytes: u32::from(u16::MAX),
    })
    .network?;
    let first = *quoted.first()?;
    let header = match first >> 4 {
        4 => usize::from(first & 0x0f) * 4,
        _ => IPV6_HEADER,
    };
    let ports = match network.protocol {
        TCP | UDP => quoted
            .get(header..header + 4)
            .and_then(|ports| ports.first_chunk::<4>()),
        _ => None,
    };
    let [s0, s1, d0, d1] = *ports.unwrap_or(&[0; 4]);
    let source = (network.source, u16::from_be_bytes([s0, s1]));
    let destination = (network.destination, u16::from_be_bytes([d0, d1]));
    let (key, _) = FlowKey::new(source, destination, network.protocol);
    let of = match network.protocol {
        TCP => "TCP",
        UDP => "UDP",
        _ => "IP",
    };
    let text = match ports {
        Some(_) => format!("{of} {} > {}", socket(source), socket(destination)),
        None => format!("{of} {} > {}", network.source, network.destination),
    };
    Some((key, text))
}
