//! A captive portal answers in place of the Internet until the user logs in.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;

use super::transparent_proxy::{answered_for_nobody, sends_elsewhere};
use crate::Case;
use crate::entry::{Entry, Family, every_sign};
use crate::evidence::fact;

/// No host has the address that answered; a proxy might redirect too.
const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "after the login no server answers for an address that no host has",
    needs: &[Need::Connections],
    resembles: &[(
        Cause::TransparentProxy,
        "there the answer is a server's, and sends nowhere else",
    )],
    examine: |case| {
        let found = examine(case).into_iter().collect();
        let measured = (
            "a connection to an address that no host has",
            case.ports().any(|port| port.is_nobodys()),
        );
        let statement = "it was answered, and sent elsewhere by HTTP";
        case.facts(None).found(measured, statement, found)
    },
    explains: every_sign,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let port = answered_for_nobody(case)?;
    let status = sends_elsewhere(port)?;
    Some(Finding {
        cause: Cause::CaptivePortal,
        place: Place::LocalSegment,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "A captive portal is probably in the way: a request to {}, an address that no host has, was answered and sent elsewhere (HTTP {status}). Until a user logs in, most traffic goes nowhere.",
            port.result.address
        ),
        evidence: vec![fact(
            port.measurement,
            "http_status",
            f64::from(status),
            "an answer that sends elsewhere (3xx, or 511 of RFC 6585) for an address that is for documents alone (RFC 5737)",
            300.0,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Open a browser and log in to the network (any page over plain http:// leads there), then check again.",
            "No server answers for that address.",
        )],
        kb: "port".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{answering, found_in};
    use plumb_model::results::port::PortState;

    #[test]
    fn a_portal_sends_elsewhere_and_a_proxy_does_not() {
        let found = |address, status| {
            let answered = answering(address, 1, 0.01, PortState::Open, status);
            found_in(CAUSE.examine, &[answered]).len()
        };
        assert_eq!(found("192.0.2.1", Some(302)), 1);
        assert_eq!(found("192.0.2.1", Some(511)), 1);
        assert_eq!(found("192.0.2.1", Some(200)), 0);
        assert_eq!(found("192.0.2.1", None), 0);
        assert_eq!(found("192.0.2.9", Some(302)), 0, "the far end's own page");
    }
}
