//! `plumb lab log|capture`, and the same for a whole `plumb lab run`.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_lab::observe::Sight;
use plumb_lab::reach::Reach;
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
    let lab = Reach::find(lab)?;
    let mut out: Box<dyn Write> = match &options.output {
        Some(file) => Box::new(create(file)?),
        None => Box::new(io::stdout().lock()),
    };
    match lab.look(sight, &mut out, options.duration) {
        // Whoever read it has seen enough.
        Err(plumb_lab::error::LabError::Io(e)) if e.kind() == io::ErrorKind::BrokenPipe => {}
        result => result?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be written down during a run, and where to.
pub(super) fn sights(
    log: Option<PathBuf>,
    captures: &[String],
) -> anyhow::Result<Vec<(Sight, File)>> {
    let mut sights = Vec::new();
    if let Some(file) = log {
        sights.push((Sight::Log(Vec::new()), create(&file)?));
    }
    for capture in captures {
        let (sight, file) = parse(capture).with_context(|| {
            format!("--capture '{capture}' is not LINK@NODE=FILE, such as line@modem=up.pcapng")
        })?;
        sights.push((sight, create(&file)?));
    }
    Ok(sights)
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

fn create(file: &PathBuf) -> anyhow::Result<File> {
    File::create(file).with_context(|| format!("cannot write {}", file.display()))
}
