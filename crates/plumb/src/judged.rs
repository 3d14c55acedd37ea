//! Several saved Runs of a path as one, judged together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use plumb_diagnose::merge::{Part, merge};
use plumb_diagnose::since_good::check_pair;
use plumb_measure::conductor::Conductor;
use plumb_measure::progress::Nobody;
use plumb_measure::record::Judgement;
use plumb_model::run::Run;
use plumb_report::changed::{Changed, Other, changed};

use crate::capture;
use crate::output::read_run;
use crate::target::command_line;

/// Reads a saved Run, or what a capture shows.
pub(crate) fn read(file: &Path) -> anyhow::Result<Run> {
    capture::run_of(file).unwrap_or_else(|| read_run(file))
}

/// How much of a path is judged: all of it, where there is one.
pub(crate) fn judgement(run: &Run) -> Judgement {
    match run.target {
        Some(_) => Judgement::Whole,
        None => Judgement::Part,
    }
}

/// What is not the same in a Run and a saved one, judged by today's rules.
pub(crate) fn beside(other: Other, file: &Path, run: &Run) -> anyhow::Result<Changed> {
    let saved = judged(&[file.to_owned()])?;
    check_pair(&saved, run)?;
    Ok(changed(other, &saved, run))
}

/// One Run of what files hold, with what it means.
///
/// # Errors
/// A file that cannot be read, a Run that is given twice, Runs of different paths, and no measurement in any.
pub(crate) fn judged(files: &[PathBuf]) -> anyhow::Result<Run> {
    let runs = files.iter().map(|file| read(file));
    let runs: Vec<Run> = runs.collect::<anyhow::Result<_>>()?;
    refuse_twice(&runs)?;
    together(runs.into_iter().map(part).collect())
}

/// What is measured once counts once.
pub(crate) fn refuse_twice(runs: &[Run]) -> anyhow::Result<()> {
    for (number, run) in runs.iter().enumerate() {
        let twice = runs.iter().skip(number + 1).any(|other| other.id == run.id);
        anyhow::ensure!(!twice, "the Run {} is given twice: give each once", run.id);
    }
    Ok(())
}

fn together(parts: Vec<Part>) -> anyhow::Result<Run> {
    let whole = merge(parts)?;
    if whole.measurements.is_empty() {
        anyhow::bail!(
            "nothing was measured in what was given: measure first (plumb check HOST -o run.json)"
        );
    }
    let now = Timestamp::now();
    let whole = Run {
        id: uuid::Uuid::now_v7().to_string(),
        command: command_line(),
        plumb: env!("CARGO_PKG_VERSION").to_owned(),
        notes: [
            vec![format!(
                "Judged {now:.0} from saved Runs; nothing was measured for it."
            )],
            whole.notes,
        ]
        .concat(),
        ..whole
    };
    let judgement = judgement(&whole);
    let stop = Arc::default();
    Ok(Conductor::resume(whole, &Nobody, &stop)
        .finish(judgement)?
        .run)
}

/// The Run of a case. One Run that says which causes were looked for stays unchanged; other files are judged together.
pub(crate) fn case(files: &[PathBuf]) -> anyhow::Result<Run> {
    if let [only] = files {
        let run = read(only)?;
        let verdict = run.verdict.as_ref();
        if verdict.is_some_and(|verdict| verdict.looked_for.is_some()) {
            return Ok(run);
        }
        let (id, command, plumb) = (run.id.clone(), run.command.clone(), run.plumb.clone());
        let judged = together(vec![part(run)])?;
        return Ok(Run {
            id,
            command,
            plumb,
            ..judged
        });
    }
    judged(files)
}

/// A Run whose start is not known comes first.
fn part(run: Run) -> Part {
    let began: Option<Timestamp> = run.started.parse().ok();
    Part {
        began_s: began.map_or(0.0, |began| began.as_nanosecond() as f64 / 1e9),
        run,
    }
}
