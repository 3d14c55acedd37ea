//! `plumb lab verify`: a Run against the truth of its scenario.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use plumb_lab::scenario::Scenario;
use plumb_lab::stats::LabStats;
use plumb_lab::supervise::LAB_FAILED;
use plumb_lab::truth::{Deviation, Verdict, recorded, verdict};

use crate::output::{print, read_run};

pub(super) fn saved(scenario: &str, run: &Path, stats: &Path) -> anyhow::Result<ExitCode> {
    let scenario = Scenario::load(scenario)?;
    let verdict = verdict(&scenario, &read_run(run)?, &read_stats(stats)?);
    tell(&scenario, &verdict)
}

/// One that is made now, in the scenario, by the command that its truth names.
pub(super) fn now(name: &str) -> anyhow::Result<ExitCode> {
    let scenario = Scenario::load(name)?;
    let folder = tempfile::tempdir().context("cannot make a temporary directory")?;
    let (run_file, stats_file) = (
        folder.path().join("run.json"),
        folder.path().join("stats.json"),
    );
    let measure = &scenario.truth.measure;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["lab", "run", name, "--stats"])
        .arg(&stats_file);
    command.arg("--").args(measure);
    let begins = |program: &str| measure.first().is_some_and(|first| first == program);
    // A script finds it among its arguments.
    if begins("sh") || (begins("plumb") && measure.get(1).is_some_and(|verb| verb != "lab")) {
        command.arg("-o").arg(&run_file);
    }
    command.stdout(std::process::Stdio::null());
    let status = command.status().context("cannot run the lab")?;
    if status.code() == Some(LAB_FAILED) {
        anyhow::bail!("the lab did not run");
    }
    let stats = read_stats(&stats_file)?;
    let mut verdict = match run_file.exists() {
        true => verdict(&scenario, &read_run(&run_file)?, &stats),
        false => recorded(&scenario, &stats),
    };
    if status.code() != Some(scenario.truth.status) {
        verdict.deviations.push(Deviation {
            what: format!(
                "'{}' ends with status {}",
                measure.join(" "),
                scenario.truth.status
            ),
            found: status.to_string(),
        });
    }
    tell(&scenario, &verdict)
}

fn read_stats(file: &Path) -> anyhow::Result<LabStats> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is not what plumb lab run --stats writes",
            file.display()
        )
    })
}

/// What deviates, and where nothing does, what was compared with what.
fn tell(scenario: &Scenario, verdict: &Verdict) -> anyhow::Result<ExitCode> {
    for deviation in &verdict.deviations {
        print(&format!("deviates: {deviation}\n"))?;
    }
    if !verdict.deviations.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    let holds: String = verdict.holds.iter().map(|h| format!("  {h}\n")).collect();
    print(&format!(
        "What was measured agrees with the truth of {}:\n{holds}",
        scenario.name
    ))?;
    Ok(ExitCode::SUCCESS)
}
