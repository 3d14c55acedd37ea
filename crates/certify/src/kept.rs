//! Runs that are kept, to be judged anew when rules change: `certify/kept/SET/TRIAL.json.gz`.

use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;

use anyhow::Context as _;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use plumb_diagnose::{Case, Scope, diagnose};
use plumb_model::run::Run;
use plumb_model::series::Series;

use crate::judge::{Outcome, Said};
use crate::library::{Library, Set, folder};
use crate::results::Line;
use crate::seed;
use crate::trials::Trial;
use crate::words;

/// The share of trials whose Runs are kept: all together they are to take no more than 10 MB.
const KEPT_RATIO: f64 = 0.25;

/// Whether the Run of a trial is kept: the same every time.
pub(crate) fn is_kept(trial: &Trial) -> bool {
    seed::share(&[trial.set.name(), &trial.id(), "kept"]) < KEPT_RATIO
}

fn file(set: Set, id: &str) -> PathBuf {
    folder()
        .join("kept")
        .join(set.name())
        .join(format!("{id}.json.gz"))
}

/// The series that rules read.
const READ: [&str; 8] = [
    "bps",
    "rtt",
    "rtt_gateway",
    "rtt_icmp",
    "srtt_s",
    "in_flight_bytes",
    "retransmits",
    "spurious_retransmits",
];

/// Keeps a Run, reduced to what it is judged by; whole where it would be judged otherwise.
pub(crate) fn keep(trial: &Trial, run: &Run) -> anyhow::Result<()> {
    let mut reduced = run.clone();
    for measurement in &mut reduced.measurements {
        let series = &mut measurement.series;
        series.retain(|name, _| READ.contains(&name.as_str()));
        series.values_mut().for_each(shorten);
    }
    let kept = match judged(reduced.clone()) == judged(run.clone()) {
        true => &reduced,
        false => run,
    };
    let path = file(trial.set, &trial.id());
    std::fs::create_dir_all(path.parent().context("a folder")?)?;
    let mut packed = GzEncoder::new(File::create(path)?, Compression::best());
    serde_json::to_writer(&mut packed, kept)?;
    packed.finish()?;
    Ok(())
}

/// Times to the millisecond, and values to four digits: the rest of a number is most of a packed Run.
fn shorten(series: &mut Series) {
    for time in &mut series.t_s {
        *time = (*time * 1e3).round() / 1e3;
    }
    for value in series.values.iter_mut().flatten() {
        *value = format!("{value:.3e}").parse().unwrap_or(*value);
    }
}

/// What the rules of today make of a Run.
fn judged(mut run: Run) -> Said {
    let (findings, verdict) = diagnose(&Case::of(&run), Scope::Path);
    (run.findings, run.verdict) = (findings, Some(verdict));
    Said::of(&run)
}

/// The same of the Run that was kept of a trial; none where it was not kept.
fn today(trial: &Trial) -> anyhow::Result<Option<Said>> {
    let Ok(packed) = File::open(file(trial.set, &trial.id())) else {
        return Ok(None);
    };
    let run: Run = serde_json::from_reader(GzDecoder::new(packed))?;
    Ok(Some(judged(run)))
}

/// Compares what was said of each kept Run with what the rules of today say.
pub(crate) fn replay(library: &Library, set: Set, lines: &[Line]) -> anyhow::Result<String> {
    let mut text = String::new();
    let (mut kept, mut right_then, mut right_now) = (0, 0, 0);
    for line in lines.iter().filter(|line| line.trial.set == set) {
        let (Some(checked), Some(said)) = (&line.checked, today(&line.trial)?) else {
            continue;
        };
        let outcome = |said| words::judged(library, &line.trial, said).outcome;
        let (then, now) = (outcome(&checked.said), outcome(&said));
        kept += 1;
        right_then += usize::from(then >= Outcome::Ambiguous);
        right_now += usize::from(now >= Outcome::Ambiguous);
        if then != now {
            let (id, then, now) = (line.trial.id(), then.words(), now.words());
            writeln!(text, "{id}: {then} before, {now} now: {}", said.headline)?;
        }
    }
    writeln!(
        text,
        "{kept} Runs: {right_then} right when they were made, {right_now} now"
    )?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use plumb_model::series::Unit;

    use super::*;
    use crate::results::Results;

    /// What the rules of today make of every kept Run. A changed rule shows here what it breaks, and what it repairs:
    /// `INSTA_UPDATE=always cargo test -p plumb-certify kept`.
    #[test]
    fn what_rules_make_of_kept_runs_is_known() {
        let library = Library::read(&folder()).unwrap();
        let mut judged = Vec::new();
        for set in [Set::Fit, Set::Choose, Set::Certify] {
            let results = Results::of(folder().join(format!("results/{}.jsonl", set.name())));
            for line in results.read().unwrap() {
                let Some(said) = today(&line.trial).unwrap() else {
                    continue;
                };
                let outcome = words::judged(&library, &line.trial, &said).outcome.words();
                let causes = said.findings.iter().map(|named| named.cause.as_str());
                let causes: Vec<&str> = causes.take(3).collect();
                let id = line.trial.id();
                judged.push(format!(
                    "{} {id}: {outcome}: {}",
                    set.name(),
                    causes.join(", ")
                ));
            }
        }
        judged.sort();
        judged.dedup();
        insta::assert_snapshot!("kept", judged.join("\n"));
    }

    #[test]
    fn numbers_are_shortened_and_what_was_lost_stays_so() {
        let mut series = Series::new(Unit::Seconds);
        series.push(0.100_049_9, Some(0.012_345_678));
        series.push(0.2, None);
        series.push(0.3, Some(123_456_789.0));
        shorten(&mut series);
        assert_eq!(series.t_s, [0.1, 0.2, 0.3]);
        assert_eq!(series.values, [Some(0.012_35), None, Some(123_500_000.0)]);
    }
}
