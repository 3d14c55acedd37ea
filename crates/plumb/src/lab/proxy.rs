//! `plumb lab proxy`: a transparent TCP proxy, as a service of a scenario.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_lab::client;
use plumb_lab::proxy::Proxy;

use crate::quantity::time_above_zero;

#[derive(Args)]
pub(super) struct Arguments {
    /// Interface that the clients are at
    #[arg(long, value_name = "INTERFACE")]
    clients: String,
    /// Interface that the servers are at
    #[arg(long, value_name = "INTERFACE")]
    servers: String,
    /// Port whose connections it takes
    #[arg(long, default_value_t = 80)]
    port: u16,
    /// Hold every reply back until the server has closed, or been silent for this long
    #[arg(long, value_name = "TIME", value_parser = time_above_zero)]
    buffer: Option<Duration>,
}

pub(super) fn proxy(arguments: Arguments) -> anyhow::Result<ExitCode> {
    // It changes the routing of the machine that it runs on.
    anyhow::ensure!(
        client::inside(),
        "this is not inside a lab: write it as a [[service]] of a scenario"
    );
    let Arguments {
        clients,
        servers,
        port,
        buffer: hold,
    } = arguments;
    Proxy {
        clients,
        servers,
        port,
        hold,
    }
    .run()?;
    Ok(ExitCode::SUCCESS)
}
