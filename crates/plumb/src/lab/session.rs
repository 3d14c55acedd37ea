//! `plumb lab run|up|down|shell`: laboratories and what runs in them.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plumb_lab::background;
use plumb_lab::control::{Answer, Request};
use plumb_lab::reach::Reach;
use plumb_lab::scenario::Scenario;
use plumb_lab::stats::LabStats;
use plumb_lab::supervise::{self, LAB_FAILED, Session};
use plumb_model::units::human_seconds;

use super::complain;
use crate::output::{message, print, save};

pub(super) fn run(
    name: &str,
    stats: Option<PathBuf>,
    session: &Session,
) -> anyhow::Result<ExitCode> {
    let scenario = Scenario::load(name)?;
    let finished = |done: LabStats| {
        tell(&done);
        keep(&done, stats.as_deref()).map_err(|error| io::Error::other(message(&error)))
    };
    let status = supervise::run(scenario, session, finished, |error| complain(error))?;
    Ok(exit(status))
}

pub(super) fn up(
    scenario: &str,
    name: Option<String>,
    seed: Option<u64>,
) -> anyhow::Result<ExitCode> {
    let mut scenario = Scenario::load(scenario)?;
    scenario.seed = seed.unwrap_or(scenario.seed);
    let name = name.unwrap_or_else(|| scenario.name.clone());
    let nodes: Vec<String> = scenario.nodes.iter().map(|n| n.name.clone()).collect();
    for note in background::start(scenario, &name)? {
        complain(&note);
    }
    let first = nodes.first().map_or("", String::as_str);
    print(&format!(
        "The lab '{name}' is up, with {}.\nEnter it: plumb lab shell {first} --lab {name}\nEnd it:   plumb lab down {name}\n",
        nodes.join(", ")
    ))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn down(name: Option<&str>, stats: Option<&Path>) -> anyhow::Result<ExitCode> {
    let lab = Reach::find_running(name)?;
    let Answer::Stats(last) = lab.ask(&Request::Stats)? else {
        anyhow::bail!("the lab answered something else");
    };
    tell(&last);
    // First saved, then ended: what cannot be saved can still be asked for.
    keep(&last, stats)?;
    lab.end()?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn shell(
    node: &str,
    lab: Option<&str>,
    mut command: Vec<OsString>,
) -> anyhow::Result<ExitCode> {
    if command.is_empty() {
        let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
        command.push(shell.unwrap_or_else(|| "/bin/sh".into()));
    }
    Ok(exit(Reach::find(lab)?.run_inside(node, &command)?))
}

fn exit(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(LAB_FAILED as u8))
}

/// What must be known to read numbers that were measured in there.
fn tell(done: &LabStats) {
    for note in &done.notes {
        complain(note);
    }
    for (link, ways) in &done.links {
        for (way, what) in ways {
            if what.driver.overrun {
                complain(&format!(
                    "this machine did not keep up with {link}.{}: packets up to {} late, {} lost at the device; numbers measured in here are that uncertain",
                    way.name(),
                    what.driver
                        .lateness_s
                        .map_or_else(|| "?".into(), |l| human_seconds(l.max)),
                    what.driver.device_drops,
                ));
            }
        }
    }
}

fn keep(done: &LabStats, file: Option<&Path>) -> anyhow::Result<()> {
    match file {
        Some(file) => save(file, &(serde_json::to_string(done)? + "\n")),
        None => Ok(()),
    }
}
