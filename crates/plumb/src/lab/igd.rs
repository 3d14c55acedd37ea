//! `plumb lab igd`: a gateway that reports its line, as a service of a scenario.

use std::process::ExitCode;

use clap::Args;
use plumb_lab::client;
use plumb_lab::igd::Igd;
use plumb_model::units::BitRate;

use crate::quantity::rate_above_zero;

#[derive(Args)]
pub(super) struct Arguments {
    /// Interface that is its line
    #[arg(long, value_name = "INTERFACE")]
    line: String,
    /// What the line brings, as it reports
    #[arg(long, value_name = "RATE", value_parser = rate_above_zero)]
    down: BitRate,
    /// What the line takes, as it reports
    #[arg(long, value_name = "RATE", value_parser = rate_above_zero)]
    up: BitRate,
}

pub(super) fn igd(arguments: Arguments) -> anyhow::Result<ExitCode> {
    // Hosts that search a real network would take it for the gateway.
    anyhow::ensure!(
        client::inside(),
        "this is not inside a lab: write it as a [[service]] of a scenario"
    );
    let Arguments { line, down, up } = arguments;
    Igd { line, down, up }.run()?;
    Ok(ExitCode::SUCCESS)
}
