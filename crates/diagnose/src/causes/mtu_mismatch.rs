//! Interfaces on one link disagree about the largest packet.

use plumb_model::finding::{Cause, InterfaceChange, PathKind, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::Interface;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "packets of the smaller size get through",
    needs: &[Need::Machine],
    resembles: &[(
        Cause::PmtudBlackHole,
        "there the link's neighbours agree, and a hop beyond them loses what is large",
    )],
    audits: &[(Subject::PacketSize, audit)],
    ..Entry::PLAIN
};

/// The least that IPv6 needs (RFC 8200 section 5).
const IPV6_LEAST_BYTES: u32 = 1280;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let mut judged: Vec<Judged> = bridged(facts).into_iter().chain(shared(facts)).collect();
    for (place, interface) in facts.in_use() {
        if interface.mtu_bytes < IPV6_LEAST_BYTES {
            judged.push(
                found(
                    subject(interface),
                    Cause::MtuMismatch,
                    Severity::Warning,
                    &PathKind::ALL,
                    format!(
                        "{} takes packets of {} bytes, and IPv6 needs {IPV6_LEAST_BYTES}.",
                        interface.name, interface.mtu_bytes
                    ),
                )
                .evidence(facts.evidence(
                    format!("interfaces[{place}].mtu_bytes"),
                    interface.mtu_bytes,
                    "largest packet, against the least that IPv6 needs",
                    IPV6_LEAST_BYTES,
                ))
                .interface(
                    "Let it take at least what IPv6 needs, if its link can.",
                    interface,
                    InterfaceChange::MtuBytes(IPV6_LEAST_BYTES),
                    "IPv6 works on it.",
                )
                .done(),
            );
        } else if !judged
            .iter()
            .any(|j| matches!(j, Judged::Found(name, _) if *name == subject(interface)))
        {
            judged.push(fine(
                subject(interface),
                format!(
                    "{} takes packets of {} bytes, as others on its link do here",
                    interface.name, interface.mtu_bytes
                ),
            ));
        }
    }
    judged
}

fn subject(interface: &Interface) -> String {
    format!("{} MTU", interface.name)
}

/// Ports of a bridge whose packets another port cannot take: a bridge sends no "too big" (IEEE
/// 802.1D), so that they vanish.
fn bridged(facts: &Facts<'_>) -> Vec<Judged> {
    let interfaces = &facts.host.interfaces;
    let mut judged = Vec::new();
    for (place, port) in interfaces.iter().enumerate() {
        let Some(bridge) = interfaces
            .iter()
            .find(|i| Some(i.index) == port.controller && i.kind.as_deref() == Some("bridge"))
        else {
            continue;
        };
        let largest = interfaces
            .iter()
            .filter(|other| other.controller == Some(bridge.index))
            .map(|other| other.mtu_bytes)
            .max()
            .unwrap_or(port.mtu_bytes);
        if port.mtu_bytes < largest {
            judged.push(mismatch(
                facts,
                place,
                port,
                largest,
                &format!("another port of the bridge {}", bridge.name),
            ));
        }
    }
    judged
}

/// Interfaces with addresses of the same network.
fn shared(facts: &Facts<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    for (place, one) in facts.in_use() {
        let largest = facts
            .in_use()
            .filter(|(_, other)| other.index != one.index && share_network(one, other))
            .max_by_key(|(_, other)| other.mtu_bytes);
        if let Some((_, other)) = largest
            && other.mtu_bytes > one.mtu_bytes
        {
            let whom = format!("{}, which has an address of the same network", other.name);
            judged.push(mismatch(facts, place, one, other.mtu_bytes, &whom));
        }
    }
    judged
}

fn share_network(one: &Interface, other: &Interface) -> bool {
    let networks = |interface: &Interface| -> Vec<_> {
        interface
            .addresses
            .iter()
            .filter_map(|text| network(text))
            .collect()
    };
    let theirs = networks(other);
    networks(one).iter().any(|network| theirs.contains(network))
}

/// The IPv4 network of `192.0.2.7/24`; a single address is none, and IPv6's link-local network is
/// everywhere.
fn network(text: &str) -> Option<(u32, u8)> {
    let (address, length) = text.split_once('/')?;
    let address: std::net::Ipv4Addr = address.parse().ok()?;
    let length: u8 = length.parse().ok()?;
    let mask = u32::MAX.checked_shl(32_u32.checked_sub(length.into())?)?;
    (length < 31).then_some((u32::from(address) & mask, length))
}

fn mismatch(
    facts: &Facts<'_>,
    place: usize,
    interface: &Interface,
    largest: u32,
    whom: &str,
) -> Judged {
    found(
        subject(interface),
        Cause::MtuMismatch,
        Severity::Warning,
        &PathKind::ALL,
        format!(
            "{} takes packets of {} bytes and {whom} {largest}: within one segment larger ones vanish without a word.",
            interface.name, interface.mtu_bytes
        ),
    )
    .place(Place::LocalSegment)
    .sure(0.9)
    .evidence(facts.evidence(
        format!("interfaces[{place}].mtu_bytes"),
        interface.mtu_bytes,
        "largest packet, against the largest in the same segment",
        largest,
    ))
    .interface(
        "Give every interface of the segment the same MTU: the larger one only if all of them, switches included, take it.",
        interface,
        InterfaceChange::MtuBytes(largest),
        "Large packets arrive; `plumb mtu` or a ping with the DF bit shows it.",
    )
    .done()
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn networks_are_compared_by_their_prefix() {
        assert_eq!(network("192.0.2.7/24"), network("192.0.2.200/24"));
        assert_ne!(network("192.0.2.7/25"), network("192.0.2.200/25"));
        assert_eq!(network("192.0.2.7/32"), None);
        assert_eq!(network("10.1.2.3/0"), None);
        assert_eq!(network("fe80::1/64"), None);
        assert_eq!(network("rubbish"), None);
    }
}
