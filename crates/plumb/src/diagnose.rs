//! `plumb diagnose`: what saved Runs say of a path together, without sending anything.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use plumb_diagnose::since_good::check_path;
use plumb_measure::record::Judgement;
use plumb_model::run::Run;
use plumb_report::baseline::baseline;
use plumb_report::changed::{Changed, Other};
use plumb_report::history::history;
use plumb_report::places::places;
use plumb_report::{segments, text};

use crate::judged;
use crate::output::{Output, print_json, print_page, style};
use crate::router::RouterOption;
use crate::weighed::Weighed;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: but for --places and --via, the Runs are taken to be of one path, between the same two ends, today; what was measured hours apart is \
judged as if it were one time. Numbers are as good as when they were measured.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Saved Runs of one path, of any command, and captures (pcap, pcapng) of it; Runs of this machine alone (`plumb host`) go with any
    #[arg(required = true, value_name = "RUN")]
    files: Vec<PathBuf>,
    /// A Run of the same path from when all was well: show what changed, and which cause that speaks for
    #[arg(long, value_name = "RUN")]
    good: Option<PathBuf>,
    /// A Run of the same path by a host like this one: show what this host alone has
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with = "good",
        hide_short_help = true
    )]
    similar: Option<PathBuf>,
    /// Show what is stable over repeats of one check
    ///
    /// And what comes and goes.
    #[arg(long, conflicts_with_all = ["good", "similar", "json", "output", "explain", "details"])]
    repeats: bool,
    /// Show what is near, theirs or far in checks of several hosts
    ///
    /// The checks were made from one place. Theirs is what is in the network of some of the hosts.
    #[arg(long, conflicts_with_all = ["good", "similar", "repeats", "json", "output", "explain", "details"])]
    places: bool,
    /// Show between which hosts along one path a fault is
    ///
    /// The Runs are checks of these hosts, given from the nearest to the end of the path.
    #[arg(long, conflicts_with_all = ["good", "similar", "repeats", "places", "output", "explain", "details"])]
    via: bool,
    #[command(flatten)]
    router: RouterOption,
    #[command(flatten)]
    weighed: Weighed,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.repeats {
        return repeats(&arguments.files);
    }
    if arguments.places {
        return of_places(&arguments.files);
    }
    if arguments.via {
        return of_segments(&arguments.files, arguments.output.json());
    }
    let mut judged = judged::judged(&arguments.files)?;
    let good = arguments.good.as_ref().map(|good| (Other::Good, good));
    let similar = arguments.similar.as_ref().map(|run| (Other::Similar, run));
    let beside = good.or(similar);
    let changed = beside.map(|(other, file)| judged::beside(other, file, &judged));
    let changed = changed.transpose()?;
    judged.notes.extend(changed.iter().flat_map(Changed::notes));
    let history = history(&each(&arguments.files)?);
    judged.notes.extend(history.iter().cloned());
    let output = arguments.output.begin()?;
    // A path is judged as by a check, and its answer is as short.
    let render = match (output.details(), judged::judgement(&judged)) {
        (true, _) => text::render,
        (false, Judgement::Whole) => text::render_check,
        (false, _) => text::render_brief,
    };
    output.emit_as(arguments.router.write(judged), |run, style| {
        let weighed = arguments.weighed.render(run, style);
        if arguments.weighed.names_a_cause() {
            return weighed;
        }
        let history = text::render_history(&history, style);
        let changed = changed.as_ref();
        let before = changed.map(|changed| text::render_changed(changed, style));
        history + &before.unwrap_or_default() + &render(run, style) + &weighed
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The Runs of a path, each judged by itself, in the order of time.
fn each(files: &[PathBuf]) -> anyhow::Result<Vec<Run>> {
    if files.len() < 2 {
        return Ok(Vec::new());
    }
    let mut runs = Vec::new();
    for file in files {
        let run = judged::read(file)?;
        if run.target.is_some() {
            let began = run.started.clone();
            let judged = judged::judged(std::slice::from_ref(file))?;
            runs.push(Run {
                started: began,
                ..judged
            });
        }
    }
    runs.sort_by(|a, b| a.started.cmp(&b.started));
    Ok(runs)
}

/// Runs in the order of time.
fn in_order(files: &[PathBuf]) -> anyhow::Result<Vec<Run>> {
    let runs = files.iter().map(|file| judged::read(file));
    let mut runs: Vec<Run> = runs.collect::<anyhow::Result<_>>()?;
    runs.sort_by(|a, b| a.started.cmp(&b.started));
    Ok(runs)
}

/// What checks of several hosts come to.
fn of_places(files: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let runs = in_order(files)?;
    anyhow::ensure!(
        runs.iter().any(|run| run.target.is_some()),
        "no Run has a far end: give Runs of several hosts (plumb check HOST HOST -o DIRECTORY)"
    );
    judged::refuse_twice(&runs)?;
    print_page(&text::render_places(&places(&runs), &style()))?;
    Ok(ExitCode::SUCCESS)
}

/// What checks of hosts along one path come to.
fn of_segments(files: &[PathBuf], json: bool) -> anyhow::Result<ExitCode> {
    let runs = files.iter().map(|file| judged::read(file));
    let runs: Vec<Run> = runs.collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(
        runs.iter().any(|run| run.target.is_some()),
        "no Run has a far end: give Runs of hosts along one path (plumb check HOST --via MIDDLE -o DIRECTORY)"
    );
    judged::refuse_twice(&runs)?;
    let segments = segments::of_runs(&runs);
    match json {
        true => print_json(&segments)?,
        false => print_page(&text::render_segments(&segments, &style()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What repeats of one check come to.
fn repeats(files: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let runs = in_order(files)?;
    if let [first, others @ ..] = runs.as_slice() {
        for other in others {
            check_path(first, other)?;
        }
    }
    print_page(&text::render_baseline(&baseline(&runs), &style()))?;
    Ok(ExitCode::SUCCESS)
}
