//! The resolver that this machine asks for names is far away or slow.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::captured;
use crate::entry::{Entry, Family};
use crate::evidence::{Names, fact};
use crate::facts::seconds;

/// In seconds, for a name that it knows: what people notice as a wait (100 ms: Nielsen, Usability Engineering, chapter 5)
/// is then used up before a connection is begun.
const SLOW_S: f64 = 0.1;

/// Of so many answers the median is known.
const ENOUGH_ANSWERS: u64 = 3;

const CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a resolver nearby, or a cache on this machine, answers in a part of the time",
    needs: &[Need::Resolver],
    resembles: &[(
        Cause::Distance,
        "there the far end is as far away as the resolver",
    )],
    examine: |case| {
        let found = examine(case).into_iter();
        found.chain(captured::names(case, false)).collect()
    },
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let asked = case.name_servers().filter(|names| !names.is_nobodys());
    // The first that answers is the one that programs wait for.
    let facts = case.facts(None);
    let first: Option<Names<'_>> = asked
        .into_iter()
        .find(|names| names.asked.result.received > 0);
    let first = facts.known("answers of a resolver", first)?;
    let rtt = first
        .asked
        .result
        .rtt_s
        .filter(|rtt| rtt.count >= ENOUGH_ANSWERS)?;
    let name = "median time of an answer";
    facts.at_least(name, seconds(rtt.p50), SLOW_S).then(|| Finding {
        cause: Cause::ResolverSlow,
        place: Place::ThisHost,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The resolver {} takes {} for a name that it knows: every new name waits so long before anything else begins.",
            first.asked.result.address,
            human_seconds(rtt.p50)
        ),
        evidence: vec![fact(
            first.asked.measurement,
            "rtt_s.p50",
            rtt.p50,
            "median time of an answer from what the resolver knows already",
            SLOW_S,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Ask the router or the provider's own resolver, or run a cache (systemd-resolved, dnsmasq, unbound).",
            "Known names are answered within a round trip to the provider.",
        )],
        kb: "port".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{asked, found_in};

    #[test]
    fn the_first_that_answers_is_waited_for() {
        let found = |servers: &[(u64, f64)]| {
            let servers = servers.iter();
            let asked = servers.map(|(answers, rtt_s)| asked("9.9.9.9", 5, *answers, *rtt_s));
            found_in(CAUSE.examine, &asked.collect::<Vec<_>>()).len()
        };
        assert_eq!(found(&[(5, 0.02)]), 0);
        assert_eq!(found(&[(5, 0.15)]), 1);
        assert_eq!(found(&[(5, 0.02), (5, 0.3)]), 0);
        assert_eq!(found(&[(0, 0.0), (5, 0.3)]), 1);
    }
}
