//! A resolver that this machine asks for names does not answer.
//!
//! The resolver of the C library waits five seconds for it, each time and for each name, before it asks the next one
//! (resolv.conf(5), `timeout`).

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;

use crate::Case;
use crate::captured;
use crate::entry::{Entry, Family};
use crate::evidence::{Names, fact};

/// Questions without any answer; fewer may be lost by chance.
const ENOUGH_QUESTIONS: u64 = 3;

const CONFIDENCE: f64 = 0.95;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "with that resolver taken out of the list, or reachable again, names are found at once",
    needs: &[Need::Resolver],
    resembles: &[(Cause::ResolverSlow, "there the resolver answers, and late")],
    yields_to: &[Cause::CaptivePortal],
    examine: |case| {
        let found = examine(case).into_iter();
        found.chain(captured::names(case, true)).collect()
    },
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let asked: Vec<Names<'_>> = case
        .name_servers()
        .filter(|names| !names.is_nobodys())
        .collect();
    let is_silent = |names: &Names<'_>| {
        names.asked.result.received == 0 && names.asked.result.sent >= ENOUGH_QUESTIONS
    };
    let facts = case.facts(None);
    facts.known("questions to a resolver", asked.first())?;
    let place = asked.iter().position(is_silent);
    facts.is(
        "a resolver answers none of several questions",
        place.is_some(),
    );
    let place = place?;
    let silent = asked.get(place)?;
    let others = asked
        .iter()
        .filter(|names| names.asked.result.received > 0)
        .count();
    // A later one is asked only when those before it are silent.
    let (severity, consequence) = match (place, others) {
        (_, 0) => (
            Severity::Critical,
            "no other answers either, so that no name is found",
        ),
        (0, _) => (
            Severity::Warning,
            "it is asked first, so that every look-up waits for it in vain",
        ),
        _ => (
            Severity::Info,
            "others are asked before it, so that only they are missed",
        ),
    };
    Some(Finding {
        cause: Cause::ResolverSilent,
        place: Place::ThisHost,
        severity,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The resolver {} does not answer: none of {} questions; {consequence}.",
            silent.asked.result.address, silent.asked.result.sent
        ),
        evidence: vec![fact(
            silent.asked.measurement,
            "received",
            0.0,
            "answers to questions that every resolver can answer from what it knows",
            silent.asked.result.sent as f64,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Take it out of the list of resolvers (/etc/resolv.conf, or where the network's settings come from: DHCP, the VPN), or repair what keeps it from being reached.",
            "Every resolver of the list answers.",
        )],
        kb: "port".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{asked, found_in};

    #[test]
    fn the_first_that_is_silent_matters_most() {
        let found = |answers: &[u64]| {
            let servers = answers
                .iter()
                .map(|answers| asked("9.9.9.9", 5, *answers, 0.01));
            let servers: Vec<_> = servers.collect();
            let found = found_in(CAUSE.examine, &servers).into_iter();
            found.map(|finding| finding.severity).collect::<Vec<_>>()
        };
        assert_eq!(found(&[5, 5]), []);
        assert_eq!(found(&[0, 5]), [Severity::Warning]);
        assert_eq!(found(&[5, 0]), [Severity::Info]);
        assert_eq!(found(&[0]), [Severity::Critical]);
        assert_eq!(found(&[4]), []);
        // No answer from an address that no host has is right.
        let nobody = [asked("192.0.2.1", 3, 0, 0.0), asked("9.9.9.9", 5, 5, 0.01)];
        assert_eq!(found_in(CAUSE.examine, &nobody), []);
    }
}
