//! `plumb tune apply`, `status` and `undo`.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::Path as FilePath;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use plumb_host::knobs::Catalogue;
use plumb_host::render::commands;
use plumb_host::tune::advice;
use plumb_host::tune::apply::{self, Standing, Undone, standing};
use plumb_host::tune::journal::{
    DROP_IN, Directory, Journal, JournalError, STATE, State, Store as _,
};
use plumb_host::tune::machine::ThisMachine;
use plumb_host::tune::plan::plan_host;
use plumb_host::tune::render::sysctl_file;
use plumb_host::tune::snapshot::Snapshot;
use plumb_model::finding::{Action, Actor, InterfaceAction, InterfaceChange};
use plumb_model::tune::{HostPlan, SCHEMA, TunePlan};
use plumb_model::units::human_seconds;
use plumb_report::text::render_tune_plan;

use super::except::Except;
use super::path::PathOptions;
use crate::load_options::positive_duration;
use crate::output::{print, style};

/// How long the watchdog waits for another plumb to be done, before it tries again.
const RETRY: Duration = Duration::from_millis(200);

/// What the watchdog says when it stands on its own.
const STANDS: &str = "watching\n";

#[derive(Args)]
pub(super) struct ApplyArguments {
    #[command(flatten)]
    path: PathOptions,
    #[command(flatten)]
    except: Except,
    /// Change the running system only, and leave no file behind for the next boot
    #[arg(long)]
    runtime: bool,
    /// Undo it by itself after so long, even if plumb is killed; implies --runtime
    #[arg(long = "for", value_name = "TIME", value_parser = positive_duration)]
    time: Option<Duration>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

#[derive(Args)]
pub(super) struct StatusArguments {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(super) struct WatchdogArguments {
    /// Which plan
    id: String,
    /// After how long
    #[arg(value_parser = positive_duration)]
    time: Duration,
}

fn store() -> Result<Directory, JournalError> {
    Directory::lock(FilePath::new(STATE), FilePath::new(DROP_IN))
}

pub(super) fn apply(arguments: &ApplyArguments) -> anyhow::Result<ExitCode> {
    let path = arguments.path.resolve()?;
    let catalogue = Catalogue::built_in()?;
    let here = Snapshot::here(&catalogue, path.address());
    let mut host = plan_host(&catalogue, &here, &path.situation, Actor::ThisHost, &[]);
    arguments
        .except
        .leave_out(&mut host, &here, &path.situation)?;
    let plan = TunePlan {
        schema: SCHEMA.to_owned(),
        path: path.planned,
        hosts: vec![HostPlan {
            left: Vec::new(),
            ..host.clone()
        }],
    };
    print(&render_tune_plan(&plan, &style()))?;
    if host.changes.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if path.ends == [Actor::FarHost] {
        anstream::eprintln!(
            "plumb: the Run says that the far host limits: plumb tune plan --from the same Run is the plan for it"
        );
    }
    if !agreed(arguments.yes)? {
        print("Nothing was changed.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = arguments.runtime || arguments.time.is_some();
    let journal = make(&host, runtime, arguments.time)?.journal;
    let count = host.changes.len();
    let changes = if count == 1 { "change" } else { "changes" };
    let mut said = format!("Done: {count} {changes}.");
    if let Some(until) = &journal.until {
        said += &format!(" They are undone by themselves at {until}.");
    } else if runtime {
        said += " They last until the next boot.";
    } else {
        said += &format!(" {DROP_IN} brings the variables back at boot.");
        for other in overridden(&host) {
            said += &format!("\nAt boot {other} after it, and wins: take that line away.\n");
        }
        for command in not_at_boot(&host) {
            said += &format!(
                "\nNo variable, so not brought back at boot: let your system do it when it sets the interface up: {command}\n"
            );
        }
    }
    print(&format!("{said} All is put back with: plumb tune undo\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Whether changes could be made: the journal can be kept, nobody is at it, and nothing is applied.
pub(super) fn free() -> anyhow::Result<()> {
    match store()?.load()? {
        None => Ok(()),
        Some(journal) => anyhow::bail!(
            "settings of {} are applied, and would be part of every measurement: put them back first (plumb tune undo)",
            journal.started
        ),
    }
}

/// Files that are read after the drop-in at boot and would win over it, with the variable that they set.
fn overridden(host: &HostPlan) -> Vec<String> {
    let own = FilePath::new(DROP_IN);
    let entries = own
        .parent()
        .and_then(|folder| std::fs::read_dir(folder).ok());
    let mut found = Vec::new();
    for entry in entries.into_iter().flatten().flatten() {
        let file = entry.path();
        let later =
            file.extension().is_some_and(|e| e == "conf") && file.file_name() > own.file_name();
        if !later {
            continue;
        }
        let settings = std::fs::read_to_string(&file)
            .ok()
            .and_then(|text| advice::parse(&text).ok())
            .unwrap_or_default();
        for (key, _) in settings {
            if host.changes.iter().any(|change| change.knob == key) {
                found.push(format!("{} sets {key}", file.display()));
            }
        }
    }
    found
}

/// The commands of changes that are no kernel variables. A queueing discipline comes back where it is the
/// one that interfaces get by default.
fn not_at_boot(host: &HostPlan) -> Vec<String> {
    let default = plumb_net::sysctl::read("net.core.default_qdisc").unwrap_or_default();
    host.changes
        .iter()
        .filter_map(|change| match change.action.as_ref()? {
            Action::Interface(InterfaceAction {
                change: InterfaceChange::Qdisc(kind),
                ..
            }) if *kind == default => None,
            action @ Action::Interface(_) => Some(commands(action)),
            _ => None,
        })
        .flatten()
        .collect()
}

/// Asks, where there is somebody to ask.
pub(super) fn agreed(yes: bool) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        anyhow::bail!(
            "this changes the machine, and there is no terminal to ask on: say --yes; nothing was changed"
        );
    }
    anstream::eprint!("Change this machine so? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Changes that are made, and the process that would undo them.
pub(super) struct Made {
    journal: Journal,
    watchdog: Option<Child>,
}

impl Made {
    /// Undoes them, and ends that process.
    pub(super) fn undo(self) -> anyhow::Result<()> {
        let undone = apply::undo(&mut store()?, &mut ThisMachine)?.unwrap_or_default();
        anyhow::ensure!(undone.failed.is_empty(), told(&undone));
        end(self.watchdog);
        Ok(())
    }
}

/// Ends a watchdog, which heeds nothing else.
fn end(watchdog: Option<Child>) {
    if let Some(mut watchdog) = watchdog {
        let _ = watchdog.kill();
        let _ = watchdog.wait();
    }
}

/// Makes a plan's changes; with a time, a process of its own undoes them after it.
pub(super) fn make(host: &HostPlan, runtime: bool, time: Option<Duration>) -> anyhow::Result<Made> {
    let now = jiff::Timestamp::now();
    let until = time
        .map(|time| now.checked_add(time))
        .transpose()
        .context("that is too long a time")?;
    let id = uuid::Uuid::now_v7().to_string();
    let drop_in = FilePath::new(DROP_IN);
    let file = (!runtime).then(|| (drop_in, sysctl_file(host)));
    if file.is_some() && !drop_in.parent().is_some_and(FilePath::is_dir) {
        anyhow::bail!(
            "there is no /etc/sysctl.d to keep the settings in: use --runtime; nothing was changed"
        );
    }
    let mut store = store()?;
    let steps = apply::steps(host, file);
    // It stands before anything is changed, and does nothing while there is no journal of that id.
    let watchdog = time.map(|time| start_watchdog(&id, time)).transpose()?;
    let whole = |time: jiff::Timestamp| time.round(jiff::Unit::Second).unwrap_or(time).to_string();
    let made = apply::apply(
        &mut store,
        &mut ThisMachine,
        id,
        whole(now),
        until.map(whole),
        steps,
    );
    match made {
        Ok(journal) => Ok(Made { journal, watchdog }),
        Err(e) => {
            end(watchdog);
            Err(e.into())
        }
    }
}

/// Starts the process that will undo it, and returns when that one stands on its own: whatever ends this
/// one from then on leaves it alone.
fn start_watchdog(id: &str, time: Duration) -> anyhow::Result<Child> {
    let failed = "cannot start the process that would undo it: nothing was changed";
    let mut child = Command::new("/proc/self/exe")
        .args(["tune", "watchdog", id])
        .arg(format!("{}ns", time.as_nanos()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context(failed)?;
    let mut said = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut said).context(failed)?;
    }
    anyhow::ensure!(said == STANDS, failed);
    Ok(child)
}

/// The process that undoes a plan: it has a session of its own, so that it outlives the terminal, and
/// heeds no signal but SIGKILL. It ends when the plan is undone, by itself or by somebody else.
pub(super) fn watchdog(arguments: &WatchdogArguments) -> anyhow::Result<ExitCode> {
    plumb_net::process::detach().context("cannot detach")?;
    print(STANDS)?;
    // The one that started it waits for the end of the pipe.
    plumb_net::process::close_stdout()?;
    let until = Instant::now() + arguments.time;
    sleep(until.saturating_duration_since(Instant::now()));
    loop {
        match store() {
            Err(JournalError::Busy) => sleep(RETRY),
            Err(e) => return Err(e.into()),
            Ok(mut store) => {
                let ours = store.load()?.is_some_and(|j| j.id == arguments.id);
                if ours {
                    apply::undo(&mut store, &mut ThisMachine)?;
                }
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
}

pub(super) fn undo() -> anyhow::Result<ExitCode> {
    let Some(undone) = apply::undo(&mut store()?, &mut ThisMachine)? else {
        print("There is nothing to undo.\n")?;
        return Ok(ExitCode::SUCCESS);
    };
    print(&told(&undone))?;
    if !undone.failed.is_empty() {
        anyhow::bail!(
            "not everything could be put back: it stays in the journal, so that plumb tune undo can be run again"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn told(undone: &Undone) -> String {
    let mut text = String::new();
    for target in &undone.restored {
        text += &format!("Put back: {target}\n");
    }
    for (target, now) in &undone.kept {
        text += &format!("Left alone, because somebody changed it since: {target} ({now})\n");
    }
    for target in &undone.gone {
        text += &format!("Gone with its interface: {target}\n");
    }
    for (target, why) in &undone.failed {
        text += &format!("NOT put back: {target}: {why}\n");
    }
    if text.is_empty() {
        text += "Everything was as before already.\n";
    }
    text
}

pub(super) fn status(arguments: &StatusArguments) -> anyhow::Result<ExitCode> {
    let journal = Directory::look(FilePath::new(STATE), FilePath::new(DROP_IN))?;
    let machine = &mut ThisMachine;
    let rows: Vec<_> = journal
        .iter()
        .flat_map(|journal| &journal.steps)
        .map(|step| (step, standing(machine, step)))
        .collect();
    if arguments.json {
        print(&(serde_json::to_string(&document(journal.as_ref(), &rows))? + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(journal) = &journal else {
        print("Nothing is applied.\n")?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut text = match journal.state {
        State::Applied => format!("Applied {}.\n", journal.started),
        State::Applying | State::Undoing => format!(
            "Begun {} and never finished: plumb tune undo puts everything back.\n",
            journal.started
        ),
    };
    if let Some(until) = &journal.until {
        text += &format!("To be undone by itself at {until}.\n");
        let late = until
            .parse::<jiff::Timestamp>()
            .ok()
            .map(|until| jiff::Timestamp::now().duration_since(until).as_secs_f64());
        if let Some(late) = late.filter(|late| *late > 1.0) {
            text += &format!(
                "That was {} ago, so the process that was to do it is gone: plumb tune undo.\n",
                human_seconds(late)
            );
        }
    }
    if journal.is_of_another_boot() {
        text += "The machine was started anew since: only what the drop-in file brings back is still set.\n";
    }
    for (step, standing) in &rows {
        let how = match standing {
            Standing::AsSet => "as set".to_owned(),
            Standing::AsBefore => "as it was before".to_owned(),
            Standing::Changed(now) => format!("changed by somebody since, to {now}"),
            Standing::Gone => "gone with its interface".to_owned(),
            Standing::Unreadable(why) => format!("cannot be read: {why}"),
        };
        text += &match (&step.target, &step.old, &step.new) {
            (plumb_host::tune::journal::Target::File(_), _, _) | (_, None, _) | (_, _, None) => {
                format!("  {}: {how}\n", step.target)
            }
            (target, Some(old), Some(new)) => format!("  {target}: {old} -> {new}: {how}\n"),
        };
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// `plumb.tune-status/1`.
fn document(
    journal: Option<&Journal>,
    rows: &[(&plumb_host::tune::journal::Step, Standing)],
) -> plumb_model::tune::TuneStatus {
    plumb_model::tune::TuneStatus {
        schema: plumb_model::tune::STATUS_SCHEMA.to_owned(),
        applied: journal.is_some(),
        complete: journal.is_none_or(|j| j.state == State::Applied),
        started: journal.map(|j| j.started.clone()),
        until: journal.and_then(|j| j.until.clone()),
        settings: rows
            .iter()
            .map(|(step, standing)| plumb_model::tune::AppliedSetting {
                target: step.target.to_string(),
                old: step.old.clone(),
                new: step.new.clone(),
                standing: match standing {
                    Standing::AsSet => "as-set",
                    Standing::AsBefore => "as-before",
                    Standing::Changed(_) => "changed",
                    Standing::Gone => "gone",
                    Standing::Unreadable(_) => "unreadable",
                }
                .to_owned(),
            })
            .collect(),
    }
}
