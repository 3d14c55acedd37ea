//! `plumb lab log|capture`, and the same for a whole `plumb lab run`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_lab::client::RunningLab;
use plumb_lab::error::LabError;
use plumb_lab::observe::Sight;
use plumb_lab::supervise::Record;
use plumb_model::units::parse_duration;

#[derive(Args)]
pub(super) struct Options {
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// For how long [default: until the lab ends, or this is interrupted]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
}

pub(super) fn look(
    lab: Option<&str>,
    sight: &Sight,
    options: &Options,
) -> anyhow::Result<ExitCode> {
    let lab = RunningLab::find(lab)?;
    let mut out: Box<dyn Write> = match &options.output {
        Some(file) => Box::new(create(file)?),
        None => Box::new(io::stdout().lock()),
    };
    match lab.look(sight, &mut out, options.duration) {
        // Whoever read it has seen enough.
        Err(LabError::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => {}
        Err(LabError::Output(e)) => {
            let output = options.output.as_deref();
            let output = output.map_or("standard output".into(), |file| file.display().to_string());
            return Err(e).with_context(|| format!("cannot write {output}"));
        }
        result => result?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be written down during a run, and where to.
pub(super) fn records(log: Option<PathBuf>, captures: &[String]) -> anyhow::Result<Vec<Record>> {
    let mut records = Vec::new();
    if let Some(path) = log {
        records.push(record(Sight::Log(Vec::new()), path)?);
    }
    for capture in captures {
        let (sight, path) = parse(capture).with_context(|| {
            format!("--capture '{capture}' is not LINK@NODE=FILE, such as line@modem=up.pcapng")
        })?;
        records.push(record(sight, path)?);
    }
    Ok(records)
}

fn record(sight: Sight, path: PathBuf) -> anyhow::Result<Record> {
    Ok(Record {
        sight,
        file: create(&path)?,
        path,
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

pub(super) fn create(file: &Path) -> anyhow::Result<File> {
    File::create(file).with_context(|| format!("cannot write {}", file.display()))
}
