//! `plumb tune plan`: what would change, and why.

use std::path::{Path as FilePath, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use plumb_host::knobs::Catalogue;
use plumb_host::tune::plan::plan_host;
use plumb_host::tune::render::{Format, render};
use plumb_host::tune::snapshot::Snapshot;
use plumb_host::tune::{advice, paste};
use plumb_model::finding::Actor;
use plumb_model::tune::{HostPlan, Os, SCHEMA, TunePlan};
use plumb_report::text::render_tune_plan;

use super::except::Except;
use super::path::{Path, PathOptions};
use crate::output::{json, print, print_page, style};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    path: PathOptions,
    #[command(flatten)]
    except: Except,
    /// System of the host [default: this one's]
    ///
    /// linux, macos, windows, freebsd, openbsd, netbsd or solaris; with --facts, by default the system in them.
    #[arg(long)]
    os: Option<Os>,
    /// Settings of another host, pasted in a file
    ///
    /// The output of sysctl -a, netsh int tcp show global, Get-NetTCPSetting, ethtool, ethtool -k, -g or -c, ipadm show-prop;
    /// - is standard input.
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Judge the settings of this file for the path
    ///
    /// A file as sysctl.conf(5), or 'article', the complete set of "Saturating 10 Gigabit on Linux".
    #[arg(long, value_name = "FILE")]
    judge: Option<PathBuf>,
    /// Format: text, sysctl, shell or powershell
    #[arg(long, value_enum, default_value = "text", conflicts_with = "json")]
    format: FormatName,
    /// Print the plan as JSON
    #[arg(long)]
    json: bool,
}

/// How to write a plan.
#[derive(Clone, Copy, ValueEnum)]
enum FormatName {
    /// For people
    Text,
    /// A file for /etc/sysctl.d, or macOS' and the BSDs' /etc/sysctl.conf
    Sysctl,
    /// A POSIX shell script
    Shell,
    /// PowerShell, with netsh
    Powershell,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let path = arguments.path.resolve()?;
    let catalogue = Catalogue::built_in()?;
    let settings = match arguments.judge.as_deref() {
        None => Vec::new(),
        Some(file) if file == FilePath::new("article") => advice::parse(advice::ARTICLE)?,
        Some(file) => advice::parse(&read(file)?)
            .with_context(|| format!("cannot judge {}", file.display()))?,
    };
    let mut hosts = Vec::new();
    for (on, host) in self::hosts(arguments, &path, &catalogue)? {
        let mut plan = plan_host(&catalogue, &host, &path.situation, on, &settings);
        arguments
            .except
            .leave_out(&mut plan, &host, &path.situation)?;
        hosts.push(plan);
    }
    let text = match arguments.format {
        FormatName::Text if arguments.json => {
            let plan = TunePlan {
                schema: SCHEMA.to_owned(),
                path: path.planned,
                hosts,
            };
            json(&plan)?
        }
        FormatName::Text => {
            let plan = TunePlan {
                schema: SCHEMA.to_owned(),
                path: path.planned,
                hosts,
            };
            return print_page(&render_tune_plan(&plan, &style())).map(|()| ExitCode::SUCCESS);
        }
        FormatName::Sysctl => written(&hosts, Format::Sysctl)?,
        FormatName::Shell => written(&hosts, Format::Shell)?,
        FormatName::Powershell => written(&hosts, Format::PowerShell)?,
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn written(hosts: &[HostPlan], format: Format) -> anyhow::Result<String> {
    let texts: Result<Vec<_>, _> = hosts.iter().map(|host| render(host, format)).collect();
    Ok(texts?.join("\n"))
}

fn read(file: &FilePath) -> anyhow::Result<String> {
    let bytes = if file == FilePath::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes)
            .context("cannot read standard input")?;
        bytes
    } else {
        std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The hosts to plan for, and what they have.
fn hosts(
    arguments: &Arguments,
    path: &Path,
    catalogue: &Catalogue,
) -> anyhow::Result<Vec<(Actor, Snapshot)>> {
    if let Some(file) = &arguments.facts {
        let from = file.display().to_string();
        let host = paste::read(&read(file)?, arguments.os, &from, catalogue)
            .with_context(|| format!("cannot use {from}"))?;
        return Ok(vec![(Actor::FarHost, host)]);
    }
    if let Some(os) = arguments.os.filter(|os| *os != Os::Linux) {
        return Ok(vec![(Actor::FarHost, Snapshot::unknown(os))]);
    }
    let here = || Snapshot::here(catalogue, path.address());
    Ok(path
        .ends
        .iter()
        .map(|end| match end {
            Actor::FarHost => {
                let facts = path
                    .run
                    .as_ref()
                    .and_then(|run| run.target.as_ref()?.host.as_ref());
                let host = facts.map_or_else(
                    || Snapshot::unknown(Os::Linux),
                    |facts| Snapshot::of_run(facts, "the Run"),
                );
                (*end, host)
            }
            _ => (*end, here()),
        })
        .collect())
}
