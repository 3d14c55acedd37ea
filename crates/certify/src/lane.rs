//! Checking the line of one trial in a lab of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use plumb_lab::disturbance::Disturbance;
use plumb_model::run::Run;

use crate::expand::Expansion;
use crate::judge::Said;
use crate::results::{Checked, Lab};
use crate::trials::Trial;

/// A check that takes longer hangs. In virtual time, one of 100 Mbit/s takes two minutes of a processor, which others may want
/// as well.
const LONGEST: Duration = Duration::from_secs(1200);

/// How often it is asked whether the check has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Attempts at a line, for a lab that the machine was late in proves nothing.
const ATTEMPTS: u32 = 3;

/// What makes labs, and where their files go.
pub(crate) struct Laboratory<'a> {
    /// The program to certify.
    pub(crate) plumb: &'a Path,
    /// Arguments of `plumb check` beside the far end.
    pub(crate) options: &'a [String],
    /// Scenario, Run and messages of each trial are kept here.
    pub(crate) folder: &'a Path,
}

impl Laboratory<'_> {
    /// Checks the line until the machine kept up with it, at most so many times.
    pub(crate) fn check(
        &self,
        trial: &Trial,
        expansion: &Expansion,
    ) -> anyhow::Result<(Checked, Run)> {
        let file = |suffix: &str| self.folder.join(format!("{}{suffix}", trial.id()));
        std::fs::write(file(".toml"), &expansion.text)?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let began = Instant::now();
            let run = self.once(&file(".toml"), &file(".json"), &file(".txt"))?;
            let lab = run.local.lab.as_ref().context("a Run of no lab")?;
            let disturbed = !Disturbance::of_run(lab).is_empty();
            if disturbed && attempts < ATTEMPTS {
                continue;
            }
            let checked = Checked {
                said: Said::of(&run),
                seconds: began.elapsed().as_secs_f64(),
                bytes: bytes(&run),
                lab: Lab {
                    lateness_p99_s: lab.lateness_s.as_ref().map(|late| late.p99),
                    starved_ratio: lab.starved_ratio,
                    clock: lab.clock,
                    kernel: Some(run.local.host.kernel.clone()),
                    overrun: disturbed,
                },
                attempts,
            };
            return Ok((checked, run));
        }
    }

    fn once(&self, scenario: &Path, run: &Path, messages: &Path) -> anyhow::Result<Run> {
        let mut command = Command::new(self.plumb);
        command.args(["lab", "run", "--virtual"]).arg(scenario);
        command
            .arg("--")
            .args(["plumb", "check", "server", "--json"]);
        command.args(self.options).stdin(Stdio::null());
        command.stdout(File::create(run)?);
        command.stderr(File::create(messages)?);
        let mut child = command.spawn().context("plumb does not start")?;
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if began.elapsed() > LONGEST {
                // All of a lab ends with the process that was started.
                child.kill()?;
                child.wait()?;
                bail!("it takes longer than {} s", LONGEST.as_secs());
            }
            std::thread::sleep(LOOK);
        };
        // A check that measured only a part says so by its status, and what it makes of it is judged.
        let kept = std::fs::read_to_string(run)?;
        Run::from_json(&kept).with_context(|| {
            let said = std::fs::read_to_string(messages).unwrap_or_default();
            format!("{status}: {}", said.trim().replace('\n', " / "))
        })
    }
}

/// Payload that the check transferred, by what its loads say of themselves.
fn bytes(run: &Run) -> u64 {
    let each = run.measurements.iter().filter_map(|measurement| {
        let result = serde_json::to_value(&measurement.outcome).ok()?;
        let result = result.get("result")?;
        result.get("bps")?;
        result.get("bytes")?.as_u64()
    });
    each.sum()
}

/// Where the traces are that scenarios name, beside the scenarios of trials.
pub(crate) fn with_traces(folder: PathBuf, scenarios: &Path) -> anyhow::Result<PathBuf> {
    let traces = folder.join("traces");
    std::fs::create_dir_all(&traces)?;
    for entry in std::fs::read_dir(scenarios.join("traces"))? {
        let from = entry?.path();
        let name = from.file_name().context("a trace without a name")?;
        std::fs::copy(&from, traces.join(name))?;
    }
    Ok(folder)
}
