//! How sure each finding of a Run is, and why, for those who ask.

use clap::Args;
use plumb_diagnose::{Case, weighing};
use plumb_model::run::Run;
use plumb_report::text::{self, Style};

#[derive(Args)]
pub(crate) struct Weighed {
    /// Show how the confidence of each finding adds up
    #[arg(long)]
    explain: bool,
}

impl Weighed {
    pub(crate) fn is_asked(&self) -> bool {
        self.explain
    }

    /// How the findings of a Run were weighed, as text where that was asked for.
    pub(crate) fn render(&self, run: &Run, style: &Style) -> String {
        if !self.explain {
            return String::new();
        }
        let accounts = weighing::accounts(&Case::of(run), &run.findings);
        text::render_accounts(&accounts, style)
    }
}
