//! `plumb rehearse`: tries the fixes of a Run in the twin of its path, where they can do no harm.

mod in_twin;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_diagnose::rehearsed::{TWIN_RATIO, changes, differs, rank, settle, verdict};
use plumb_lab::twin::{Change, Trial, figures, loads, trials, twin};
use plumb_measure::record::{Judgement, Measured, Record};
use plumb_model::results::Outcome;
use plumb_model::results::rehearsal::{PathFigures, RehearsalResult};
use plumb_model::run::Run;
use plumb_model::units::{human_seconds, share};
use plumb_net::clock;

use self::in_twin::{InTwin, Seen, Setup};
use crate::exit::{Ends, stop_flag};
use crate::output::{Output, read_run, say};
use crate::quantity::time_above_zero;
use crate::target::command_line;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: the twin has what the Run says about the path (plumb lab from RUN shows it, and what is not known), and stands on this \
machine, which must keep up with its rates. Changes that no lab has (drivers, routers, radios) are not rehearsed, and the Run says \
why. A gain of less than 15 % shows nothing.";

/// Phases shorter than this show no steady rate, in seconds (`plumb check` has none).
const LEAST_S: f64 = 4.0;

/// Phases longer than this show no more, in seconds: a queue of 700 ms is full after ten.
const MOST_S: f64 = 30.0;

