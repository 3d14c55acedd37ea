//! Evidence as a sentence with numbers and units.

use plumb_model::context::Phase;
use plumb_model::finding::{Evidence, Finding, Observed};
use plumb_model::run::Run;
use plumb_model::units::capital;

use crate::{number, phase, registry};

/// Such as "95th percentile under upload: 698 ms above idle, limit 60 ms". The words are cut where it would be longer than so many
/// characters, and the numbers never.
pub(crate) fn sentence(run: &Run, evidence: &Evidence, most: usize) -> String {
    let (what, numbers) = parts(run, evidence);
    fit(&what, &numbers, most)
}

/// Every piece of evidence of a finding as a whole sentence, each once.
pub(crate) fn sentences(run: &Run, finding: &Finding) -> Vec<String> {
    let evidence = finding.evidence.iter();
    let mut all: Vec<String> = evidence.map(|one| sentence(run, one, usize::MAX)).collect();
    all.dedup();
    all
}

/// Both with a colon between; of the words as many as there is room for.
fn fit(what: &str, numbers: &str, most: usize) -> String {
    let room = most.saturating_sub(numbers.chars().count() + 2);
    if what.chars().count() <= room {
        return format!("{what}: {numbers}");
    }
    let kept: String = what.chars().take(room.saturating_sub(1)).collect();
    let words = kept
        .rsplit_once(' ')
        .map_or(kept.as_str(), |(words, _)| words);
    let words = words.trim_end_matches([':', ',', ';']);
    format!("{words}…: {numbers}")
}

/// What was measured, and its value with the limit.
fn parts(run: &Run, evidence: &Evidence) -> (String, String) {
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
        return (
            format!("{statistic}{under}"),
            format!("{value}{above}{}", limit(evidence, &threshold)),
        );
    }
    let is_load = measurement.is_some_and(|m| registry::shown(m).rate().is_some());
    // What a rule compares stands behind the first comma, and why behind a colon.
    let what = evidence
        .rule
        .split([',', ';', ':'])
        .next()
        .unwrap_or_default();
    let under = match is_load || what.contains("load") || what.contains("idle") {
        true => String::new(),
        false => under,
    };
    (
        format!("{}{under}", capital(what)),
        format!("{value}{}", limit(evidence, &threshold)),
    )
}

/// The limit of a value, to stand behind it.
fn limit(evidence: &Evidence, threshold: &str) -> String {
    match (&evidence.value, &evidence.threshold) {
        (Observed::Number(value), Observed::Number(0.0)) if *value > 0.0 => {
            ", where 0 is normal".to_owned()
        }
        // It came to nothing where anything would do.
        (Observed::Number(0.0), Observed::Number(0.0)) => String::new(),
        _ => format!(", limit {threshold}"),
    }
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
        "one_way.up_s" => " above idle, upwards",
        "one_way.down_s" => " above idle, downwards",
        "path.beyond_increase_s" => " above idle past the gateway",
        "path.local_increase_s" => " above idle at the gateway",
        "rtt_s" => "",
        _ => return None,
    };
    Some((statistic, above))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_and_numbers_are_not() {
        assert_eq!(
            fit("Median wait", "3 ms, limit 1 ms", 29),
            "Median wait: 3 ms, limit 1 ms"
        );
        assert_eq!(
            fit("Median wait", "3 ms, limit 1 ms", 28),
            "Median…: 3 ms, limit 1 ms"
        );
        let what = "Datagrams waited: less proves it";
        assert_eq!(fit(what, "3 ms", 26), "Datagrams waited…: 3 ms");
        assert_eq!(fit("Median", "3 ms, limit 1 ms", 5), "…: 3 ms, limit 1 ms");
    }
}
