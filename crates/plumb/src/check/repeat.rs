//! `--repeat`: the same check again and again, each saved as it ends, and what is stable and what comes and goes.

use std::num::NonZeroU32;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use plumb_model::finding::Severity;
use plumb_model::run::Run;
use plumb_model::units::human_seconds;
use plumb_report::baseline::baseline;
use plumb_report::text;

use super::kept::Kept;
use crate::exit::{Ends, FOUND, stop_flag};
use crate::output::{message, print_page, say, style};
use crate::quantity::time_above_zero;
use crate::usage::{UsageError, wrong};

/// How often a wait looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Args)]
#[command(next_help_heading = "Repeats")]
pub(super) struct RepeatOptions {
    /// Check so many times, and show what comes and goes
    ///
    /// -o names a directory, in which each check is saved as it ends. The same command continues after an interrupt.
    #[arg(long, value_name = "N", requires_all = ["every", "output"], conflicts_with_all = ["json", "json_lines", "explain", "details"])]
    repeat: Option<NonZeroU32>,
    /// With --repeat: the time from one check to the next, such as 1h
    #[arg(long, value_name = "TIME", requires = "repeat", value_parser = time_above_zero)]
    every: Option<Duration>,
}

/// How often, and how far apart.
#[derive(Clone, Copy)]
pub(super) struct Repeats {
    count: u32,
    every: Duration,
}

impl RepeatOptions {
    pub(super) fn repeats(&self) -> Option<Repeats> {
        let (count, every) = self.repeat.zip(self.every)?;
        Some(Repeats {
            count: count.get(),
            every,
        })
    }
}

/// Checks, saves each, and shows what all in the directory come to.
pub(super) fn run(
    repeats: Repeats,
    folder: &Path,
    fail_on: Option<Severity>,
    mut check: impl FnMut(&Arc<AtomicBool>) -> anyhow::Result<Run>,
) -> anyhow::Result<ExitCode> {
    let mut kept = Kept::open(folder, |_| "check".to_owned())?;
    let stop = stop_flag(Ends::ByItself)?;
    let first = Instant::now();
    let there = u32::try_from(kept.runs.len()).unwrap_or(u32::MAX);
    for number in there..repeats.count {
        let after = repeats.every.checked_mul(number - there);
        let Some(due) = after.and_then(|after| first.checked_add(after)) else {
            return Err(wrong(
                "--every TIME so many times is longer than any clock runs",
            ));
        };
        let late = due.elapsed();
        if number > there && late > LOOK {
            say(format_args!(
                "the check before took {} longer than --every",
                human_seconds(late.as_secs_f64())
            ));
        }
        if !waited(due, &stop) {
            break;
        }
        say(format_args!("check {} of {}", number + 1, repeats.count));
        match check(&stop) {
            Ok(run) => kept.keep(run),
            // What was asked for cannot be, however often.
            Err(why) if why.is::<UsageError>() => return Err(why),
            Err(why) => say(format_args!(
                "check {} measured nothing: {}",
                number + 1,
                message(&why)
            )),
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    show(kept, fail_on)
}

/// Waits until then; false where it is to stop.
fn waited(due: Instant, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(LOOK));
    }
    false
}

fn show(mut kept: Kept, fail_on: Option<Severity>) -> anyhow::Result<ExitCode> {
    let unsaved = kept.save_rest();
    kept.runs.sort_by(|a, b| a.started.cmp(&b.started));
    anyhow::ensure!(!kept.runs.is_empty(), "no check measured anything");
    let baseline = baseline(&kept.runs);
    print_page(&text::render_baseline(&baseline, &style()))?;
    unsaved?;
    let reached = fail_on.is_some_and(|limit| baseline.worst >= Some(limit));
    Ok(match reached {
        true => ExitCode::from(FOUND),
        false => ExitCode::SUCCESS,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    fn check(second: u32) -> Run {
        let mut run = Run::from_json(include_str!("../../../model/fixtures/run-2.json")).unwrap();
        run.started = format!("2026-11-27T10:00:{second:02}.5Z");
        run
    }

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn it_goes_on_with_the_checks_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let repeats = Repeats {
            count: 3,
            every: Duration::from_millis(1),
        };
        let made = |most: u32| {
            let mut made = 0;
            let check = |_: &Arc<AtomicBool>| {
                made += 1;
                anyhow::ensure!(made <= most, "interrupted");
                Ok(check(made))
            };
            run(repeats, folder.path(), None, check).unwrap();
            (made, files(folder.path()))
        };
        assert_eq!(made(2), (3, 2));
        assert_eq!(made(9), (1, 3));
        assert_eq!(made(9), (0, 3));
    }

    #[test]
    fn a_wait_ends_at_once_where_it_is_to_stop() {
        let began = Instant::now();
        assert!(!waited(
            began + Duration::from_secs(60),
            &AtomicBool::new(true)
        ));
        assert!(waited(began, &AtomicBool::new(false)));
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
