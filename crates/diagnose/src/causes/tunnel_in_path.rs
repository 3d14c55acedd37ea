//! Packets leave this machine through a tunnel: a VPN, or an overlay.
//!
//! What is measured is then the path to the tunnel's other end and on from there.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::host::Interface;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::Counted;

/// A tunnel's payload is so much of what its packets are on the wire, at least: 1280 of 1280 + 100 bytes, and what
/// acknowledgements of 40 bytes add on the reverse path is less.
const PAYLOAD_RATIO: f64 = 0.8;

/// Bytes of a phase that are the load's, and not a program's that happens to use the tunnel.
const LEAST_BYTES: u64 = 100_000;

/// By counters of interfaces; another program may have sent as much just then.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "with the tunnel down, or a route around it, packets leave by the interface of the line",
    needs: &[Need::Machine, Need::CounterRates],
    resembles: &[(
        Cause::RouteDetour,
        "there packets leave by the line itself, and the detour is further away",
    )],
    examine: |case| {
        let found = examine(case).into_iter().collect();
        let measured = (
            "interfaces, and their counters beside each phase",
            case.hosts().next().is_some() && case.counted().next().is_some(),
        );
        let statement = "a tunnel carries most of what this host does";
        case.facts(None).found(measured, statement, found)
    },
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let mut phases = case.counted();
    phases.find_map(|counted| Some(finding(counted, of(case, counted)?)))
}

/// The tunnel that carried what was measured beside these counters.
pub(super) fn of<'a>(case: &Case<'a>, counted: Counted<'_>) -> Option<&'a Interface> {
    let (_, host) = case.hosts().next()?;
    let mut interfaces = host.interfaces.iter();
    interfaces.find(|interface| interface.is_tunnel() && carries(counted, interface))
}

/// Whether nearly all that any interface carried is what the tunnel carried.
fn carries(counted: Counted<'_>, tunnel: &Interface) -> bool {
    let bytes = |name: &str| {
        let ways = ["rx_bytes", "tx_bytes"].map(|way| counted.of(name, way));
        ways.into_iter().fold(0, u64::saturating_add)
    };
    let most = counted
        .interfaces()
        .into_iter()
        .map(bytes)
        .max()
        .unwrap_or(0);
    let through = bytes(&tunnel.name);
    through >= LEAST_BYTES && through as f64 >= PAYLOAD_RATIO * most as f64
}

fn finding(counted: Counted<'_>, tunnel: &Interface) -> Finding {
    let name = &tunnel.name;
    let kind = tunnel.kind.as_deref().unwrap_or("tunnel");
    Finding {
        cause: Cause::TunnelInPath,
        place: Place::ThisHost,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Traffic to the far end leaves through {name}, a tunnel ({kind}, packets of up to {} bytes): what was measured is the path through its other end, and what both ends of it can encrypt.",
            tunnel.mtu_bytes
        ),
        evidence: vec![plumb_model::finding::Evidence {
            measurement: counted.measurement.id.clone(),
            field: format!("result.grown.{name}.tx_bytes"),
            value: (counted.of(name, "tx_bytes") as f64).into(),
            rule: "bytes that the tunnel sent meanwhile; sent and received together they are nearly all that any interface carried".to_owned(),
            threshold: (LEAST_BYTES as f64).into(),
        }],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Measure once without the tunnel (or with a route around it for this far end) and compare: `plumb compare`. The difference is the tunnel's.",
            "The same path by its own line.",
        )],
        kb: "path".to_owned(),
    }
}
