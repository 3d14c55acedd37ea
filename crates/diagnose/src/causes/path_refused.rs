//! A router refuses to forward packets to the target.

use plumb_model::finding::{Actor, Cause, Finding, Severity};
use plumb_model::need::Need;
use plumb_model::results::path::refusal;

use crate::entry::{Entry, Family, every_sign};
use crate::evidence::{Route, fact, of_route};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "probes of another kind, or from another network, are forwarded",
    needs: &[Need::Route],
    examine: |case| {
        let found = case.routes().filter_map(refused).collect();
        let measured = ("the routers of the path", case.routes().next().is_some());
        let statement = "the far end was not reached, and a hop reported why it does not forward";
        case.facts(None).found(measured, statement, found)
    },
    explains: every_sign,
    ..Entry::PLAIN
};

/// A router says that packets go no further.
fn refused(route: Route<'_>) -> Option<Finding> {
    let path = route.result;
    if path.reached {
        return None;
    }
    let mut marks = path.hops.iter().enumerate().filter_map(|(index, hop)| {
        let mark = hop.annotation.as_deref().filter(|m| !m.starts_with("!F"))?;
        Some((index, hop, mark))
    });
    let (index, hop, mark) = marks.next()?;
    let severity = match mark {
        "!N" | "!H" => Severity::Critical,
        _ => Severity::Warning,
    };
    let (summary, on, what) = if hop.this_host {
        (
            format!(
                "Packets to {} do not leave this host: the next hop does not answer to its address ({mark}).",
                path.address
            ),
            Actor::ThisHost,
            "Look at `ip route get` and `ip neigh`: the far end, or the gateway, is down, is not on that link, or has another address.",
        )
    } else {
        (
            format!(
                "Packets to {} are refused at {}: {} ({mark}).",
                path.address,
                route.at(hop.ttl),
                refusal(mark)
            ),
            Actor::Provider,
            "Check the address, then ask who runs that hop: a route is missing behind it, the host is down, or a filter refuses probes of this kind (--icmp, --udp and --tcp are different kinds).",
        )
    };
    let evidence = fact(
        route.measurement,
        format_args!("hops.{index}.annotation"),
        mark,
        "an ICMP error that says why packets are not forwarded, against none",
        "none",
    );
    Some(of_route(
        Cause::PathRefused,
        (severity, 0.99),
        summary,
        evidence,
        (on, what, "an answer of the target"),
    ))
}
