//! What became of trials: one JSON line each, appended, so that an interrupted run continues where it was.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plumb_model::run::LabClock;
use serde::{Deserialize, Serialize};

use crate::judge::Said;
use crate::trials::Trial;

/// A trial and what became of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    #[serde(flatten)]
    pub(crate) trial: Trial,
    /// The state of `crates/diagnose` that judged, as git names it, and the commit that the rest was of.
    pub(crate) rules: String,
    pub(crate) commit: String,
    /// When, RFC 3339 in UTC.
    pub(crate) at: String,
    /// Trials that ran beside it, with itself.
    pub(crate) lanes: usize,
    /// What plumb said; none where the check failed.
    pub(crate) checked: Option<Checked>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
}

/// A check that came to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Checked {
    pub(crate) said: Said,
    /// How long the check and its lab took, in seconds.
    pub(crate) seconds: f64,
    /// Payload that its loads transferred.
    pub(crate) bytes: u64,
    pub(crate) lab: Lab,
    /// How often it was checked until the machine kept up.
    pub(crate) attempts: u32,
}

/// How well the machine kept up with the lab.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Lab {
    pub lateness_p99_s: Option<f64>,
    pub(crate) starved_ratio: f64,
    /// Lines of before there were labs in virtual time have none: they were checked in real time.
    #[serde(default)]
    pub(crate) clock: LabClock,
    /// Operating system and kernel release in which it ran; not kept of earlier lines.
    #[serde(default)]
    pub(crate) kernel: Option<String>,
    /// Whether it counts for nothing.
    pub(crate) overrun: bool,
}

/// The lines of a set.
pub(crate) struct Results {
    path: PathBuf,
}

impl Results {
    pub(crate) fn of(path: PathBuf) -> Self {
        Self { path }
    }

    /// All of them, the oldest first; of a trial that was repeated with other rules, the newest alone.
    pub(crate) fn read(&self) -> anyhow::Result<Vec<Line>> {
        let Ok(text) = std::fs::read_to_string(&self.path) else {
            return Ok(Vec::new());
        };
        let lines = text.lines().map(|line| {
            serde_json::from_str(line).with_context(|| format!("{}: {line}", self.path.display()))
        });
        let lines: Vec<Line> = lines.collect::<anyhow::Result<_>>()?;
        let mut seen = BTreeSet::new();
        let mut newest: Vec<Line> = lines.into_iter().rev().collect();
        newest.retain(|line| seen.insert(line.trial.id()));
        newest.reverse();
        Ok(newest)
    }

    pub(crate) fn append(&self, line: &Line) -> anyhow::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)
            .with_context(|| format!("{}", self.path.display()))?;
        file.write_all(format!("{}\n", serde_json::to_string(line)?).as_bytes())?;
        Ok(())
    }
}
