//! `--redact`: Runs without addresses, names and identifiers.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use plumb_model::run::Run;
use plumb_redact::Redactor;

use crate::key;
use crate::output::say;

#[derive(Args)]
#[command(next_help_heading = "Redaction")]
pub(crate) struct RedactOptions {
    /// Replace addresses, names and identifiers
    ///
    /// In text, pages and charts, and with -o FILE.json in the saved Run. What is left is said.
    #[arg(long)]
    pub(crate) redact: bool,
    /// Take the key from this file: several Runs agree
    #[arg(long = "key", value_name = "FILE", requires = "redact")]
    redact_key: Option<PathBuf>,
}

impl RedactOptions {
    pub(crate) fn begin(&self) -> anyhow::Result<Redaction> {
        let secret = match self.redact {
            true => Some(key::to_replace(self.redact_key.as_deref())?),
            false => None,
        };
        Ok(Redaction(secret.map(|secret| Redactor::new(&secret))))
    }
}

/// Who redacts, where that was asked for.
pub(crate) struct Redaction(Option<Redactor>);

impl Redaction {
    pub(crate) fn run(&mut self, run: Run) -> anyhow::Result<Run> {
        match &mut self.0 {
            Some(redactor) => redactor
                .run(&run)
                .context("the Run could not be redacted, and nothing was written"),
            None => Ok(run),
        }
    }

    /// Says what was taken out, and what is left.
    pub(crate) fn say(&self) {
        if let Some(redactor) = &self.0 {
            say(redactor.summary());
        }
    }
}
