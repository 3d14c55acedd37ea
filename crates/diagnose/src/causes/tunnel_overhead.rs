//! Packets on the path are smaller than Ethernet's, as behind a tunnel or an access protocol.
//!
//! What the tunnel adds to each packet is lost to payload, and whatever does not heed the smaller size fails.

use plumb_model::finding::{Cause, Finding, Place, Severity};
use plumb_model::need::Need;

use crate::Case;
use crate::entry::{Amount, Entry, Family};
use crate::evidence::{Sizes, fact};
use crate::facts::bytes;
use crate::signs::percent;

/// Packets of Ethernet, in bytes (IEEE 802.3).
const ETHERNET_BYTES: u32 = 1500;

/// What is known by its size, in bytes, for IPv4 and IPv6 alike: the size says no more than what is usual.
const USUAL: [(u32, &str); 10] = [
    (1492, "PPPoE (RFC 2516), which takes 8 bytes"),
    (1488, "PPPoE with MPLS or a VLAN"),
    (1480, "IP in IP or 6in4 (RFC 4213), which takes 20 bytes"),
    (1476, "GRE (RFC 2784), which takes 24 bytes"),
    (1472, "GRE with a key, or PPPoE in a tunnel"),
    (
        1460,
        "a cloud's virtual network (Google's), which takes 40 bytes",
    ),
    (1454, "PPPoE over L2TP, as Japan's access networks have it"),
    (
        1450,
        "VXLAN (RFC 7348), which takes 50 bytes, as overlays of containers and clouds have it",
    ),
    (1420, "WireGuard, which takes 80 bytes with room for IPv6"),
    (
        1280,
        "the least that IPv6 allows, which careful tunnels choose",
    ),
];

/// The size is measured; what makes it is guessed.
const CONFIDENCE: f64 = 0.8;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "without the tunnel packets of 1500 bytes pass whole",
    needs: &[Need::PacketSizes],
    resembles: &[(
        Cause::PmtudBlackHole,
        "there no router says that packets are too large, and they vanish",
    )],
    yields_to: &[Cause::PmtudBlackHole],
    amount: Amount::PacketSize,
    examine: |case: &Case<'_>| {
        case.facts(None)
            .known("a search for the largest packet", case.sizes().next());
        case.sizes()
            .filter_map(|sizes| smaller(case, sizes))
            .collect()
    },
    ..Entry::PLAIN
};

fn smaller(case: &Case<'_>, sizes: Sizes<'_>) -> Option<Finding> {
    let mtu = sizes.result;
    let facts = case.facts(None);
    let path_bytes = mtu
        .path_mtu_bytes
        .filter(|_| !mtu.path_mtu_at_least && !mtu.partial);
    let path_bytes = facts.known("the largest packet, by a search that ended", path_bytes)?;
    let name = "largest packet";
    if !facts.below(name, bytes(path_bytes.into()), ETHERNET_BYTES.into()) {
        return None;
    }
    let by_this_host = mtu.interface_mtu_bytes == Some(path_bytes);
    let usual = USUAL.iter().find(|(bytes, _)| *bytes == path_bytes);
    let by = match usual {
        Some((_, what)) => format!("as with {what}"),
        None => "as behind a tunnel".to_owned(),
    };
    let (place, where_) = match by_this_host {
        true => (
            Place::ThisHost,
            "this machine's own interface sends no larger ones".to_owned(),
        ),
        false => (Place::Path, limited_after(sizes)),
    };
    let lost = f64::from(ETHERNET_BYTES - path_bytes) / f64::from(ETHERNET_BYTES);
    Some(Finding {
        cause: Cause::TunnelOverhead,
        place,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Packets of at most {path_bytes} bytes pass, {by}: {where_}. It costs about {} of the rate.",
            percent(lost)
        ),
        evidence: vec![fact(
            sizes.measurement,
            "path_mtu_bytes",
            path_bytes,
            "largest packet that gets to the far end, against Ethernet's",
            ETHERNET_BYTES,
        )],
        fixes: Vec::new(),
        kb: "mtu".to_owned(),
    })
}

/// Which hop reported a smaller size of the line behind it.
fn limited_after(sizes: Sizes<'_>) -> String {
    let told = sizes.result.hops.iter().rev();
    let mut told = told.filter(|hop| hop.told_mtu_bytes.is_some());
    match told.next() {
        Some(hop) => format!("hop {} reports it of the line behind it", hop.ttl),
        None => "where is not known".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::found;
    use plumb_model::results::Outcome;
    use plumb_model::results::mtu::{MtuDirection, MtuMethod, MtuResult, TcpMtu};

    fn summary(path_bytes: u32, interface_bytes: u32) -> Option<String> {
        let mtu = MtuResult {
            address: "192.0.2.1".to_owned(),
            path_mtu_bytes: Some(path_bytes),
            path_mtu_at_least: false,
            interface_mtu_bytes: Some(interface_bytes),
            largest_tried_bytes: interface_bytes,
            partial: false,
            method: MtuMethod::Told,
            direction: MtuDirection::RoundTrip,
            hops: Vec::new(),
            black_hole_after: None,
            way_back_bytes: None,
            sent: 9,
            mss: None,
            tcp: TcpMtu::default(),
        };
        let mut found = found(CAUSE.examine, Outcome::Mtu(Box::new(mtu)));
        found.pop().map(|finding| finding.summary)
    }

    #[test]
    fn usual_sizes_are_named_and_others_are_not_guessed() {
        let names = |bytes, name: &str| summary(bytes, 1500).is_some_and(|s| s.contains(name));
        assert!(names(1492, "PPPoE") && names(1450, "VXLAN") && names(1420, "WireGuard"));
        assert!(names(1431, "as behind a tunnel"));
        assert!(summary(1450, 1450).is_some_and(|s| s.contains("own interface")));
        assert_eq!(
            [(1500, 1500), (9000, 9000)].map(|(a, b)| summary(a, b)),
            [None, None]
        );
    }
}
