//! What a port is usually for (IANA's service names), as far as the hierarchy of protocols names it.

use plumb_model::results::capture::Layer;

/// The protocol over TCP.
pub(super) fn tcp(ports: [u16; 2]) -> Layer {
    of(ports, |port| {
        Some(match port {
            22 => Layer::Ssh,
            25 | 587 => Layer::Smtp,
            53 => Layer::Dns,
            80 | 8080 => Layer::Http,
            443 | 465 | 853 | 993 | 995 | 8443 => Layer::Tls,
            445 => Layer::Smb,
            2049 => Layer::Nfs,
            7586 => Layer::Plumb,
            _ => return None,
        })
    })
}

/// The protocol over UDP.
pub(super) fn udp(ports: [u16; 2]) -> Layer {
    of(ports, |port| {
        Some(match port {
            53 => Layer::Dns,
            67 | 68 | 546 | 547 => Layer::Dhcp,
            123 => Layer::Ntp,
            161 | 162 => Layer::Snmp,
            443 => Layer::Quic,
            2049 => Layer::Nfs,
            5353 => Layer::Mdns,
            7586 => Layer::Plumb,
            _ => return None,
        })
    })
}

/// By the lower port, which is the server's more often, and else by the other.
fn of([source, destination]: [u16; 2], name: impl Fn(u16) -> Option<Layer>) -> Layer {
    let (lower, higher) = (source.min(destination), source.max(destination));
    name(lower).or_else(|| name(higher)).unwrap_or(Layer::Data)
}
