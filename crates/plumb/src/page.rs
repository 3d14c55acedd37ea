//! `plumb page`: what loading a web page takes, object by object.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_measure::page;
use plumb_model::results::Outcome;
use plumb_model::results::page_load::HttpVersion;
use plumb_model::run::Run;
use plumb_model::units::ByteCount;
use plumb_probe::page::{Limits, Objects, PagePlan};
use plumb_wire::url::{Url, UrlError};

use crate::exit::{Ends, stop_flag};
use crate::output::Output;
use crate::progress::Line;
use crate::quantity::time_above_zero;
use crate::target::{PathOptions, command_line};
use crate::trust::TrustOptions;
use crate::usage::wrong;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb page https://www.example.net/               the page and what is on it
  plumb page https://server/ --protocol http/1.1    over HTTP/1.1
  plumb page https://server/ --objects list.txt     with these URLs, one a line

The exit status is 0 when the page itself was loaded, even if objects failed.

Limits: no script runs and nothing is drawn, so what scripts load is not loaded: --objects takes a list. Nothing is \
cached, no connection is open before, HTTP/3 is not used. Between the first byte and the last a slow server looks like a \
slow path. See `plumb explain page`.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// The page: https://… or http://…; a name alone is taken for https://
    #[arg(value_parser = typed_url)]
    url: Url,
    /// Load the URLs of this file with it, one a line
    ///
    /// And not those that the page names; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    objects: Option<PathBuf>,
    /// Load the page alone
    #[arg(long)]
    only: bool,
    /// Version of HTTP: http/1.1 or h2 [default: as offered]
    ///
    /// By default h2 where the server offers it over TLS, else http/1.1.
    #[arg(long, value_name = "VERSION")]
    protocol: Option<HttpVersion>,
    /// Accept compressed answers; needs --objects or --only
    ///
    /// What is compressed is not searched for objects.
    #[arg(long)]
    gzip: bool,
    /// How often to load it, each time on new connections
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// How long each load may take
    #[arg(short = 'W', long, value_name = "TIME", default_value = "60s", value_parser = time_above_zero)]
    timeout: Duration,
    /// The most that each load may transfer
    #[arg(long, value_name = "SIZE", default_value = "100MB")]
    budget: ByteCount,
    #[command(flatten)]
    trust: TrustOptions,
    #[command(flatten)]
    path: PathOptions,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let plan = arguments.plan()?;
    let output = arguments.output.begin()?;
    let stop = stop_flag(Ends::ByItself)?;
    let line = Line::new();
    let run = page::run(command_line(), &plan, arguments.count, &line, &stop)?.run;
    drop(line);
    let failure = failure(&run);
    output.emit(run)?;
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(why) => anyhow::bail!("{} did not come: {why}", plan.url),
    }
}

impl Arguments {
    fn plan(&self) -> anyhow::Result<PagePlan> {
        let objects = match (&self.objects, self.only) {
            (Some(file), _) => Objects::Listed(listed(file)?),
            (None, true) => Objects::None,
            (None, false) => Objects::Found,
        };
        if self.gzip && objects == Objects::Found {
            return Err(wrong(
                "a page that comes compressed is not searched for objects: add --objects FILE or --only, or leave --gzip out"
                    .to_owned(),
            ));
        }
        Ok(PagePlan {
            objects,
            version: self.protocol,
            gzip: self.gzip,
            ipv6: self.path.ipv6(),
            outlet: self.path.from.clone().unwrap_or_default(),
            limits: Limits {
                time: self.timeout,
                bytes: self.budget.bytes(),
                ..Limits::default()
            },
            ..PagePlan::new(self.url.clone(), self.trust.trust_for(&self.url)?)
        })
    }
}

/// What browsers make of it: a name without a scheme is asked for by https.
fn typed_url(text: &str) -> Result<Url, UrlError> {
    match text.contains("://") {
        true => text.parse(),
        false => format!("https://{text}").parse(),
    }
}

/// The URLs of a list: one a line; lines that are empty or begin with '#' are none.
fn listed(file: &Path) -> anyhow::Result<Vec<Url>> {
    let text = match file.to_str() {
        Some("-") => std::io::read_to_string(std::io::stdin()),
        _ => std::fs::read_to_string(file),
    };
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.lines().map(str::trim).zip(1..);
    let urls = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    urls.map(|(line, number)| {
        let url = line.parse::<Url>();
        url.map_err(|why| wrong(format!("line {number} of {}: {why}", file.display())))
    })
    .collect()
}

/// Why the page did not come in any of the loads; `None` where it did.
fn failure(run: &Run) -> Option<String> {
    let mut why = None;
    for measurement in &run.measurements {
        let Outcome::PageLoad(load) = &measurement.outcome else {
            continue;
        };
        if load.html_s.is_some() {
            return None;
        }
        let mut errors = load
            .objects
            .iter()
            .filter_map(|object| object.error.clone());
        why = errors.next_back().or(why);
    }
    why.or_else(|| Some("it was not loaded".to_owned()))
}
