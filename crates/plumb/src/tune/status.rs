//! `plumb tune status`, and what undoing came to, in words.

use std::path::Path as FilePath;
use std::process::ExitCode;

use clap::Args;
use plumb_host::tune::apply::{Standing, Undone, left_at_boot, standing};
use plumb_host::tune::journal::{DROP_IN, Directory, Journal, STATE, State, Step, Target};
use plumb_host::tune::machine::ThisMachine;
use plumb_model::tune::{AppliedSetting, STATUS_SCHEMA, TuneStatus};
use plumb_model::units::human_seconds;

use crate::output::{print, print_json};

#[derive(Args)]
pub(super) struct StatusArguments {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
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
        print_json(&document(journal.as_ref(), &rows))?;
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
        text += "The machine was restarted since: only what the drop-in file brings back is still set.\n";
    }
    for (step, standing) in &rows {
        let how = match standing {
            // Where variables come back at boot, a setting that does not is marked.
            Standing::AsSet
                if journal.is_permanent() && matches!(step.target, Target::Interface(..)) =>
            {
                "as set, until the next boot".to_owned()
            }
            Standing::AsSet => "as set".to_owned(),
            Standing::AsBefore => "as it was before".to_owned(),
            Standing::Changed(now) if matches!(step.target, Target::File(_)) => {
                let mut how = "changed by another program or user since".to_owned();
                let lines = left_at_boot(step, now);
                if !lines.is_empty() {
                    how += &format!("; of plumb's it still sets at boot: {}", lines.join("; "));
                }
                how
            }
            Standing::Changed(now) => format!(
                "changed by another program or user since, to {}",
                words(now)
            ),
            Standing::Gone => "gone with its interface".to_owned(),
            Standing::Unreadable(why) => format!("cannot be read: {why}"),
        };
        text += &match (&step.target, &step.old, &step.new) {
            (Target::File(_), _, _) | (_, None, _) | (_, _, None) => {
                format!("  {}: {how}\n", step.target)
            }
            (target, Some(old), Some(new)) => {
                format!("  {target}: {} -> {}: {how}\n", words(old), words(new))
            }
        };
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A value on one line: the kernel parts the numbers of a variable by tabs, and plumb by spaces.
fn words(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `plumb.tune-status/1`.
fn document(journal: Option<&Journal>, rows: &[(&Step, Standing)]) -> TuneStatus {
    TuneStatus {
        schema: STATUS_SCHEMA.to_owned(),
        applied: journal.is_some(),
        complete: journal.is_none_or(|j| j.state == State::Applied),
        started: journal.map(|j| j.started.clone()),
        until: journal.and_then(|j| j.until.clone()),
        settings: rows
            .iter()
            .map(|(step, standing)| AppliedSetting {
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

/// What undoing came to.
pub(super) fn told(undone: &Undone) -> String {
    let mut text = String::new();
    for target in &undone.restored {
        text += &format!("Put back: {target}\n");
    }
    for (target, now) in &undone.kept {
        text += &format!("Left alone, because another program or user changed it since: {target}");
        text += &match target {
            Target::File(_) => "\n".to_owned(),
            _ => format!(" ({})\n", words(now)),
        };
    }
    if !undone.at_boot.is_empty() {
        text += &format!(
            "At boot that file still sets what plumb wrote in it; take these lines away, or the file:\n  {}\n",
            undone.at_boot.join("\n  ")
        );
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
