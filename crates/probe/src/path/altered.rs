//! What a box on the path changed in a probe: the packet as it was sent, compared with the one that a router quotes.

use plumb_model::results::path::{AlteredField, EcnField};
use plumb_wire::ip::{CWR, ECE, IpPacket, TCP, UDP};
use plumb_wire::tcp_options::offered;

/// One field that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub field: AlteredField,
    /// As it was sent.
    pub sent: String,
    /// As it was quoted.
    pub seen: String,
}

/// All fields that differ between a packet as sent and as quoted; none where either is missing.
///
/// Where the time to live has `expired`, the quoted one is 1, or 0 at routers that count before they look; other values
/// are reported. The target may quote any value.
pub fn differences(sent: &[u8], quote: &[u8], expired: bool) -> Vec<Difference> {
    let (Some(was), Some(is)) = (IpPacket::parse(sent), IpPacket::parse(quote)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut differ = |field, sent: String, seen: String| {
        if sent != seen {
            found.push(Difference { field, sent, seen });
        }
    };
    differ(
        AlteredField::Dscp,
        was.dscp().to_string(),
        is.dscp().to_string(),
    );
    let ecn = |packet: &IpPacket<'_>| EcnField::of_bits(packet.traffic_class()).shown().to_owned();
    differ(AlteredField::Ecn, ecn(&was), ecn(&is));
    let address = |ip: std::net::IpAddr| ip.to_string();
    differ(
        AlteredField::SourceAddress,
        address(was.source()),
        address(is.source()),
    );
    differ(
        AlteredField::DestinationAddress,
        address(was.destination()),
        address(is.destination()),
    );
    // Some quote the length in another byte order, or less the header: a header must fit in it.
    differ(
        AlteredField::Length,
        was.total_len().to_string(),
        is.total_len().to_string(),
    );
    differ(
        AlteredField::DontFragment,
        was.dont_fragment().to_string(),
        is.dont_fragment().to_string(),
    );
    if expired && is.hop_limit() > 1 {
        differ(
            AlteredField::Ttl,
            "1".to_owned(),
            is.hop_limit().to_string(),
        );
    }
    transport(&was, &is, &mut differ);
    found
}

fn transport(
    was: &IpPacket<'_>,
    is: &IpPacket<'_>,
    differ: &mut impl FnMut(AlteredField, String, String),
) {
    let ports = |ip: &IpPacket<'_>| {
        let flow = ip.flow();
        format!("{} → {}", flow.source_port, flow.destination_port)
    };
    // The first eight bytes have the ports of all three; routers must quote them (RFC 792).
    if is.payload().len() < 8 {
        return;
    }
    differ(AlteredField::Ports, ports(was), ports(is));
    let same_ends = was.flow() == is.flow();
    let sum_at = match was.protocol() {
        UDP => Some(6),
        _ => None,
    };
    if let Some(at) = sum_at.filter(|_| same_ends) {
        let sum = |ip: &IpPacket<'_>| {
            let bytes = ip.payload().get(at..).and_then(|b| b.first_chunk::<2>());
            bytes.map(|b| u16::from_be_bytes(*b))
        };
        if let (Some(a), Some(b)) = (sum(was), sum(is)) {
            differ(
                AlteredField::Checksum,
                format!("{a:#06x}"),
                format!("{b:#06x}"),
            );
        }
    }
    if was.protocol() == TCP
        && let (Some(a), Some(b)) = (offered(was.payload()), offered(is.payload()))
    {
        let mss = |mss: Option<u16>| mss.map_or_else(|| "none".to_owned(), |m| m.to_string());
        differ(AlteredField::Mss, mss(a.mss_bytes), mss(b.mss_bytes));
        let kinds = |kinds: &[u8]| {
            let names: Vec<String> = kinds.iter().map(|kind| option(*kind)).collect();
            names.join(" ")
        };
        differ(AlteredField::TcpOptions, kinds(&a.kinds), kinds(&b.kinds));
        let asks = |ip: &IpPacket<'_>| {
            let flags = ip.tcp_flags().unwrap_or(0) & (ECE | CWR);
            if flags == ECE | CWR {
                "asked"
            } else {
                "not asked"
            }
            .to_owned()
        };
        differ(AlteredField::TcpEcn, asks(was), asks(is));
    }
}

