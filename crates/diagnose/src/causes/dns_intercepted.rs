//! A machine on the path answers questions for names in place of the server that was asked.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::evidence::{Names, fact};

/// No host has the address that answered.
const CONFIDENCE: f64 = 0.98;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "through a tunnel, or over TLS or HTTPS, only the server that was asked answers",
    needs: &[Need::Connections],
    resembles: &[(
        Cause::TransparentProxy,
        "there connections are answered, and not questions for names",
    )],
    yields_to: &[Cause::CaptivePortal],
    examine: |case| {
        let found = case
            .name_servers()
            .find_map(intercepted)
            .into_iter()
            .collect();
        let measured = (
            "questions to an address that no resolver has",
            case.name_servers().any(|names| names.is_nobodys()),
        );
        let statement = "they are answered";
        case.facts(None).found(measured, statement, found)
    },
    ..Entry::PLAIN
};

fn intercepted(names: Names<'_>) -> Option<Finding> {
    let answers = names.asked.result.received;
    (names.is_nobodys() && answers > 0).then(|| Finding {
        cause: Cause::DnsIntercepted,
        place: Place::Path,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Name look-ups are intercepted: questions to {}, an address that no host has, were answered. The same machine answers for every name server, and may answer something else.",
            names.asked.result.address
        ),
        evidence: vec![fact(
            names.asked.measurement,
            "received",
            answers as f64,
            "answers of a name server at an address that is for documents alone (RFC 5737)",
            0.0,
        )],
        fixes: vec![Fix::advice(
            Actor::Router,
            "Look whether the own router does it (a filter for children or advertising, a login). Where it is the provider, encrypted DNS (DoT, DoH) or a tunnel passes it by.",
            "No server answers for that address.",
        )],
        kb: "port".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{asked, found_in};

    #[test]
    fn nobody_answers_at_an_address_for_documents() {
        let found =
            |address, answers| found_in(CAUSE.examine, &[asked(address, 3, answers, 0.01)]).len();
        assert_eq!(found("192.0.2.1", 1), 1);
        assert_eq!(found("192.0.2.1", 0), 0);
        assert_eq!(found("9.9.9.9", 3), 0);
    }
}
