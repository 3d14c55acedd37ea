//! What a check of this machine, its link, gateway and resolver comes to.

use plumb_model::finding::{Severity, Verdict};
use plumb_model::loss::at_most_ratio;
use plumb_model::protocol::Protocol;
use plumb_model::run::Run;
use plumb_model::units::human_seconds;

use super::headline::of_findings;
use crate::host::is_of_counters;
use crate::needs;
use crate::signs::percent;
use crate::{Case, evidence};

/// The sentence, and which causes were looked for. It clears nothing beyond the gateway.
pub fn local(run: &Run) -> Verdict {
    let case = Case::of(run);
    let worse = run.findings.iter().filter(|f| f.severity > Severity::Info);
    // What was counted since the machine booted need not be so now.
    let (counted, mut now): (Vec<_>, Vec<_>) = worse.partition(|f| is_of_counters(f));
    let headline = match (now.first(), counted.as_slice()) {
        (Some(_), _) => of_findings(now.drain(..1)),
        (None, []) => fine(&case),
        (None, counted) => {
            let names: Vec<&str> = counted.iter().map(|f| f.cause.name()).collect();
            format!(
                "{} Worth fixing, by what was counted since it booted: {}.",
                fine(&case),
                names.join(", ")
            )
        }
    };
    Verdict {
        looked_for: Some(needs::looked_for(&case, &run.findings)),
        ..Verdict::of_a_part(headline)
    }
}

/// It clears the way out of this machine only where both its gateway and a resolver answered.
fn fine(case: &Case<'_>) -> String {
    let gateway = case.idle().and_then(of_gateway);
    let resolvers = case.measurements.iter().filter_map(|m| m.outcome.ping());
    let answered = resolvers
        .filter(|ping| ping.protocol == Protocol::Dns)
        .filter_map(|ping| ping.rtt_s);
    let resolver = answered.map(|rtt| rtt.p50).reduce(f64::min);
    let resolver = resolver.map(|rtt| format!("the resolver answers in {}", human_seconds(rtt)));
    let known = gateway.is_some() && resolver.is_some();
    let begins = match known {
        true => "No fault found on this machine:",
        false => "Inconclusive: nothing wrong was found in this machine itself, but",
    };
    format!(
        "{begins} {}, {}. The line beyond the gateway was not measured: that takes a far end.",
        gateway.unwrap_or_else(|| "no gateway answered".to_owned()),
        resolver.unwrap_or_else(|| "no resolver answered".to_owned())
    )
}

fn of_gateway(idle: evidence::Idle<'_>) -> Option<String> {
    let rtt = idle.result.rtt_s?;
    Some(format!(
        "the gateway answers in {} (95th percentile {}), and loses less than {}",
        human_seconds(rtt.p50),
        human_seconds(rtt.p95),
        percent(at_most_ratio(idle.sent(), idle.lost()))
    ))
}
