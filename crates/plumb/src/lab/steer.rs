//! `plumb lab set|apply|stats`: steering and watching a laboratory, from inside or outside.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use plumb_lab::control::{Answer, Request};
use plumb_lab::reach::Reach;
use plumb_model::finding::Action;
use plumb_model::units::human_seconds;

use crate::output::{print, read_run};

pub(super) fn set(lab: Option<&str>, cell: String, values: &[String]) -> anyhow::Result<ExitCode> {
    let mut settings = BTreeMap::new();
    for pair in values {
        let (key, value) = pair
            .split_once('=')
            .with_context(|| format!("'{pair}' is not KEY=VALUE"))?;
        if let Some(other) = settings.insert(key.to_owned(), value.to_owned()) {
            anyhow::bail!("{key} is given twice, as {other} and as {value}: leave one out");
        }
    }
    let request = Request::Set {
        cell,
        values: settings,
    };
    print_done(Reach::find(lab)?.ask(&request)?)
}

pub(super) fn apply(lab: Option<&str>, file: &Path) -> anyhow::Result<ExitCode> {
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
    print_done(Reach::find(lab)?.ask(&Request::Shape { shapers })?)
}

fn print_done(answer: Answer) -> anyhow::Result<ExitCode> {
    if let Answer::Done(lines) = answer {
        for line in lines {
            print(&format!("{line}\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn stats(lab: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let Answer::Stats(stats) = Reach::find(lab)?.ask(&Request::Stats)? else {
        anyhow::bail!("the lab answered something else");
    };
    if json {
        print(&(serde_json::to_string(&stats)? + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for note in &stats.notes {
        text += &format!("Note: {note}.\n");
    }
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
    for (link, ways) in &stats.kernel {
        for (way, qdiscs) in ways {
            text += &format!("{link}.{}: carried by the kernel\n", way.name());
            for qdisc in qdiscs {
                text += &format!(
                    "  {:<10} packets: {} sent, {} dropped, {} waiting\n",
                    qdisc.kind, qdisc.packets, qdisc.drops, qdisc.backlog_packets,
                );
            }
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
