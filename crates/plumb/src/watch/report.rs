//! `plumb watch report`: availability by month.

use std::process::ExitCode;

use clap::Args;
use plumb_watch::month::Month;
use plumb_watch::report;

use super::history::{Source, now_s};
use crate::output::{print, say};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Only this month of UTC, such as 2026-11 [default: all]
    #[arg(long)]
    month: Option<Month>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (store, names) = arguments.source.open_without_series()?;
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        let months = store.months(&name, arguments.month, now_s())?;
        targets.push((name, months));
    }
    print(report::text(&targets).trim_end_matches('\n'))?;
    print("\n")?;
    say(report::UNKNOWN);
    Ok(ExitCode::SUCCESS)
}
