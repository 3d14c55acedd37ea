//! `plumb diagnose`: what saved Runs say of a path together, without sending anything.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use plumb_diagnose::merge::{Part, merge};
use plumb_measure::conductor::Conductor;
use plumb_measure::progress::Nobody;
use plumb_measure::record::Judgement;
use plumb_model::run::Run;
use plumb_report::text;

use crate::output::{Output, read_run};
use crate::target::command_line;
use crate::weighed::Weighed;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: the Runs are taken to be of one path, between the same two ends, and as it is now; what was measured hours apart is \
judged as if it were one time. Numbers are as good as when they were measured.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Saved Runs of one path, of any command; Runs of this machine alone (`plumb host`) go with any
    #[arg(required = true, value_name = "RUN")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    weighed: Weighed,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let files = arguments.files.iter();
    let parts: Vec<Part> = files
        .map(|file| read_run(file).map(part))
        .collect::<anyhow::Result<_>>()?;
    let whole = merge(parts)?;
    if whole.measurements.is_empty() {
        anyhow::bail!(
            "nothing was measured in what was given: measure first (plumb check HOST -o run.json)"
        );
    }
    let output = arguments.output.begin()?;
    let judgement = match whole.target {
        Some(_) => Judgement::Whole,
        None => Judgement::Part,
    };
    let now = Timestamp::now();
    let whole = Run {
        id: uuid::Uuid::now_v7().to_string(),
        command: command_line(),
        plumb: env!("CARGO_PKG_VERSION").to_owned(),
        notes: [
            vec![format!(
                "Judged {now:.0} from saved Runs; nothing was measured for it."
            )],
            whole.notes,
        ]
        .concat(),
        ..whole
    };
    let stop = Arc::default();
    let judged = Conductor::resume(whole, &Nobody, &stop).finish(judgement)?;
    // A path is judged as by a check, and its answer is as short.
    let render = match (output.details(), judgement) {
        (true, _) => text::render,
        (false, Judgement::Whole) => text::render_check,
        (false, _) => text::render_brief,
    };
    output.emit_as(judged.run, |run, style| {
        render(run, style) + &arguments.weighed.render(run, style)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A Run whose start is not known comes first.
fn part(run: Run) -> Part {
    let began: Option<Timestamp> = run.started.parse().ok();
    Part {
        began_s: began.map_or(0.0, |began| began.as_nanosecond() as f64 / 1e9),
        run,
    }
}
