//! `plumb watch`: targets probed on a schedule, with their history, and a page that shows it.

mod backup;
mod device;
mod export;
mod flows;
mod history;
mod init;
mod report;
mod when;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use plumb_net::process::on_hangup;
use plumb_watch::config::Config;
use plumb_watch::watching::{self, Asked, WatchError};

use crate::exit::{Ends, stop_flag};
use crate::output::say;
use history::in_words;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb watch init example.net 9.9.9.9 -o watch.toml    a file to begin with
  plumb watch --check-config watch.toml                 what is wrong with it
  plumb watch watch.toml                                until Ctrl-C
  plumb watch report watch.toml --month 2026-11         availability and outages
  plumb watch export watch.toml --from 7d -o week.csv   while it runs, or later
  plumb watch backup watch.toml copy.db                 likewise
  plumb watch device 192.168.1.2 --community-file c     what a switch has
  plumb watch flows 2055 --for 5m                       what routers export
  curl http://127.0.0.1:7590/metrics                    for Prometheus

Limits: three probes in a row without an answer are an outage; its beginning and end are the times of probes, so it is known to the \
interval. The page is for this machine, and without a login, unless the file says otherwise. See `plumb explain watch`.";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    /// TOML file that says what is watched; SIGHUP has it read again
    #[arg(required = true)]
    file: Option<PathBuf>,
    /// Check the file, and end: status 2 where something in it is wrong
    #[arg(long)]
    check_config: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Write a file to begin with: the gateway, the resolver, and hosts of yours
    Init(init::Arguments),
    /// Availability by month, with the means between failures and to repair
    Report(report::Arguments),
    /// Write the history as CSV or Parquet: probes or distributions, outages, alarms, months
    Export(export::Arguments),
    /// Copy the history into a file, also while it is written to
    Backup(backup::Arguments),
    /// Show once what a device has by SNMP: ports, use, memory, sensors
    Device(device::Arguments),
    /// Show the largest flows that routers export: NetFlow, IPFIX, sFlow
    Flows(flows::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.action {
        Some(Action::Init(arguments)) => return init::run(arguments),
        Some(Action::Report(arguments)) => return report::run(arguments),
        Some(Action::Export(arguments)) => return export::run(arguments),
        Some(Action::Backup(arguments)) => return backup::run(arguments),
        Some(Action::Device(arguments)) => return device::run(arguments),
        Some(Action::Flows(arguments)) => return flows::run(arguments),
        None => {}
    }
    let file = arguments
        .file
        .as_deref()
        .context("which file says what is watched?")?;
    if arguments.check_config {
        let config = Config::read(file).map_err(in_words)?;
        say(format_args!(
            "{}: {}; the history is kept in {}, the page is at http://{}/",
            file.display(),
            config.summary(),
            config.store.display(),
            config.listen
        ));
        for warning in &config.warnings {
            say(warning);
        }
        return Ok(ExitCode::SUCCESS);
    }
    // Both before any other thread, which a signal would end the program in.
    let asked = Asked {
        stop: stop_flag(Ends::BySignal)?,
        ..Asked::default()
    };
    let reload = Arc::clone(&asked.reload);
    on_hangup(move || reload.store(true, Ordering::Relaxed)).context("cannot wait for signals")?;
    match watching::run(file, &asked, &|words| say(words)) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(WatchError::Config(error)) => Err(in_words(error)),
        Err(error) => Err(error.into()),
    }
}
