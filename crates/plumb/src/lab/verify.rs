//! `plumb lab verify`: a saved Run against the truth of its scenario.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use plumb_lab::scenario::Scenario;
use plumb_lab::stats::LabStats;
use plumb_lab::truth::truth;

use crate::output::{print, read_run};

pub(super) fn verify(scenario: &str, run: &Path, stats: &Path) -> anyhow::Result<ExitCode> {
    let scenario = Scenario::load(scenario)?;
    let run = read_run(run)?;
    let text = std::fs::read_to_string(stats)
        .with_context(|| format!("cannot read {}", stats.display()))?;
    let stats: LabStats = serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is not what plumb lab run --stats writes",
            stats.display()
        )
    })?;
    let deviations = truth(&scenario, &run, &stats);
    for deviation in &deviations {
        print(&format!("deviates: {deviation}\n"))?;
    }
    if deviations.is_empty() {
        print(&format!(
            "The Run agrees with the truth of {}.\n",
            scenario.name
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}
