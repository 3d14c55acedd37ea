//! `plumb shape status`: what each class carries and waits, as the kernel counts it.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use plumb_host::shape::journal::STATE;
use plumb_host::shape::status::{since, status};
use plumb_model::shape::{ShapeStatus, ShapedClass};
use plumb_model::units::{human_seconds, si};

use crate::exit::{Ends, stop_flag};
use crate::output::{print, print_json};
use crate::quantity::time_above_zero;

#[derive(Args)]
pub(super) struct Arguments {
    /// Interface to the line
    #[arg(value_name = "DEV")]
    device: String,
    /// Again and again at this interval, with rates
    #[arg(short, long, value_name = "TIME", value_parser = time_above_zero)]
    interval: Option<Duration>,
    /// With --interval: how many intervals
    #[arg(short, long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// How long a signal may go unnoticed.
const GLANCE: Duration = Duration::from_millis(100);

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let state = Path::new(STATE);
    let read = || status(state, &arguments.device);
    let Some(interval) = arguments.interval else {
        return show(&read()?, arguments.json).map(|()| ExitCode::SUCCESS);
    };
    let stop = stop_flag(Ends::by_signal_if(arguments.count.is_none()))?;
    let mut before = read()?;
    let mut at = Instant::now();
    let mut left = arguments.count;
    // Ends with a signal, after that many intervals, or with the shaper.
    while before.applied && left != Some(0) {
        let due = at + interval;
        while Instant::now() < due && !stop.load(Ordering::Relaxed) {
            sleep(GLANCE.min(due.saturating_duration_since(Instant::now())));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(ExitCode::SUCCESS);
        }
        let mut now = read()?;
        let taken = Instant::now();
        since(&before, &mut now, taken.duration_since(at).as_secs_f64());
        show(&now, arguments.json)?;
        (before, at) = (now, taken);
        left = left.map(|left| left - 1);
    }
    if !before.applied && arguments.count.is_none_or(|count| left == Some(count)) {
        show(&before, arguments.json)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(status: &ShapeStatus, json: bool) -> anyhow::Result<()> {
    match json {
        true => print_json(status),
        false => print(&text(status)),
    }
}

fn text(status: &ShapeStatus) -> String {
    let device = &status.device;
    let Some(started) = &status.started else {
        return format!("{device} is not shaped by plumb.\n");
    };
    let mut text = match (status.complete, &status.until) {
        (false, _) => {
            format!("{device}: begun {started} and never finished: plumb shape undo {device}\n")
        }
        (true, None) => format!("{device}: shaped since {started}\n"),
        (true, Some(until)) => format!(
            "{device}: shaped since {started}, undone by itself at {until} unless kept: plumb shape confirm {device}\n"
        ),
    };
    for what in &status.changed {
        text += &format!("{what}: plumb shape undo {device} puts back the rest\n");
    }
    for direction in &status.directions {
        text += &format!(
            "{} {} on {}\n  {:<12}{:>14}{:>14}{:>11}{:>9}{:>9}{:>10}{:>10}\n",
            direction.direction.name(),
            si(direction.rate_bps as f64, "bit/s"),
            direction.device,
            "class",
            "assured",
            "sent",
            "packets",
            "dropped",
            "marked",
            "queue",
            "delay"
        );
        for class in &direction.classes {
            text += &line(class);
        }
    }
    text
}

fn line(class: &ShapedClass) -> String {
    let sent = class
        .sent_bps
        .map_or_else(|| si(class.sent_bytes as f64, "B"), |bps| si(bps, "bit/s"));
    let delay = class.delay_s.map_or_else(|| "-".to_owned(), human_seconds);
    format!(
        "  {:<12}{:>14}{:>14}{:>11}{:>9}{:>9}{:>10}{:>10}\n",
        class.name,
        si(class.assured_bps as f64, "bit/s"),
        sent,
        class.sent_packets,
        class.dropped_packets,
        class.marked_packets,
        si(class.backlog_bytes as f64, "B"),
        delay
    )
}
