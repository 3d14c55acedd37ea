//! Evidence as a sentence with numbers and units.

use plumb_model::context::Phase;
use plumb_model::finding::Evidence;
use plumb_model::run::Run;
use plumb_model::units::capital;

use crate::{number, phase, registry};

/// Such as "95th percentile under upload: 698 ms above idle, limit 60 ms".
pub(crate) fn sentence(run: &Run, evidence: &Evidence) -> String {
    let measurement = run
        .measurements
        .iter()
        .find(|m| m.id == evidence.measurement);
    let (value, threshold) = number::evidence(evidence);
    let when = measurement.map(|m| (registry::phase(m), &m.outcome));
    let when = when.filter(|(phase, outcome)| *phase != Phase::Idle || outcome.ping().is_some());
    let under = when.map_or_else(String::new, |(phase, _)| format!(" {}", phase::when(phase)));
    let field = evidence
        .field
        .strip_prefix("result.")
        .unwrap_or(&evidence.field);
    if let Some((statistic, above)) = of_round_trips(field) {
        return format!("{statistic}{under}: {value}{above}, limit {threshold}");
    }
    let is_load = measurement.is_some_and(|m| registry::shown(m).rate().is_some());
    // What a rule compares stands behind the first comma.
    let what = evidence.rule.split([',', ';']).next().unwrap_or_default();
    let under = match is_load || what.contains("load") || what.contains("idle") {
        true => String::new(),
        false => under,
    };
    format!("{}{under}: {value}, limit {threshold}", capital(what))
}

/// A statistic of round trips in words, and what it is counted from.
fn of_round_trips(field: &str) -> Option<(&'static str, &'static str)> {
    let (of, statistic) = field.rsplit_once('.')?;
    let statistic = match statistic {
        "p50" => "Median",
        "p95" => "95th percentile",
        "p99" => "99th percentile",
        "min" => "Fastest round trip",
        "max" => "Slowest round trip",
        _ => return None,
    };
    let above = match of {
        "increase_s" => " above idle",
        "path.beyond_increase_s" => " above idle, beyond the gateway",
        "path.local_increase_s" => " above idle, before the gateway",
        "rtt_s" => "",
        _ => return None,
    };
    Some((statistic, above))
}
