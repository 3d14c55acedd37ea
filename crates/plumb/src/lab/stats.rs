//! `plumb lab stats`: what the links did so far.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use plumb_lab::client::RunningLab;
use plumb_lab::control::{Answer, Request};
use plumb_lab::stats::{CellSettings, LabStats, WayStats};
use plumb_link::segment::Crossing;
use plumb_link::stats::CellStats;
use plumb_model::distribution::Distribution;
use plumb_model::units::{BitRate, human_seconds};
use serde_json::Value;

use crate::output::{print, print_json, style};
use crate::wrapped::wrap;

pub(super) fn stats(lab: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let Answer::Stats(stats) = RunningLab::find(lab)?.ask(&Request::Stats)? else {
        anyhow::bail!("the lab answered something else");
    };
    match json {
        true => print_json(&stats)?,
        false => print(&text(&stats, style().width))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything is since the lab began, in lines of at most `width` columns.
fn text(stats: &LabStats, width: usize) -> String {
    let mut text = format!(
        "{}, seed {}, in {:.0} s:\n",
        stats.scenario, stats.seed, stats.duration_s
    );
    for note in &stats.notes {
        wrap(&mut text, "Note: ", 2, &format!("{note}."), width);
    }
    for (link, ways) in &stats.links {
        for (way, what) in ways {
            text += &direction(&format!("{link}.{}", way.name()), what, width);
        }
    }
    for (link, ways) in &stats.kernel {
        for (way, qdiscs) in ways {
            let _ = writeln!(text, "{link}.{}: carried by the kernel", way.name());
            for qdisc in qdiscs {
                let _ = writeln!(
                    text,
                    "  {:<10} packets: {} sent, {} dropped, {} waiting",
                    qdisc.kind, qdisc.packets, qdisc.drops, qdisc.backlog_packets,
                );
            }
        }
    }
    text
}

fn direction(name: &str, what: &WayStats, width: usize) -> String {
    let (chain, driver) = (&what.chain, &what.driver);
    let late = driver.lateness_s.map_or_else(
        || "nothing carried".to_owned(),
        |late| {
            format!(
                "late by {} (median), {} (p99), {} (worst)",
                human_seconds(late.p50),
                human_seconds(late.p99),
                human_seconds(late.max)
            )
        },
    );
    let crossing = match chain.crossing {
        Crossing::Split => "large segments cross as single packets".to_owned(),
        Crossing::Whole if chain.piece_error_s > 0.0 => format!(
            "large segments cross whole, which kept a packet {} longer at most",
            human_seconds(chain.piece_error_s)
        ),
        Crossing::Whole => "large segments cross whole".to_owned(),
    };
    let mut text = String::new();
    wrap(
        &mut text,
        &format!("{name}: "),
        2,
        &format!("{late}; {crossing}"),
        width,
    );
    if driver.overrun {
        text += "  overrun: this machine did not keep up, or lost packets that the link did not\n";
    }
    let mut line = |name: &str, what: String| {
        let name = format!("  {name:<10} ");
        wrap(&mut text, &name, name.len(), &what, width);
    };
    line(
        "all",
        format!(
            "packets: {} offered, {} delivered, {} marked, {}; {} flows, {} hosts{}",
            chain.offered.packets,
            chain.delivered.packets,
            chain.marked,
            dropped(&chain.dropped),
            chain.flows.len(),
            chain.hosts.len(),
            inside("in it", chain.transit_s.as_ref()),
        ),
    );
    // In the order in which packets pass them.
    for CellSettings { name, settings } in &what.settings {
        line(name, shown(settings));
        if let Some(cell) = chain.cells.get(name) {
            line("", counted(cell));
        }
    }
    text
}

/// What a cell did.
fn counted(cell: &CellStats) -> String {
    format!(
        "packets: {} offered, {} delivered, {} marked, {}; {} bytes inside now{}{}",
        cell.offered.packets,
        cell.delivered.packets,
        cell.marked,
        dropped(&cell.dropped),
        cell.backlog.bytes,
        inside("each", cell.sojourn_s.as_ref()),
        // By time, idle time included: what one met that came at any moment.
        inside("queue, over all the time", cell.queue_delay_s.as_ref()),
    )
}

fn dropped(causes: &BTreeMap<String, u64>) -> String {
    if causes.is_empty() {
        return "none dropped".to_owned();
    }
    let each = causes.iter();
    let each: Vec<String> = each.map(|(cause, n)| format!("{n} by {cause}")).collect();
    format!("dropped {}", each.join(", "))
}

fn inside(what: &str, delay: Option<&Distribution>) -> String {
    delay.map_or_else(String::new, |delay| {
        format!(
            "; {what}: {} (median), {} (p95), {} (worst)",
            human_seconds(delay.p50),
            human_seconds(delay.p95),
            human_seconds(delay.max)
        )
    })
}

/// Settings with the words of `plumb lab set`: the type, and what belongs to it.
fn shown(settings: &serde_json::Map<String, Value>) -> String {
    let kind = settings.get("type").and_then(Value::as_str);
    let each = settings.iter().filter(|(key, _)| *key != "type");
    let each = each.map(|(key, value)| match value {
        Value::String(text) => format!("{key}={text}"),
        Value::Object(inner) => format!("{key}=({})", shown(inner)),
        Value::Number(bps) if key.ends_with("rate") => match bps.as_u64() {
            Some(bps) => format!("{key}={}", BitRate::from_bps(bps)),
            None => format!("{key}={bps}"),
        },
        other => format!("{key}={other}"),
    });
    let words: Vec<String> = kind.map(str::to_owned).into_iter().chain(each).collect();
    words.join(" ")
}
