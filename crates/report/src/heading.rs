//! What stands over a Run: what was measured, when, for how long, and what must be known first.

use jiff::Timestamp;
use plumb_model::finding::{Clearance, NotMeasured};
use plumb_model::run::Run;
use plumb_model::units::capital;

use crate::registry;

/// Seconds from the start of the Run to the end of its last measurement.
pub(crate) fn length_s(run: &Run) -> f64 {
    let ends = run
        .measurements
        .iter()
        .map(|m| m.at_s + m.duration_s)
        .filter(|t| t.is_finite());
    ends.fold(0.0, f64::max)
}

/// A time of RFC 3339 in UTC as people read it; any other text stays unchanged.
pub(crate) fn started(text: &str) -> String {
    let parts = text
        .split_once('T')
        .and_then(|(date, time)| Some((date, time.strip_suffix('Z')?)));
    parts.map_or_else(
        || text.to_owned(),
        |(date, time)| {
            format!(
                "{date} {} UTC",
                time.split_once('.').map_or(time, |(whole, _)| whole)
            )
        },
    )
}

/// `name (address)`, or what is known of it.
pub(crate) fn target(run: &Run) -> String {
    match &run.target {
        Some(target) => match &target.address {
            Some(address) if *address != target.name => format!("{} ({address})", target.name),
            _ => target.name.clone(),
        },
        None => "this host".to_owned(),
    }
}

/// What a Run is of, and when that was: of a capture read alone the file and its first packet, and else the far end and the
/// beginning of the Run.
pub(crate) fn subject(run: &Run) -> (String, String) {
    let recorded = run
        .measurements
        .iter()
        .map(|m| registry::shown(m).recorded());
    let recorded: Option<Vec<(String, Option<f64>)>> = recorded.collect();
    let recorded = recorded.filter(|all| run.target.is_none() && !all.is_empty());
    let Some(recorded) = recorded else {
        return (target(run), started(&run.started));
    };
    let names: Vec<&str> = recorded.iter().map(|(name, _)| name.as_str()).collect();
    let began = recorded.iter().filter_map(|(_, began)| *began);
    let began = began
        .reduce(f64::min)
        .and_then(|s| Timestamp::from_second(s as i64).ok());
    let began = began.map_or_else(|| run.started.clone(), |began| began.to_string());
    (names.join(", "), started(&began))
}

/// What the numbers are worth when the laboratory fell behind.
pub(crate) fn overrun_warning(run: &Run) -> Option<&'static str> {
    run.local.lab.as_ref().is_some_and(|lab| lab.overrun).then_some(
        "The machine could not keep up with the emulated network: packets were late, or the programs at \
         the ends had to wait for a processor, so these numbers say more of this machine than of the scenario. Measure again with nothing else running.",
    )
}

/// What an all-clear needs and is not known, a sentence each; none where the headline says it all.
pub(crate) fn not_measured(run: &Run) -> Vec<String> {
    match is_said_by_the_headline(run) {
        true => Vec::new(),
        false => all_missing(run),
    }
}

/// The same without the reasons.
pub(crate) fn not_measured_in_short(run: &Run) -> Vec<String> {
    match is_said_by_the_headline(run) {
        true => Vec::new(),
        false => each_missing(run, |missing| capital(&missing.what)),
    }
}

fn is_said_by_the_headline(run: &Run) -> bool {
    run.verdict.as_ref().is_some_and(|verdict| {
        verdict.clearance == Some(Clearance::NotMeasured) && verdict.not_measured.len() == 1
    })
}

/// All that an all-clear needs and is not known, whatever the headline says.
pub(crate) fn all_missing(run: &Run) -> Vec<String> {
    each_missing(run, |missing| {
        format!("{}: {}", capital(&missing.what), missing.why)
    })
}

/// A sentence for each thing that is missing, ended by the option that would measure it.
fn each_missing(run: &Run, say: impl Fn(&NotMeasured) -> String) -> Vec<String> {
    let sentence = |missing: &NotMeasured| {
        let option = missing.option.as_ref();
        let helps = option.map_or_else(String::new, |option| {
            format!(" ({option} would measure it)")
        });
        format!("{}{helps}.", say(missing))
    };
    let verdict = run.verdict.iter();
    let missing = verdict.flat_map(|verdict| &verdict.not_measured);
    missing.map(sentence).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_capture_is_of_its_file_and_of_its_own_time() {
        let text = include_str!("../tests/it/runs/every-kind.json");
        let mut run = Run::from_json(text).unwrap();
        run.measurements
            .retain(|m| registry::shown(m).recorded().is_some());
        run.measurements.truncate(1);
        run.target = None;
        let (what, when) = subject(&run);
        let mut recorded = run.measurements.iter();
        let (name, began) = recorded
            .find_map(|m| registry::shown(m).recorded())
            .unwrap();
        assert!(what == name && began.is_some(), "{what}");
        assert_ne!(when, started(&run.started));
    }
}
