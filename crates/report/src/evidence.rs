//! Evidence as a sentence with numbers and units.

use plumb_model::context::Phase;
use plumb_model::finding::{Evidence, Finding, Observed};
use plumb_model::run::Run;
use plumb_model::units::capital;

use crate::{number, phase, registry};

/// Such as "95th percentile under upload: 698 ms above idle, limit 60 ms", and behind it what the limit is where the rule says so
/// and there is room. The words are cut where it would be longer than so many characters, and the numbers never.
pub(crate) fn sentence(run: &Run, evidence: &Evidence, most: usize) -> String {
    let (what, numbers) = parts(run, evidence);
    explained(evidence, &what, &numbers, most).unwrap_or_else(|| fit(&what, &numbers, most))
}

/// Every piece of evidence of a finding as a whole sentence, each once.
pub(crate) fn sentences(run: &Run, finding: &Finding) -> Vec<String> {
    let evidence = finding.evidence.iter();
    let mut all: Vec<String> = evidence.map(|one| sentence(run, one, usize::MAX)).collect();
    all.dedup();
    all
}

/// All of it, where the rule says what the limit is and there is room.
fn explained(evidence: &Evidence, what: &str, numbers: &str, most: usize) -> Option<String> {
    let whole = format!("{what}: {numbers} ({})", compared_with(evidence)?);
    (whole.chars().count() <= most).then_some(whole)
}

/// What the limit is, which a rule says behind "against": such as "those over IPv4". None needs no explanation.
fn compared_with(evidence: &Evidence) -> Option<&str> {
    let (_, with) = evidence.rule.split_once(", against ")?;
    let with = with.split([';', ':']).next().unwrap_or_default();
    (!["", "none"].contains(&with)).then_some(with)
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
            format!("{value}{above}{}", limit(evidence, &value, &threshold)),
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
        format!("{value}{}", limit(evidence, &value, &threshold)),
    )
}

/// The limit of a value, to stand behind it. One that is compared with another value is above or below it.
fn limit(evidence: &Evidence, value: &str, threshold: &str) -> String {
    let other = compared_with(evidence).is_some();
    match (&evidence.value, &evidence.threshold) {
        (Observed::Number(found), Observed::Number(0.0)) if *found > 0.0 && !other => {
            ", where 0 is normal".to_owned()
        }
        // It came to nothing where anything would do.
        (Observed::Number(0.0), Observed::Number(0.0)) => String::new(),
        // The digits that are shown are the same.
        _ if other && value == threshold => String::new(),
        // Where less is the evidence: a wait that is gone, a window that is too small.
        (Observed::Number(found), Observed::Number(limit)) if found < limit => {
            format!(", below {threshold}")
        }
        // A prefix that addresses are of.
        (Observed::Word(_), Observed::Word(prefix)) if prefix.contains('/') => {
            format!(", of {threshold}")
        }
        (_, Observed::Word(_)) => format!(", not {threshold}"),
        _ if other => format!(", above {threshold}"),
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
    fn a_limit_of_nothing_is_said_in_words() {
        let of = |value: f64, threshold: f64| {
            let evidence = Evidence {
                measurement: "m1".to_owned(),
                field: "result.lost".to_owned(),
                value: value.into(),
                rule: String::new(),
                threshold: threshold.into(),
            };
            limit(&evidence, "3", "4")
        };
        assert_eq!(of(3.0, 0.0), ", where 0 is normal");
        assert_eq!(of(0.0, 0.0), "");
        assert_eq!(of(3.0, 4.0), ", below 4");
        assert_eq!(of(5.0, 4.0), ", limit 4");
        let word = |value: &str, usual: &str| {
            let evidence = Evidence {
                measurement: "m1".to_owned(),
                field: "result.state".to_owned(),
                value: value.into(),
                rule: String::new(),
                threshold: usual.into(),
            };
            limit(&evidence, value, usual)
        };
        assert_eq!(word("filtered", "refused"), ", not refused");
        assert_eq!(word("100.64.0.9", "100.64.0.0/10"), ", of 100.64.0.0/10");
    }

    #[test]
    fn what_the_limit_is_stands_behind_it_where_there_is_room() {
        let of = |value: f64, rule: &str, threshold: f64, most| {
            let evidence = Evidence {
                measurement: "m1".to_owned(),
                field: "result.connected".to_owned(),
                value: value.into(),
                rule: rule.to_owned(),
                threshold: threshold.into(),
            };
            let (value, threshold) = number::evidence(&evidence);
            let numbers = format!("{value}{}", limit(&evidence, &value, &threshold));
            let what = capital(rule.split(',').next().unwrap_or_default());
            explained(&evidence, &what, &numbers, most)
                .unwrap_or_else(|| fit(&what, &numbers, most))
        };
        let rule = "connections over IPv6, against those over IPv4; three of each";
        assert_eq!(
            of(0.0, rule, 3.0, 80),
            "Connections over IPv6: 0, below 3 (those over IPv4)"
        );
        assert_eq!(of(0.0, rule, 3.0, 40), "Connections over IPv6: 0, below 3");
        assert_eq!(
            of(5.0, rule, 3.0, 80),
            "Connections over IPv6: 5, above 3 (those over IPv4)"
        );
        assert_eq!(
            of(3.0, rule, 3.0, 80),
            "Connections over IPv6: 3 (those over IPv4)"
        );
        let none = "packets that the table refused, against none";
        assert_eq!(
            of(5.0, none, 0.0, 80),
            "Packets that the table refused: 5, where 0 is normal"
        );
    }

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
