//! `plumb tune apply` and `undo`.

use std::path::Path as FilePath;
use std::process::{Child, ExitCode};
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_host::knobs::Catalogue;
use plumb_host::tune::advice;
use plumb_host::tune::apply::{self, Standing, standing};
use plumb_host::tune::journal::{
    DROP_IN, Directory, Journal, JournalError, STATE, Step, Store as _, Target,
};
use plumb_host::tune::machine::ThisMachine;
use plumb_host::tune::plan::plan_host;
use plumb_host::tune::render::{drop_in, has_variables};
use plumb_host::tune::snapshot::Snapshot;
use plumb_model::finding::Actor;
use plumb_model::tune::{HostPlan, SCHEMA, TunePlan, UDEV_RULES};
use plumb_report::text::render_tune_plan;

use super::except::Except;
use super::path::PathOptions;
use super::status::told;
use crate::agreed::agreed;
use crate::output::{print, print_page, say, style};
use crate::quantity::time_above_zero;
use crate::watchdog;

/// When changes are undone by themselves.
#[derive(Clone, Copy)]
pub(super) enum End {
    Never,
    /// After a time, whatever becomes of this process.
    After(Duration),
    /// With this process, and after a time at the latest.
    WithThis(Duration),
}

#[derive(Args)]
pub(super) struct ApplyArguments {
    #[command(flatten)]
    path: PathOptions,
    #[command(flatten)]
    except: Except,
    /// Change the running system only, until the next boot
    #[arg(long)]
    runtime: bool,
    /// Undo it after this time; implies --runtime
    ///
    /// Even if plumb is killed.
    #[arg(short = 't', long = "for", alias = "duration", value_name = "TIME", value_parser = time_above_zero)]
    time: Option<Duration>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

#[derive(Args)]
pub(super) struct WatchdogArguments {
    /// Which plan
    id: String,
    /// After how long
    #[arg(value_parser = time_above_zero)]
    time: Duration,
    /// When standard input ends, if that is sooner
    #[arg(long)]
    or_input_ends: bool,
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
    print_page(&render_tune_plan(&plan, &style()))?;
    let runtime = arguments.runtime || arguments.time.is_some();
    let present = Directory::look(FilePath::new(STATE), FilePath::new(DROP_IN))?;
    let lasts = present
        .as_ref()
        .and_then(|journal| lasts_longer(journal, runtime, arguments.time.is_some()));
    if let Some(lasts) = &lasts {
        print(lasts)?;
    } else if host.changes.is_empty() {
        if let Some(journal) = &present {
            print(&format!(
                "Settings of {} are in force: plumb tune status.\n",
                journal.started
            ))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if path.ends == [Actor::FarHost] {
        say(
            "in this Run the far host is the limit: plumb tune plan --from the same Run plans for it",
        );
    }
    if !agreed(arguments.yes)? {
        print("Nothing was changed.\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let journal = make(
        &host,
        runtime,
        arguments.time.map_or(End::Never, End::After),
    )?
    .journal;
    let count = host.changes.len();
    let changes = if count == 1 { "change" } else { "changes" };
    let mut said = format!("Done: {count} {changes}.");
    if let Some(until) = &journal.until {
        said += &format!(" They are undone by themselves at {until}.");
    } else if runtime {
        said += &match present.is_some_and(|journal| journal.is_permanent()) {
            true => format!(
                " These changes last until the next boot; {DROP_IN} then brings back what was set before."
            ),
            false => " All lasts until the next boot.".to_owned(),
        };
    } else {
        said += &format!(" {DROP_IN} brings the variables back at boot.");
        for other in overridden(&host) {
            said += &format!("\nAt boot {other} after it, and wins: take that line away.\n");
        }
        said += &not_at_boot(&host);
    }
    let gap = if said.ends_with('\n') { "" } else { " " };
    print(&format!(
        "{said}{gap}All is put back with: plumb tune undo\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// What a plan without an end makes of what is applied until an end: it comes on top of that, and takes it along.
fn lasts_longer(journal: &Journal, runtime: bool, ends: bool) -> Option<String> {
    let so_far = match &journal.until {
        _ if ends => return None,
        Some(until) => format!("would be undone by themselves at {until}"),
        None if !runtime && journal.has_variables_lost_at_boot(as_set) => {
            "would last until the next boot".to_owned()
        }
        None => return None,
    };
    let now = if runtime {
        "they stay until the next boot"
    } else {
        "they stay, and the variables among them come back at boot"
    };
    Some(format!(
        "The settings of {} {so_far}: {now}.\n",
        journal.started
    ))
}

/// Whether changes could be made: the journal can be kept, no other process uses it, and nothing is applied.
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

/// What is said of changes that are no kernel variables, and which the drop-in file does not bring back.
fn not_at_boot(host: &HostPlan) -> String {
    let lost = host.changes.iter().filter_map(|change| {
        let rule = change.at_boot.as_ref()?;
        Some((change.knob.as_str(), format!("  {rule}\n")))
    });
    let (knobs, rules): (Vec<_>, String) = lost.unzip();
    if knobs.is_empty() {
        return String::new();
    }
    format!(
        "\nNo kernel variables, so not brought back at boot: {}. A file such as {UDEV_RULES} with these lines does it, of which plumb tune undo knows nothing:\n{rules}",
        knobs.join(", ")
    )
}

/// Changes that are made, and the process that would undo them.
pub(super) struct Made {
    journal: Journal,
    watchdog: Option<Child>,
}

impl Made {
    /// Undoes them, and ends that process.
    ///
    /// # Errors
    /// Where they are undone already, or another program's plan came on top of them: that plan is left alone.
    pub(super) fn undo(self) -> anyhow::Result<()> {
        let mut store = store()?;
        let ours = |there: &Journal| there.id == self.journal.id;
        if !store.load()?.as_ref().is_some_and(ours) {
            watchdog::stop(self.watchdog);
            anyhow::bail!(
                "another program changed this machine's settings meanwhile, and plumb leaves them alone: plumb tune status"
            );
        }
        let undone = apply::undo(&mut store, &mut ThisMachine)?.unwrap_or_default();
        anyhow::ensure!(undone.failed.is_empty(), told(&undone));
        watchdog::stop(self.watchdog);
        Ok(())
    }
}

/// Makes a plan's changes; where they end, a process of its own undoes them.
pub(super) fn make(host: &HostPlan, runtime: bool, end: End) -> anyhow::Result<Made> {
    let now = jiff::Timestamp::now();
    let time = match end {
        End::Never => None,
        End::After(time) | End::WithThis(time) => Some(time),
    };
    let until = time
        .map(|time| now.checked_add(time))
        .transpose()
        .context("that is too long a time")?;
    let id = uuid::Uuid::now_v7().to_string();
    let mut store = store()?;
    let file = if runtime {
        None
    } else {
        permanent(host, store.load()?.as_ref())?
    };
    let steps = apply::steps(host, file);
    // It stands before anything is changed, and does nothing while there is no journal of that id.
    let with_this = matches!(end, End::WithThis(_));
    let watchdog = time
        .map(|time| {
            let words = ["tune".to_owned(), "watchdog".to_owned(), id.clone()];
            let time = format!("{}ns", time.as_nanos());
            let ends = with_this.then(|| "--or-input-ends".to_owned());
            watchdog::start(words.into_iter().chain([time]).chain(ends), with_this)
        })
        .transpose()?;
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
            watchdog::stop(watchdog);
            Err(e.into())
        }
    }
}

/// Whether a setting is as plumb made it.
fn as_set(step: &Step) -> bool {
    standing(&mut ThisMachine, step) == Standing::AsSet
}

/// The file that brings variables back at boot: the variables of a plan, and the applied ones that are as plumb set
/// them. None where there is nothing to add to it.
fn permanent(
    host: &HostPlan,
    applied: Option<&Journal>,
) -> anyhow::Result<Option<(&'static FilePath, String)>> {
    let steps = applied.iter().flat_map(|journal| &journal.steps);
    let before: Vec<_> = steps
        .filter_map(|step| match &step.target {
            Target::Sysctl(key) if as_set(step) => Some((key.clone(), step.new.clone()?)),
            _ => None,
        })
        .collect();
    let lost = applied.is_some_and(|journal| journal.has_variables_lost_at_boot(as_set));
    if (before.is_empty() || !lost) && !has_variables(host) {
        return Ok(None);
    }
    let file = FilePath::new(DROP_IN);
    if !file.parent().is_some_and(FilePath::is_dir) {
        anyhow::bail!(
            "there is no /etc/sysctl.d to keep the settings in: use --runtime; nothing was changed"
        );
    }
    Ok(Some((file, drop_in(host, &before))))
}

/// The process that undoes a plan. It ends when the plan is undone, by itself or by another process.
pub(super) fn watchdog(arguments: &WatchdogArguments) -> anyhow::Result<ExitCode> {
    watchdog::stand()?;
    if arguments.or_input_ends {
        watchdog::wait_for_input_or(arguments.time);
    } else {
        sleep(arguments.time);
    }
    loop {
        match store() {
            Err(JournalError::Busy) => sleep(watchdog::RETRY),
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
    // Without a journal the user need not be root, and nothing has to be locked.
    let undone = match Directory::look(FilePath::new(STATE), FilePath::new(DROP_IN))? {
        Some(_) => {
            let mut store = store().context("cannot undo what is applied")?;
            apply::undo(&mut store, &mut ThisMachine)?
        }
        None => None,
    };
    let Some(undone) = undone else {
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