/// The IANA name of a TCP option.
fn option(kind: u8) -> String {
    match kind {
        2 => "mss".to_owned(),
        3 => "wscale".to_owned(),
        4 => "sack".to_owned(),
        8 => "timestamps".to_owned(),
        30 => "mptcp".to_owned(),
        34 => "fastopen".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use plumb_wire::path_probe::{Numbered, ProbeSet, Transport};
    use plumb_wire::rewrite::{clear_ecn, set_dscp};
    use plumb_wire::tcp_options::{clamp_mss, strip};
    use proptest::prelude::*;

    fn packet(tcp: bool) -> Vec<u8> {
        let (source_port, destination_port) = (40_000, 443);
        let transport = if tcp {
            Transport::Tcp {
                source_port,
                destination_port,
            }
        } else {
            Transport::Udp {
                source_port,
                destination_port,
            }
        };
        let set = ProbeSet {
            source: "10.0.0.1".parse().unwrap(),
            destination: "10.0.3.2".parse().unwrap(),
            transport,
            session: 7,
        };
        set.write(&Numbered {
            number: 5,
            hop_limit: 3,
            flow: 0,
            traffic_class: 46 << 2 | 2,
            size_bytes: 0,
            dont_fragment: false,
            ask_ecn: true,
            fill: 0,
        })
    }

    fn changed(tcp: bool, change: impl Fn(&mut Vec<u8>)) -> Vec<(AlteredField, String, String)> {
        let sent = packet(tcp);
        let mut quote = sent.clone();
        quote[8] = 1;
        change(&mut quote);
        differences(&sent, &quote, true)
            .into_iter()
            .map(|d| (d.field, d.sent, d.seen))
            .collect()
    }

    #[test]
    fn each_change_is_named() {
        let one = |field, sent: &str, seen: &str| vec![(field, sent.to_owned(), seen.to_owned())];
        assert_eq!(changed(false, |_| {}), vec![]);
        let dscp = changed(false, |q| assert!(set_dscp(q, 0)));
        assert_eq!(dscp, one(AlteredField::Dscp, "46", "0"));
        let ecn = changed(false, |q| assert!(clear_ecn(q)));
        assert_eq!(ecn, one(AlteredField::Ecn, "ECT(0)", "Not-ECT"));
        let ttl = changed(false, |q| q[8] = 9);
        assert_eq!(ttl, one(AlteredField::Ttl, "1", "9"));
        assert_eq!(changed(false, |q| q[8] = 0), vec![]);
        let sum = changed(false, |q| q[26] ^= 1);
        assert_eq!(sum[0].0, AlteredField::Checksum);
        // A NAT, by address, port, and the checksum that follows from them.
        let nat = changed(false, |q| {
            q[12..16].copy_from_slice(&[192, 0, 2, 1]);
            q[20] ^= 1;
            q[26] ^= 1;
        });
        let fields: Vec<_> = nat.iter().map(|d| d.0).collect();
        assert_eq!(fields, [AlteredField::SourceAddress, AlteredField::Ports]);
        let mss = changed(true, |q| assert!(clamp_mss(q, 1300)));
        assert_eq!(mss, one(AlteredField::Mss, "1460", "1300"));
        let options = changed(true, |q| assert!(strip(q, &[3])));
        let (was, is) = ("mss sack timestamps wscale", "mss sack timestamps");
        assert_eq!(options, one(AlteredField::TcpOptions, was, is));
        let ecn = changed(true, |q| q[33] &= !0xc0);
        assert_eq!(ecn, one(AlteredField::TcpEcn, "asked", "not asked"));
    }

    proptest! {
        #[test]
        fn any_quotation_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..80), tcp: bool, cut in 0usize..70) {
            let sent = packet(tcp);
            let _ = differences(&sent, &bytes, true);
            let quote = sent.get(..cut).unwrap_or(&sent);
            prop_assert_eq!(differences(&sent, quote, false), vec![]);
        }
    }
}
