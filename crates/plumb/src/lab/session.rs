//! `plumb lab run|up|down|shell`: laboratories and what runs in them.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use plumb_lab::background;
use plumb_lab::client::RunningLab;
use plumb_lab::control::{Answer, Request};
use plumb_lab::disturbance::Disturbance;
use plumb_lab::scenario::Scenario;
use plumb_lab::stats::{DriverStats, LabStats};
use plumb_lab::supervise::{self, LAB_FAILED, Session};
use plumb_lab::vary::vary;
use plumb_model::run::LabBackend;
use plumb_model::units::human_seconds;

use super::complain::complain;
use crate::output::{json, print};
use crate::save;
use crate::usage::wrong;

/// Which networks a scenario is to be, one after the other.
pub(super) struct Draw {
    pub(super) seed: Option<u64>,
    pub(super) vary: bool,
    pub(super) repeat: u32,
}

/// Runs the command in each of them; the status is the first that is not zero.
pub(super) fn run(
    name: &str,
    session: Session,
    stats: Option<&Path>,
    draw: &Draw,
) -> anyhow::Result<ExitCode> {
    let scenario = Scenario::load(name)?;
    let seed = seed(&scenario, draw.seed, draw.vary)?;
    if draw.repeat > 1 {
        return repeat(name, &session, stats, draw, seed);
    }
    // As the log's file is: a command of an hour is not to be run for nothing.
    stats.map_or(Ok(()), save::check)?;
    let scenario = drawn(scenario, seed, draw.vary)?;
    let finished = |done: &LabStats| {
        tell(done);
        let Some(file) = stats else {
            return Ok(());
        };
        save::save(file, text(done)?).map_err(|e| io::Error::other(format!("{e:#}")))
    };
    let status = supervise::run(scenario, session, finished, |error| complain(error))?;
    Ok(exit(status))
}

/// The seed that decides.
fn seed(scenario: &Scenario, given: Option<u64>, varies: bool) -> anyhow::Result<u64> {
    if varies && scenario.vary.is_empty() {
        anyhow::bail!(
            "the scenario '{}' has no free parameters: give it ranges in [vary]",
            scenario.name
        );
    }
    match given {
        Some(seed) => Ok(seed),
        None if varies => fresh_seed(),
        None => Ok(scenario.seed),
    }
}

/// The scenario of a seed; says what was drawn.
fn drawn(mut scenario: Scenario, seed: u64, varies: bool) -> anyhow::Result<Scenario> {
    if !varies {
        scenario.seed = seed;
        return Ok(scenario);
    }
    let varied = vary(&scenario, seed).map_err(anyhow::Error::msg)?;
    let settings = varied
        .drawn
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    let settings: Vec<String> = settings.collect();
    complain(&format!("--seed {seed}: {}", settings.join(" ")));
    Ok(varied)
}

/// Each in a process of its own: one that has made the first of a PID namespace can make no
/// other.
fn repeat(
    name: &str,
    session: &Session,
    stats: Option<&Path>,
    draw: &Draw,
    first: u64,
) -> anyhow::Result<ExitCode> {
    if !session.records.is_empty() {
        return Err(wrong(
            "--log and --capture are for one run: leave --repeat out, and give the --seed",
        ));
    }
    let mut result = 0;
    for number in 0..draw.repeat {
        let seed = first.wrapping_add(u64::from(number));
        if !draw.vary {
            complain(&format!("--seed {seed}"));
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["lab", "run", name, "--seed", &seed.to_string()]);
        command.args(["--backend", session.backend.name()]);
        if draw.vary {
            command.arg("--vary");
        }
        if let Some(node) = &session.node {
            command.args(["--node", node]);
        }
        if let Some(file) = stats {
            let mut numbered = file.as_os_str().to_owned();
            numbered.push(format!(".{}", number + 1));
            command.arg("--stats").arg(numbered);
        }
        let status = command.arg("--").args(&session.command).status()?;
        if result == 0 {
            result = status.code().unwrap_or(LAB_FAILED);
        }
        // Interrupted: the other runs are not wanted.
        if status.code().is_none_or(|code| code > 128) {
            break;
        }
    }
    Ok(exit(result))
}

/// A random seed, short enough to be typed again.
fn fresh_seed() -> anyhow::Result<u64> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|e| anyhow::anyhow!("there is no random seed: {e}"))?;
    Ok(u64::from(u32::from_ne_bytes(bytes)))
}

pub(super) fn up(
    scenario: &str,
    name: Option<String>,
    given: Option<u64>,
    varies: bool,
    backend: LabBackend,
) -> anyhow::Result<ExitCode> {
    let scenario = Scenario::load(scenario)?;
    let seed = seed(&scenario, given, varies)?;
    let scenario = drawn(scenario, seed, varies)?;
    let name = name.unwrap_or_else(|| scenario.name.clone());
    let nodes: Vec<String> = scenario.nodes.iter().map(|n| n.name.clone()).collect();
    for note in background::start(scenario, backend, &name)? {
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
    let lab = RunningLab::find_running(name)?;
    let Answer::Stats(last) = lab.ask(&Request::Stats)? else {
        anyhow::bail!("the lab answered something else");
    };
    tell(&last);
    // First saved, then ended: what cannot be saved can still be asked for.
    if let Some(file) = stats {
        save::save(file, text(&last)?)?;
    }
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
    Ok(exit(RunningLab::find(lab)?.run_inside(node, &command)?))
}

fn exit(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(LAB_FAILED as u8))
}

/// What must be known to read numbers that were measured in there.
fn tell(done: &LabStats) {
    for disturbance in Disturbance::of_lab(done) {
        // What a link did is said of each direction.
        if let Disturbance::EndsStarved { .. } | Disturbance::TimeStolen { .. } = disturbance {
            complain(&format!(
                "this machine did not keep up: {disturbance}; numbers measured in this lab show the machine more than the links"
            ));
        }
    }
    for note in &done.notes {
        complain(note);
    }
    for (link, ways) in &done.links {
        for (way, what) in ways {
            for problem in problems(&what.driver) {
                complain(&format!("{link}.{}: {problem}", way.name()));
            }
        }
    }
}

/// What went wrong with a direction of a link, each in a sentence of its own.
fn problems(driver: &DriverStats) -> Vec<String> {
    let mut problems = Vec::new();
    let is_late = |disturbance: &Disturbance| {
        matches!(
            disturbance,
            Disturbance::LinkLate { .. } | Disturbance::DeviceDrops { .. }
        )
    };
    if Disturbance::of_link(driver).iter().any(is_late) {
        problems.push(format!(
            "this machine did not keep up: packets up to {} late, {} lost at the device; numbers measured in here are that uncertain",
            driver
                .lateness_s
                .map_or_else(|| "?".into(), |l| human_seconds(l.max)),
            driver.device_drops,
        ));
    }
    if driver.write_errors > 0 {
        problems.push(format!(
            "the receiving device did not take {} packets, as one that is down does not: they are lost, and not by the link's cells",
            driver.write_errors
        ));
    }
    if driver.stopped {
        problems.push("it carries nothing any more: its device was taken away".to_owned());
    }
    if driver.unreadable > 0 {
        problems.push(format!(
            "{} packets were neither IPv4 nor IPv6, and were left out",
            driver.unreadable
        ));
    }
    problems
}

/// The document of `--stats`.
fn text(done: &LabStats) -> serde_json::Result<String> {
    json(done)
}
