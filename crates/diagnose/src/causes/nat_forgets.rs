//! A NAT or firewall on the path forgets silent connections early.
//!
//! The next byte of such a connection is lost or reset, and the program that uses it hangs until it notices.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::port::FirstWord;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Port, fact};

/// A NAT keeps a connection for so long at least, in seconds: 2 h 4 min (RFC 5382, REQ-5), longer than the 2 h after which
/// keep-alives begin (RFC 1122, section 4.2.3.6).
const KEPT_S: f64 = 7440.0;

/// So long, in seconds, is recommended even for a flow of UDP (RFC 4787, REQ-5); what is forgotten sooner breaks programs that
/// keep their connections alive every few minutes.
const WARNING_S: f64 = 300.0;

/// The far end spoke first, and was not heard.
const FAR_END_CONFIDENCE: f64 = 0.95;

/// One byte of ours was not acknowledged, or reset; the far end may have lost its own state.
const THIS_HOST_CONFIDENCE: f64 = 0.85;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "with keep-alives sent more often than that, or without the NAT, the connection survives its silence",
    needs: &[Need::SilentConnections],
    resembles: &[(
        Cause::Outage,
        "an outage loses what is sent at any time, and not only after a silence",
    )],
    examine: |case| {
        let found = examine(case).into_iter().collect();
        let measured = (
            "a connection that was silent for a time",
            case.ports().any(|port| port.result.idle.is_some()),
        );
        let statement = "it was lost after less than is usual";
        case.facts(None).found(measured, statement, found)
    },
    ..Entry::PLAIN
};

/// The shortest silence that was too long, of all ports.
fn examine(case: &Case<'_>) -> Option<Finding> {
    let lost_s = |port: &Port<'_>| port.result.idle.as_ref().and_then(|idle| idle.lost_s);
    let forgotten = case
        .ports()
        .filter_map(|port| Some((port, lost_s(&port).filter(|lost_s| *lost_s < KEPT_S)?)));
    let (port, lost_s) = forgotten.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let idle = port.result.idle.as_ref()?;
    let kept = idle.kept_s.map_or_else(String::new, |kept_s| {
        format!(" ({} are not too long)", human_seconds(kept_s))
    });
    Some(Finding {
        cause: Cause::NatForgets,
        place: Place::Path,
        severity: match lost_s < WARNING_S {
            true => Severity::Warning,
            false => Severity::Info,
        },
        confidence: match idle.first_word {
            FirstWord::FarEnd => FAR_END_CONFIDENCE,
            FirstWord::ThisHost => THIS_HOST_CONFIDENCE,
        },
        matters_for: Vec::new(),
        summary: format!(
            "Something on the path to port {} forgets a connection that is silent for {}{kept}: the next byte is lost, and the program that uses it hangs.",
            port.result.port,
            human_seconds(lost_s),
        ),
        evidence: vec![fact(
            port.measurement,
            "idle.lost_s",
            lost_s,
            "shortest silence after which no byte got through, against what is asked of NATs (RFC 5382)",
            KEPT_S,
        )],
        fixes: vec![
            Fix::advice(
                Actor::ThisHost,
                format!(
                    "Have the program send keep-alives at least every {}: its own, such as ServerAliveInterval of SSH, or TCP's (TCP_KEEPIDLE).",
                    human_seconds(lost_s / 2.0)
                ),
                "The connection survives a silence.",
            ),
            Fix::advice(
                Actor::Router,
                "Where the NAT or firewall is one's own, keep established connections for 2 h 4 min and longer.",
                "`plumb port HOST PORT --idle 2h` finds no silence that is too long.",
            ),
        ],
        kb: "port".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing;
    use plumb_model::results::Outcome;
    use plumb_model::results::port::{IdleResult, PortState};

    fn found(lost_s: Option<f64>, closed_s: Option<f64>) -> Vec<Severity> {
        let mut port = testing::connects("192.0.2.1", 5, 0.01, PortState::Open);
        let Outcome::Port(result) = &mut port.outcome else {
            panic!("a port");
        };
        result.idle = Some(IdleResult {
            kept_s: Some(30.0),
            lost_s,
            closed_s,
            tried: 16,
            first_word: FirstWord::FarEnd,
        });
        let findings = testing::found_in(CAUSE.examine, &[port]);
        findings.iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn what_is_forgotten_before_keep_alives_is_found() {
        assert_eq!(found(Some(60.0), None), [Severity::Warning]);
        assert_eq!(found(Some(1800.0), None), [Severity::Info]);
        assert_eq!(found(Some(7500.0), None), [], "as long as RFC 5382 asks");
        assert_eq!(found(None, Some(60.0)), [], "the server's own end");
        assert_eq!(found(None, None), []);
    }
}
