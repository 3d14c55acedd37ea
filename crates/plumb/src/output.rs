//! What every verb that makes a Run does with it: print, save, fail on a finding.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use plumb_lab::control::{self, Answer, Request};
use plumb_model::finding::Severity;
use plumb_model::run::Run;
use plumb_report::text::{self, Style};

/// Exit status when a finding reaches `--fail-on`.
const FOUND: u8 = 3;

/// Where the result goes.
#[derive(Args)]
pub(crate) struct Output {
    /// Print the Run as JSON on standard output, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Save the Run to a file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Exit with status 3 when a finding is at least this bad
    #[arg(long, value_name = "SEVERITY")]
    pub(crate) fail_on: Option<FailOn>,
}

/// The severities that `--fail-on` knows.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FailOn {
    /// Warnings and critical findings
    Warning,
    /// Critical findings
    Critical,
}

impl Output {
    /// Marks the Run with the laboratory it was made in, saves and prints it.
    pub(crate) fn emit(&self, mut run: Run) -> anyhow::Result<ExitCode> {
        if control::inside() {
            match control::ask(&Request::Mark) {
                Ok(Answer::Mark(mark)) => run.local.lab = Some(mark),
                Ok(_) => {}
                Err(e) => run.notes.push(format!(
                    "The lab could not be asked how well it kept up: {e}"
                )),
            }
        }
        let json = || serde_json::to_string(&run).map(|text| text + "\n");
        if let Some(file) = &self.output {
            save(file, &json()?)?;
        }
        if self.json {
            print!("{}", json()?);
        } else {
            anstream::print!("{}", text::render(&run, &style()));
        }
        let limit = self.fail_on.map(|limit| match limit {
            FailOn::Warning => Severity::Warning,
            FailOn::Critical => Severity::Critical,
        });
        let found = limit.is_some_and(|limit| run.findings.iter().any(|f| f.severity >= limit));
        Ok(if found {
            ExitCode::from(FOUND)
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Saves a text, with the file's name in the error.
pub(crate) fn save(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Reads a saved Run.
pub(crate) fn read_run(file: &Path) -> anyhow::Result<Run> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Run::from_json(&text)
        .with_context(|| format!("{} is not a Run that can be read", file.display()))
}

/// How text looks on standard output: colour is taken out again where it does not belong.
pub(crate) fn style() -> Style {
    /// Width of text that does not go to a terminal.
    const PLAIN_COLUMNS: usize = 80;
    /// Wider than this, lines are hard to follow.
    const MOST_COLUMNS: usize = 100;
    let width = plumb_net::terminal::columns().map_or(PLAIN_COLUMNS, |c| c.min(MOST_COLUMNS));
    Style { color: true, width }
}
