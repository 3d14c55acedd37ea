//! A NAT of the provider stands on the path.
//!
//! Carrier-grade NAT shares an address among customers, and is numbered from 100.64.0.0/10 (RFC 6598); NAT64 brings
//! machines that have only IPv6 to the IPv4 Internet (RFC 6052).

use std::net::{IpAddr, Ipv4Addr};

use plumb_model::finding::{Actor, Cause, Finding, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Gateway, Port, Route, fact, of_route};
use plumb_model::addresses::{is_private, is_public, is_shared};

/// Providers number links from these addresses without translating, too.
const SHARED_CONFIDENCE: f64 = 0.7;

/// Connections of each version, at the least, and what their medians differ by, in seconds, where it is more than chance.
const ENOUGH_CONNECTS: u64 = 3;
const COSTS_S: f64 = 0.005;

/// The gateway itself has none that others could reach.
const REPORTED_CONFIDENCE: f64 = 0.95;

/// The prefix means nothing else.
const NAT64_CONFIDENCE: f64 = 0.99;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "with a public address of one's own, or over IPv6, no hop has such an address",
    needs: &[Need::Route],
    resembles: &[(
        Cause::DoubleNat,
        "there both NATs are the customer's, with private addresses",
    )],
    examine: |case| {
        let routes: Vec<Finding> = case
            .routes()
            .filter_map(|route| found(case, route))
            .collect();
        match routes.is_empty() {
            true => case.gateway().and_then(on_the_line).into_iter().collect(),
            false => routes,
        }
    },
    ..Entry::PLAIN
};

fn found(case: &Case<'_>, route: Route<'_>) -> Option<Finding> {
    let far: IpAddr = route.result.address.parse().ok()?;
    nat64(case, route, far).or_else(|| shared(route, far))
}

/// What connections through the translator take longer than those over IPv4 itself, in seconds, where the name has both.
fn costs_s(case: &Case<'_>) -> Option<f64> {
    let [v4, v6] = case.port_by_both()?;
    let median_s = |port: Port<'_>| {
        let connects = port.result.connect_s?;
        (connects.count >= ENOUGH_CONNECTS).then_some(connects.p50)
    };
    Some(median_s(v6)? - median_s(v4)?)
}

fn nat64(case: &Case<'_>, route: Route<'_>, far: IpAddr) -> Option<Finding> {
    let IpAddr::V6(v6) = far else {
        return None;
    };
    // 64:ff9b::/96, and the IPv4 address behind it (RFC 6052, section 2).
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = v6.segments() else {
        return None;
    };
    let v4 = Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    let costs = match costs_s(case) {
        Some(longer_s) if longer_s >= COSTS_S => format!(
            " A connection takes {} longer than over IPv4 itself.",
            human_seconds(longer_s)
        ),
        Some(_) => " A connection takes no longer than over IPv4 itself.".to_owned(),
        None => String::new(),
    };
    let summary = format!(
        "The far end is reached through a NAT64: {v6} represents {v4}. A machine of the provider translates every packet, and what it cannot translate does not pass.{costs}"
    );
    let evidence = fact(
        route.measurement,
        "address",
        route.result.address.as_str(),
        "an address of the prefix of NAT64 (RFC 6052)",
        "64:ff9b::/96",
    );
    Some(finding(NAT64_CONFIDENCE, summary, evidence))
}

