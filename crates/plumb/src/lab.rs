//! `plumb lab`: emulated networks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use plumb_lab::control::{self, Answer, Request};
use plumb_lab::list::ScenarioList;
use plumb_lab::scenario::Scenario;
use plumb_lab::stats::LabStats;
use plumb_lab::supervise::{self, LAB_FAILED, Session};
use plumb_lab::truth::truth;
use plumb_model::finding::Action;
use plumb_model::units::human_seconds;

use crate::output::{message, print, read_run, save};

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: needs root. Emulates rates, delays, FIFO, CoDel and FQ-CoDel; no loss or reordering
of its own yet. Every direction of a link takes a share of a processor; a lab that the machine could
not keep up with says so, and so does every Run made in it.";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Do,
}

#[derive(Subcommand)]
enum Do {
    /// The scenarios that come with plumb
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// A scenario as it is written
    Show {
        /// Name of a scenario, or path of a .toml file
        scenario: String,
    },
    /// Run a command inside an emulated network; exits with the command's status, or 125
    Run {
        /// Name of a scenario, or path of a .toml file
        scenario: String,
        /// Write what every link did to this file when the command has ended
        #[arg(long, value_name = "FILE")]
        stats: Option<PathBuf>,
        /// Node in which the command runs [default: the scenario's first]
        #[arg(long)]
        node: Option<String>,
        /// The command and its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Inside a lab: change a cell of a link, or add a shaper
    Set {
        /// LINK.up.CELL or LINK.down.CELL
        cell: String,
        /// What to change, such as rate=19mbit or queue=fq_codel
        #[arg(required = true, value_name = "KEY=VALUE")]
        values: Vec<String>,
    },
    /// Inside a lab: do what a Run's findings ask of the router
    Apply {
        /// A saved Run
        run: PathBuf,
    },
    /// Inside a lab: what the links did so far
    Stats {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Hold a saved Run against the truth of its scenario
    Verify {
        /// Name of a scenario, or path of a .toml file
        scenario: String,
        /// The Run
        run: PathBuf,
        /// What --stats wrote while the Run was made
        stats: PathBuf,
    },
}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let failed = LAB_FAILED as u8;
    let result = match arguments.action {
        Do::List { json } => list(json),
        Do::Show { scenario } => show(&scenario),
        Do::Run {
            scenario,
            stats,
            node,
            command,
        } => run_in(&scenario, stats, Session { node, command }),
        Do::Set { cell, values } => set(cell, &values),
        Do::Apply { run } => apply(&run),
        Do::Stats { json } => stats(json),
        Do::Verify {
            scenario,
            run,
            stats,
        } => verify(&scenario, &run, &stats),
    };
    result.unwrap_or_else(|error| {
        complain(&message(&error));
        ExitCode::from(failed)
    })
}

fn complain(error: &dyn std::fmt::Display) {
    anstream::eprintln!("plumb lab: {error}");
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let list = ScenarioList::built_in()?;
    if json {
        print(&(serde_json::to_string(&list)? + "\n"))?;
    } else {
        for scenario in list.scenarios {
            print(&format!("{:<20} {}\n", scenario.name, scenario.summary))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(name: &str) -> anyhow::Result<ExitCode> {
    // Errors first: what is shown can be run.
    Scenario::load(name)?;
    print(&Scenario::text(name)?)?;
    Ok(ExitCode::SUCCESS)
}

fn run_in(name: &str, stats: Option<PathBuf>, session: Session) -> anyhow::Result<ExitCode> {
    let scenario = Scenario::load(name)?;
    let finished = |done: LabStats| -> io::Result<()> {
        for note in &done.notes {
            anstream::eprintln!("plumb lab: {note}");
        }
        for (link, ways) in &done.links {
            for (way, what) in ways {
                if what.driver.overrun {
                    anstream::eprintln!(
                        "plumb lab: this machine did not keep up with {link}.{}: packets up to {} late, {} lost at the device; numbers measured in here are that uncertain",
                        way.name(),
                        what.driver
                            .lateness_s
                            .map_or_else(|| "?".into(), |l| human_seconds(l.max)),
                        what.driver.device_drops,
                    );
                }
            }
        }
        let Some(file) = &stats else { return Ok(()) };
        save(file, &(serde_json::to_string(&done)? + "\n"))
            .map_err(|error| io::Error::other(message(&error)))
    };
    let status = supervise::run(scenario, &session, finished, |error| complain(error))?;
    Ok(ExitCode::from(
        u8::try_from(status).unwrap_or(LAB_FAILED as u8),
    ))
}

fn set(cell: String, values: &[String]) -> anyhow::Result<ExitCode> {
    let values = values
        .iter()
        .map(|pair| {
            let (key, value) = pair
                .split_once('=')
                .with_context(|| format!("'{pair}' is not KEY=VALUE"))?;
            Ok((key.to_owned(), value.to_owned()))
        })
        .collect::<anyhow::Result<BTreeMap<_, _>>>()?;
    print_done(control::ask(&Request::Set { cell, values })?)
}

fn apply(file: &std::path::Path) -> anyhow::Result<ExitCode> {
    let run = read_run(file)?;
    let shapers: Vec<_> = run
        .findings
        .iter()
        .flat_map(|finding| &finding.fixes)
        .filter_map(|fix| match &fix.action {
            Some(Action::Shaper(shaper)) => Some(shaper.clone()),
            _ => None,
        })
        .collect();
    if shapers.is_empty() {
        print(&format!(
            "Nothing in {} asks anything of the router.\n",
            file.display()
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    print_done(control::ask(&Request::Shape { shapers })?)
}

fn print_done(answer: Answer) -> anyhow::Result<ExitCode> {
    if let Answer::Done(lines) = answer {
        for line in lines {
            print(&format!("{line}\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn stats(json: bool) -> anyhow::Result<ExitCode> {
    let Answer::Stats(stats) = control::ask(&Request::Stats)? else {
        anyhow::bail!("the lab answered something else");
    };
    if json {
        print(&(serde_json::to_string(&stats)? + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (link, ways) in &stats.links {
        for (way, what) in ways {
            let late = what.driver.lateness_s.map_or_else(
                || "nothing carried".to_owned(),
                |l| {
                    format!(
                        "late by {} (median) to {} (worst)",
                        human_seconds(l.p50),
                        human_seconds(l.max)
                    )
                },
            );
            text += &format!("{link}.{}: {late}\n", way.name());
            for (name, cell) in &what.chain.cells {
                let dropped: Vec<String> = cell
                    .dropped
                    .iter()
                    .map(|(cause, count)| format!("{count} {cause}"))
                    .collect();
                let queue = cell.queue_delay_s.map_or_else(String::new, |delay| {
                    format!(
                        ", queue {} (median) {} (p95)",
                        human_seconds(delay.p50),
                        human_seconds(delay.p95)
                    )
                });
                text += &format!(
                    "  {name:<10} packets: {} offered, {} delivered, {} marked, dropped [{}]; {} bytes inside{queue}\n",
                    cell.offered.packets,
                    cell.delivered.packets,
                    cell.marked,
                    dropped.join(", "),
                    cell.backlog.bytes,
                );
            }
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn verify(
    scenario: &str,
    run: &std::path::Path,
    stats: &std::path::Path,
) -> anyhow::Result<ExitCode> {
    let scenario = Scenario::load(scenario)?;
    let run = read_run(run)?;
    let text = std::fs::read_to_string(stats)
        .with_context(|| format!("cannot read {}", stats.display()))?;
    let stats: LabStats = serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is not what plumb lab run --stats writes",
            stats.display()
        )
    })?;
    let deviations = truth(&scenario, &run, &stats);
    for deviation in &deviations {
        print(&format!("deviates: {deviation}\n"))?;
    }
    if deviations.is_empty() {
        print(&format!(
            "The Run agrees with the truth of {}.\n",
            scenario.name
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}
