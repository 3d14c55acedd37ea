//! `plumb shape apply`, `confirm` and `undo`.

use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use plumb_host::shape::apply::{self, Moment, Undone};
use plumb_host::shape::journal::{Journals, STATE, State};
use plumb_host::tune::journal::JournalError;
use plumb_model::run::Run;

use super::options::{Planned, ShapeOptions};
use super::plan;
use crate::agreed::agreed;
use crate::output::print;
use crate::quantity::time_above_zero;
use crate::watchdog;

#[derive(Args)]
pub(super) struct ApplyArguments {
    #[command(flatten)]
    shape: ShapeOptions,
    /// Undo it after this time unless it is confirmed
    #[arg(short = 't', long = "for", value_name = "TIME", default_value = "60s", value_parser = time_above_zero)]
    time: Duration,
    /// Keep it where this host answers a ping then
    #[arg(long, value_name = "HOST", conflicts_with = "keep")]
    far_end: Option<String>,
    /// Keep it without being asked to confirm
    #[arg(long, conflicts_with = "time")]
    keep: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

#[derive(Args)]
pub(super) struct OnDevice {
    /// Interface to the line
    #[arg(value_name = "DEV")]
    device: String,
}

#[derive(Args)]
pub(super) struct WatchdogArguments {
    device: String,
    /// Which shaper
    id: String,
    /// After how long
    #[arg(value_parser = time_above_zero)]
    time: Option<Duration>,
    /// Unless this host answers then
    #[arg(long)]
    far_end: Option<String>,
}

fn journals() -> Result<Journals, JournalError> {
    Journals::lock(Path::new(STATE))
}

pub(super) fn apply(arguments: &ApplyArguments) -> anyhow::Result<ExitCode> {
    let planned = arguments.shape.plan()?;
    print(&plan::text(&planned))?;
    print("\n")?;
    apply::possible(&planned.plan)?;
    if !agreed(arguments.yes)? {
        print("Nothing was changed.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let Planned {
        request,
        reading,
        plan,
    } = &planned;
    let device = &request.device;
    let time = (!arguments.keep).then_some(arguments.time);
    let now = jiff::Timestamp::now();
    let until = time.map(|time| now.checked_add(time)).transpose();
    let until = until.context("that is too long a time")?;
    let whole = |time: jiff::Timestamp| time.round(jiff::Unit::Second).unwrap_or(time).to_string();
    let journals = journals()?;
    let id = uuid::Uuid::now_v7().to_string();
    // It stands before anything is changed, and does nothing while there is no journal of that id.
    let watchdog = start_watchdog(device, &id, time, arguments.far_end.as_deref())?;
    let moment = Moment {
        id,
        started: whole(now),
        until: until.map(whole),
    };
    let made = apply::apply(&journals, request, plan, reading, moment);
    if let Err(error) = made {
        watchdog::stop(Some(watchdog));
        return Err(error.into());
    }
    print(&match time {
        Some(time) => format!(
            "Applied. It is undone by itself in {}, unless {}you keep it: plumb shape confirm {device}\n",
            plumb_model::units::human_seconds(time.as_secs_f64()),
            match &arguments.far_end {
                Some(host) => format!("{host} answers then or "),
                None => String::new(),
            }
        ),
        None => {
            format!(
                "Applied, until the next boot or until it is undone: plumb shape undo {device}\n"
            )
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn start_watchdog(
    device: &str,
    id: &str,
    time: Option<Duration>,
    far_end: Option<&str>,
) -> anyhow::Result<Child> {
    let mut words: Vec<_> = ["shape", "watchdog", device, id].map(str::to_owned).into();
    words.extend(time.map(|time| format!("{}ns", time.as_nanos())));
    words.extend(far_end.map(|host| format!("--far-end={host}")));
    watchdog::start(words, true)
}

/// Whether a host answers, by this program's own ping, which ends within seconds.
fn answers(host: &str) -> bool {
    let ping = Command::new("/proc/self/exe")
        .args(["ping", "--json", "-c", "5", "-i", "200ms", "--", host])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let run = ping.ok().and_then(|output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Run::from_json(&text).ok()
    });
    run.is_some_and(|run| {
        let mut pings = run
            .measurements
            .iter()
            .filter_map(|measured| measured.outcome.ping());
        pings.any(|ping| ping.received > 0)
    })
}

/// The longest that a watchdog waits for the end of what it watches over, which takes a second at the most.
const LONGEST: Duration = Duration::from_secs(3600);

/// The process that undoes a shaper: at once where the process that makes it was killed in the midst of it, and else after
/// its time, unless it was confirmed. It ends when that is decided.
pub(super) fn watchdog(arguments: &WatchdogArguments) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let device = &arguments.device;
    watchdog::stand()?;
    watchdog::wait_for_input_or(arguments.time.unwrap_or(LONGEST));
    loop {
        let journals = match journals() {
            Err(JournalError::Busy) => {
                sleep(watchdog::RETRY);
                continue;
            }
            journals => journals?,
        };
        let journal = journals.load(device)?;
        let Some(journal) = journal.filter(|journal| journal.id == arguments.id) else {
            return Ok(ExitCode::SUCCESS);
        };
        let left = match (journal.state, &journal.until, arguments.time) {
            (State::Applied, None, _) | (State::Applied, _, None) => return Ok(ExitCode::SUCCESS),
            (State::Applied, Some(_), Some(time)) => time.saturating_sub(begun.elapsed()),
            (State::Applying | State::Undoing, ..) => Duration::ZERO,
        };
        if left.is_zero() {
            let whole = journal.state == State::Applied;
            match &arguments.far_end {
                Some(host) if whole && answers(host) => drop(apply::confirm(&journals, device)?),
                _ => drop(apply::undo(&journals, device)?),
            }
            return Ok(ExitCode::SUCCESS);
        }
        // Another plumb that confirms or undoes it meanwhile needs the lock.
        drop(journals);
        sleep(left);
    }
}

pub(super) fn confirm(on: &OnDevice) -> anyhow::Result<ExitCode> {
    let device = &on.device;
    apply::confirm(&journals()?, device).with_context(|| {
        format!("there is nothing to keep: plumb shape apply {device} first, and confirm in time")
    })?;
    print(&format!(
        "Kept, until the next boot or until it is undone: plumb shape undo {device}\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn undo(on: &OnDevice) -> anyhow::Result<ExitCode> {
    let device = &on.device;
    // A user who may not keep a journal is still shown that there is none.
    let nothing = Journals::look(Path::new(STATE), device)?.is_none() && !apply::stands(device)?;
    let undone = match nothing {
        true => None,
        false => apply::undo(&journals()?, device)?,
    };
    let Some(undone) = undone else {
        print(&format!("There is nothing to undo on {device}.\n"))?;
        return Ok(ExitCode::SUCCESS);
    };
    print(&told(&undone))?;
    anyhow::ensure!(
        undone.failed.is_empty(),
        "not everything could be put back: it stays in the journal, so that plumb shape undo {device} can be run again"
    );
    Ok(ExitCode::SUCCESS)
}

/// What undoing came to.
fn told(undone: &Undone) -> String {
    let mut text = String::new();
    for what in &undone.restored {
        text += &format!("Put back: {what}\n");
    }
    for what in &undone.kept {
        text += &format!("Left alone: {what}\n");
    }
    for what in &undone.failed {
        text += &format!("NOT put back: {what}\n");
    }
    if text.is_empty() {
        text += "Everything was as before already.\n";
    }
    text
}