fn shared(route: Route<'_>, far: IpAddr) -> Option<Finding> {
    let path = route.result;
    let mut hops = path.hops.iter().enumerate();
    let (index, hop, address) = hops.find_map(|(index, hop)| {
        let address: IpAddr = hop.address.as_ref()?.parse().ok()?;
        is_shared(address).then_some((index, hop, address))
    })?;
    // Where this machine's own network is numbered so, as overlays do, it says nothing of a provider.
    let behind_home = path
        .hops
        .iter()
        .take(index)
        .filter_map(|hop| hop.address.as_ref()?.parse().ok())
        .any(is_private);
    (is_public(far) && behind_home).then(|| {
        let summary = format!(
            "Packets pass {} ({address}), whose address is of those that providers use behind a carrier-grade NAT: no host can connect to this line from outside, and what looks at addresses takes several customers for one.",
            route.at(hop.ttl)
        );
        let evidence = fact(
            route.measurement,
            format_args!("hops.{index}.address"),
            address.to_string().as_str(),
            "a hop behind this network with an address of RFC 6598, towards a public address",
            "100.64.0.0/10",
        );
        finding(SHARED_CONFIDENCE, summary, evidence)
    })
}

/// The address that the gateway reports of its line.
fn on_the_line(gateway: Gateway<'_>) -> Option<Finding> {
    let reported = gateway.result.external_address.as_deref()?;
    let address: IpAddr = reported.parse().ok()?;
    is_shared(address).then(|| {
        let summary = format!(
            "The gateway's own address on its line is {address}, of those that providers use behind a carrier-grade NAT: no host can connect to this line from outside, and what looks at addresses takes several customers for one."
        );
        let evidence = fact(
            gateway.measurement,
            "external_address",
            reported,
            "an address of RFC 6598 on the line of the gateway",
            "100.64.0.0/10",
        );
        finding(REPORTED_CONFIDENCE, summary, evidence)
    })
}

fn finding(confidence: f64, summary: String, evidence: plumb_model::finding::Evidence) -> Finding {
    of_route(
        Cause::ProviderNat,
        (Severity::Info, confidence),
        summary,
        evidence,
        (
            Actor::Provider,
            "Ask the provider for an IPv4 address of one's own or for IPv6, where something has to be reached from outside or breaks.",
            "no translated address on the path",
        ),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{connects, found as found_by, found_in, measurement};
    use plumb_model::results::Outcome;
    use plumb_model::results::gateway::GatewayResult;
    use plumb_model::results::port::PortState;

    /// What is said of a far end at that address, where connections over IPv6 and IPv4 take so long.
    fn summary(address: &str, v6_s: f64, v4_s: f64) -> Option<String> {
        let path = serde_json::json!({ "kind": "path", "result": {
            "protocol": "icmp", "port": null, "address": address, "reached": true, "cycles": 3, "hops": [], "loss": null,
            "routes": [], "changes": [], "alterations": [], "syn_ack": null, "multipath": null, "distance": null,
            "way_back": null, "symmetry": null,
        }});
        let outcome: Outcome = serde_json::from_value(path).unwrap();
        let measured = [
            measurement(outcome),
            connects(address, 5, v6_s, PortState::Open),
            connects("192.0.2.33", 5, v4_s, PortState::Open),
        ];
        let found = found_in(CAUSE.examine, &measured).pop();
        found.map(|finding| finding.summary)
    }

    #[test]
    fn what_a_translator_costs_shows_beside_ipv4() {
        let nat64 = "64:ff9b::c000:221";
        let costly = summary(nat64, 0.05, 0.02).unwrap();
        assert!(
            costly.contains("192.0.2.33") && costly.contains("30.0 ms longer"),
            "{costly}"
        );
        assert!(summary(nat64, 0.02, 0.02).unwrap().contains("no longer"));
        assert_eq!(summary("2001:db8::9", 0.05, 0.02), None);
    }

    #[test]
    fn a_shared_address_on_the_gateways_line_is_a_nat_of_the_provider() {
        let of = |address: &str| {
            let gateway = GatewayResult {
                external_address: Some(address.to_owned()),
                ..GatewayResult::default()
            };
            found_by(CAUSE.examine, Outcome::Gateway(Box::new(gateway))).len()
        };
        assert_eq!(of("100.72.3.4"), 1);
        assert_eq!((of("203.0.113.7"), of("192.168.0.2"), of("?")), (0, 0, 0));
    }
}
