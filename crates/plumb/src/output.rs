//! What every verb does with what it has to show: print it, save it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use plumb_measure::progress::Watcher;
use plumb_model::run::Run;
use plumb_report::text::{self, Style};

#[cfg(feature = "lab")]
use crate::lab::Mark;
use crate::save::{self, save};
#[cfg(feature = "tune")]
pub(crate) use crate::stderr::prompt_page;
pub(crate) use crate::stderr::{ask, prompt, say};
pub(crate) use crate::stdout::{Pager, json, print, print_json, print_page, show_page};
#[cfg(not(feature = "lab"))]
use crate::without::Mark;
use crate::{progress, quiet};

/// The option that prints a document instead of text.
pub(crate) const JSON: &str = "--json";

/// Where a Run goes that takes a while, and whether programs look on meanwhile.
#[derive(Args)]
pub(crate) struct LiveOutput {
    #[command(flatten)]
    output: Output,
    /// Print events as they come, an object of JSON a line, and the Run last
    #[arg(long, conflicts_with = "json")]
    json_lines: bool,
}

impl LiveOutput {
    pub(crate) fn begin(&self) -> anyhow::Result<Begun<'_>> {
        let begun = self.output.begin()?;
        let json = begun.json || self.json_lines;
        Ok(Begun { json, ..begun })
    }

    /// Says nothing from here on where that was asked for.
    pub(crate) fn hush(&self) {
        if self.output.quiet {
            quiet::be_quiet();
        }
    }

    /// Begins a Run that goes into a file of its own, after `hush`.
    pub(crate) fn begin_aside(&self) -> Begun<'_> {
        Begun {
            output: &self.output,
            json: false,
            lab: Mark::begin(),
        }
    }

    /// The option given that prints one Run.
    pub(crate) fn of_one_run(&self) -> Option<&'static str> {
        let options = [
            (self.output.json, JSON),
            (self.json_lines, "--json-lines"),
            (self.output.details, "--details"),
        ];
        let mut given = options.into_iter().filter(|(given, _)| *given);
        given.next().map(|(_, option)| option)
    }

    /// The file or directory that `-o` names.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.output.output.as_deref()
    }

    pub(crate) fn watcher(&self) -> Box<dyn Watcher> {
        progress::watcher(self.json_lines)
    }
}

/// Where a Run goes.
#[derive(Args)]
pub(crate) struct Output {
    /// Print the Run as JSON, and nothing else
    #[arg(long)]
    json: bool,
    /// Save the Run in this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the result and errors alone: no progress and no remarks
    #[arg(short, long)]
    quiet: bool,
    /// Print all that was measured, with every table
    #[arg(long, conflicts_with = "json")]
    details: bool,
}

impl Output {
    /// Whether standard output is for the Run in JSON alone.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Whether the whole Run goes anywhere: into a file, or as JSON to standard output.
    pub(crate) fn keeps_run(&self) -> bool {
        self.json || self.output.is_some()
    }

    /// Whether nothing but the result is wanted.
    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// Whether the Run is shown as text, so that other text may stand before it.
    pub(crate) fn is_text(&self) -> bool {
        !self.json
    }

    /// Begins the Run: refuses a file that cannot be written, as far as that shows before there is
    /// anything to write, and asks the laboratory to watch itself meanwhile.
    pub(crate) fn begin(&self) -> anyhow::Result<Begun<'_>> {
        if self.quiet {
            quiet::be_quiet();
        }
        if let Some(file) = &self.output {
            save::check(file)?;
        }
        Ok(Begun {
            output: self,
            json: self.json,
            lab: Mark::begin(),
        })
    }
}

/// A Run that is being made.
pub(crate) struct Begun<'a> {
    output: &'a Output,
    /// Whether it is printed as JSON.
    json: bool,
    lab: Mark,
}

impl Begun<'_> {
    /// Marks the Run with the laboratory it was made in, prints and saves it: in short, or all of it where that was asked
    /// for.
    pub(crate) fn emit(self, run: Run) -> anyhow::Result<()> {
        match self.details() {
            true => self.emit_as(run, text::render),
            false => self.emit_as(run, text::render_brief),
        }
    }

    /// Whether all that was measured is to be printed.
    pub(crate) fn details(&self) -> bool {
        self.output.details
    }

    /// Prints it as a text of its own.
    pub(crate) fn emit_as(
        mut self,
        run: Run,
        render: impl FnOnce(&Run, &Style) -> String,
    ) -> anyhow::Result<()> {
        let run = self.lab.set(run);
        // First shown, then saved: a file that cannot be written must not lose a minute's work.
        if self.json {
            print_json(&run)?;
        } else {
            print_page(&render(&run, &style()))?;
        }
        self.keep(&run)
    }

    /// The Run with the mark of the laboratory that it was made in.
    pub(crate) fn marked(mut self, run: Run) -> Run {
        self.lab.set(run)
    }

    /// The same without printing it.
    pub(crate) fn save(mut self, run: Run) -> anyhow::Result<()> {
        let run = self.lab.set(run);
        self.keep(&run)
    }

    fn keep(&self, run: &Run) -> anyhow::Result<()> {
        match &self.output.output {
            Some(file) => save(file, json(run)?),
            None => Ok(()),
        }
    }
}

/// An error and its causes, each said once: many say the one below them already.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // A reader of TOML ends its error in a line feed.
        let cause = cause.trim_end();
        if text.is_empty() {
            text = cause.to_owned();
        } else if !text.contains(cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
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
    let width = plumb_net::terminal::columns().unwrap_or(PLAIN_COLUMNS);
    Style { color: true, width }
}

/// Columns for sentences, which are hard to follow in longer lines.
pub(crate) fn prose_columns() -> usize {
    const MOST_COLUMNS: usize = 100;
    style().width.min(MOST_COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_said_once_in_one_piece() {
        let cause = anyhow::anyhow!("line 3\nwrong\n");
        let error = cause.context("a.toml: line 3\nwrong");
        assert_eq!(message(&error), "a.toml: line 3\nwrong");
        assert_eq!(
            message(&error.context("no scenario")),
            "no scenario: a.toml: line 3\nwrong"
        );
    }
}