#[derive(Args)]
pub(crate) struct Arguments {
    /// A saved Run of plumb check
    run: PathBuf,
    /// How long each direction is loaded [default: as long as in the Run]
    #[arg(short = 't', long, value_name = "TIME", value_parser = time_above_zero)]
    duration: Option<Duration>,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let original = read_run(&arguments.run)?;
    let twin = twin(&original)?;
    let trials = trials(&original, &twin);
    let output = arguments.output.begin()?;
    let cancel = stop_flag(Ends::ByItself)?;
    let folder = tempfile::tempdir().context("cannot make a temporary directory")?;
    let mut loads = loads(&original)?;
    let longest_s = loads.duration_s;
    loads.duration_s = match arguments.duration {
        Some(duration) => duration.as_secs_f64(),
        None => loads.duration_s.clamp(LEAST_S, MOST_S),
    };
    let in_twin = InTwin {
        folder: folder.path(),
        loads,
    };
    let mut rehearsal = Rehearsal {
        in_twin,
        twin: &twin.text,
        done: Vec::new(),
        record: record(&original),
        results: Vec::new(),
    };
    let possible = trials.iter().filter(|trial| trial.change.is_ok()).count();
    say(format_args!(
        "{} measurements of {} each in the twin of the path, at most",
        possible + 1,
        human_seconds(rehearsal.in_twin.takes_s())
    ));
    if rehearsal.in_twin.loads.duration_s < longest_s {
        rehearsal.record.note(format!(
            "The twin was loaded for {} in each direction, and the path for {}: large queues fill slowly.",
            human_seconds(rehearsal.in_twin.loads.duration_s),
            human_seconds(longest_s)
        ));
    }
    let before = rehearsal.as_it_is(figures(&original))?;
    for (number, trial) in trials.iter().enumerate() {
        if cancel.load(Ordering::Relaxed) {
            break;
        }
        let causes: Vec<&str> = trial.fixes.iter().map(|fix| fix.cause.name()).collect();
        say(format_args!(
            "{} of {}: against {}",
            number + 1,
            trials.len(),
            causes.join(" and ")
        ));
        rehearsal.rehearse(trial, before);
    }
    output.emit(rehearsal.finish(&original, &arguments.run.display().to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// A Run about the original's far end, which is not sent anything.
fn record(original: &Run) -> Record {
    match &original.target {
        Some(target) => {
            let address = target.address.as_ref();
            let address = address.and_then(|address| address.parse().ok());
            Record::begin(command_line(), &target.name, address)
        }
        None => Record::here(command_line()),
    }
}

/// What is rehearsed, and what came of it so far.
struct Rehearsal<'a> {
    in_twin: InTwin<'a>,
    twin: &'a str,
    /// Changes that were measured: two findings may ask for one.
    done: Vec<(Change, PathFigures)>,
    record: Record,
    /// When each began and how long it took, on the monotonic clock, in nanoseconds.
    results: Vec<(u64, u64, RehearsalResult)>,
}

impl Rehearsal<'_> {
    /// The twin without any fix.
    fn as_it_is(&mut self, original: PathFigures) -> anyhow::Result<PathFigures> {
        let began = clock::monotonic_ns();
        let seen = self.in_twin.measure(&Setup {
            text: self.twin,
            shapers: &[],
            cc: None,
        })?;
        let after = self.take(seen);
        if let Some((figure, ratio)) =
            differs(&original, &after).filter(|(_, ratio)| *ratio > TWIN_RATIO)
        {
            self.record.note(format!(
                "The twin differs from the path that was measured by {} in {}: what fixes gain there is as uncertain.",
                share(ratio),
                figure.shown()
            ));
        }
        let result = RehearsalResult {
            fixes: Vec::new(),
            rank: None,
            before: original,
            after: Some(after),
            why_not: None,
            gains: Vec::new(),
            harms: Vec::new(),
        };
        self.keep(began, result);
        Ok(after)
    }

    fn rehearse(&mut self, trial: &Trial, before: PathFigures) {
        let began = clock::monotonic_ns();
        let (after, why_not) = match self.measured(trial) {
            Ok(after) => (Some(after), None),
            Err(why) => (None, Some(why)),
        };
        let (gains, harms) = after.map_or_else(Default::default, |after| changes(&before, &after));
        let result = RehearsalResult {
            fixes: trial.fixes.clone(),
            rank: None,
            before,
            after,
            why_not,
            gains,
            harms,
        };
        self.keep(began, result);
    }

    fn measured(&mut self, trial: &Trial) -> Result<PathFigures, String> {
        let change = trial.change.clone()?;
        if let Some((_, figures)) = self.done.iter().find(|(done, _)| *done == change) {
            return Ok(*figures);
        }
        let mut setup = Setup {
            text: self.twin,
            shapers: &[],
            cc: None,
        };
        match &change {
            Change::Shape(shapers) => setup.shapers = shapers,
            Change::Scenario(text) => setup.text = text,
            Change::CongestionControl(name) => setup.cc = Some(name),
        }
        let seen = self.in_twin.measure(&setup);
        let seen = seen.map_err(|error| format!("the measurement failed ({error:#})"))?;
        let figures = self.take(seen);
        self.done.push((change, figures));
        Ok(figures)
    }

    fn take(&mut self, seen: Seen) -> PathFigures {
        for note in seen.notes {
            self.record.note(note);
        }
        seen.figures
    }

    fn keep(&mut self, began: u64, result: RehearsalResult) {
        let took = clock::monotonic_ns().saturating_sub(began);
        self.results.push((began, took, result));
    }

    /// The Run: what was rehearsed, and the findings with it beside their advice.
    fn finish(mut self, original: &Run, file: &str) -> Run {
        let mut results: Vec<RehearsalResult> = self
            .results
            .iter()
            .map(|(_, _, result)| result.clone())
            .collect();
        rank(&mut results);
        for ((began, took, _), result) in self.results.iter().zip(&results) {
            let outcome = Outcome::Rehearsal(Box::new(result.clone()));
            self.record
                .add(Measured::of(*began, *took as f64 / 1e9, outcome));
        }
        self.record.note(format!(
            "Rehearsed in a twin of {file}, with what that says about the path: plumb lab from {file}"
        ));
        let mut run = self.record.finish(Judgement::AsAudited);
        run.findings = original.findings.clone();
        settle(&mut run.findings, &results);
        run.verdict = Some(verdict(&results));
        run
    }
}
