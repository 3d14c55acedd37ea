//! Two routers of the customer's translate addresses, one behind the other.
//!
//! A provider's box with a router of one's own behind it. Each forgets idle flows by its own clock, and ports have to be
//! opened twice.

use std::net::IpAddr;

use plumb_model::finding::{Actor, Cause, Finding, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::evidence::{Route, fact, of_route};
use plumb_model::addresses::{is_private, is_public};

/// Providers have routers with private addresses, too, and do not translate there.
const CONFIDENCE: f64 = 0.6;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "with one of the two as a bridge or access point, the second hop has a public address",
    needs: &[Need::Route],
    resembles: &[(
        Cause::ProviderNat,
        "there the second NAT is the provider's, with an address of 100.64.0.0/10",
    )],
    yields_to: &[Cause::ProviderNat],
    examine: |case| {
        let found = case.routes().filter_map(found).collect();
        let measured = ("the routers of the path", case.routes().next().is_some());
        let statement = "the first two hops have private addresses, towards a public one";
        case.facts(None).found(measured, statement, found)
    },
    ..Entry::PLAIN
};

fn found(route: Route<'_>) -> Option<Finding> {
    let path = route.result;
    let far: IpAddr = path.address.parse().ok()?;
    let address = |ttl: u8| -> Option<IpAddr> {
        let hop = path.hops.iter().find(|hop| hop.ttl == ttl)?;
        hop.address.as_ref()?.parse().ok()
    };
    let (first, second) = (address(1)?, address(2)?);
    let both = first.is_ipv4() && is_private(first) && is_private(second) && first != second;
    (both && is_public(far)).then(|| {
        of_route(
            Cause::DoubleNat,
            (Severity::Info, CONFIDENCE),
            format!(
                "The first two hops, {first} and {second}, both have private addresses: probably two routers translate addresses one behind the other, as a provider's box and an own router do."
            ),
            fact(
                route.measurement,
                "hops.1.address",
                second.to_string().as_str(),
                "a second hop with a private address (RFC 1918) towards a public one",
                "a public address",
            ),
            (
                Actor::Router,
                "Set one of the two to bridge or access-point mode, so that one router alone translates and queues.",
                "a public address at the second hop",
            ),
        )
    })
}
