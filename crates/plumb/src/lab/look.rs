//! `plumb lab log|capture`, and the same for a whole `plumb lab run`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_lab::client::RunningLab;
use plumb_lab::error::LabError;
use plumb_lab::observe::Sight;
use plumb_lab::supervise::Record;

use crate::exit::{Ends, stop_flag};
use crate::quantity::time;
use crate::save::growing::Growing;
use crate::usage::wrong;

#[derive(Args)]
pub(super) struct Options {
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// For how long [default: until the lab ends, or this is interrupted]
    #[arg(short = 't', long = "for", alias = "duration", value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,
}

pub(super) fn look(
    lab: Option<&str>,
    sight: &Sight,
    options: &Options,
) -> anyhow::Result<ExitCode> {
    let lab = RunningLab::find(lab)?;
    let stop = stop_flag(Ends::by_signal_if(options.duration.is_none()))?;
    let growing = options.output.as_deref().map(Growing::begin).transpose()?;
    let mut out: Box<dyn Write> = match &growing {
        Some(growing) => Box::new(growing.file()?),
        None => Box::new(io::stdout().lock()),
    };
    let written = match lab.look(sight, &mut out, options.duration, &stop) {
        // The reader has seen enough.
        Err(LabError::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(LabError::Output(e)) => Err(e),
        seen => {
            seen?;
            growing.map_or(Ok(()), Growing::keep)
        }
    };
    written.with_context(|| {
        let output = options.output.as_deref();
        let output = output.map_or("standard output".into(), |file| file.display().to_string());
        format!("cannot write {output}")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What is to be written down during a run, and where to.
pub(super) fn records(log: Option<PathBuf>, captures: &[String]) -> anyhow::Result<Vec<Record>> {
    let mut records = Vec::new();
    if let Some(path) = log {
        records.push(record(Sight::Log(Vec::new()), path)?);
    }
    for capture in captures {
        let (sight, path) = parse(capture).ok_or_else(|| {
            wrong(format!(
                "--capture '{capture}' is not LINK@NODE=FILE, such as line@modem=up.pcapng"
            ))
        })?;
        records.push(record(sight, path)?);
    }
    Ok(records)
}

fn record(sight: Sight, path: PathBuf) -> anyhow::Result<Record> {
    let growing = Growing::begin(&path)?;
    Ok(Record {
        sight,
        file: growing.file()?,
        path,
        keep: Box::new(|| growing.keep()),
    })
}

fn parse(capture: &str) -> Option<(Sight, PathBuf)> {
    let (end, file) = capture.split_once('=')?;
    let (link, node) = end.split_once('@')?;
    let sight = Sight::Capture {
        link: link.to_owned(),
        node: node.to_owned(),
    };
    (!file.is_empty()).then(|| (sight, file.into()))
}
