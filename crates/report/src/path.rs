//! A path in the forms of other programs: mtr's report, JSON and CSV, traceroute's lines, and as a
//! graph.

use std::fmt::Write as _;

use plumb_model::results::Outcome;
use plumb_model::results::path::PathResult;
use plumb_model::run::{Measurement, Run};
use serde_json::Value;

mod graph;
mod mtr;

pub use mtr::{Order, OrderError};

/// A form of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `mtr --report`.
    MtrReport,
    /// `mtr --json`.
    MtrJson,
    /// `mtr --csv`.
    MtrCsv,
    /// What traceroute(8) prints.
    Traceroute,
    /// Graphviz.
    Dot,
    /// Nodes and edges.
    GraphJson,
}

/// What the forms of other programs show besides what was measured.
#[derive(Debug, Clone)]
pub struct Shown<'a> {
    /// Which fields mtr's forms have.
    pub order: &'a Order,
    /// What this host is called.
    pub here: &'a str,
    /// Whether addresses stand behind names (mtr's -b).
    pub both: bool,
    /// Whether the networks of addresses stand before them (mtr's -z).
    pub networks: bool,
    /// Whether addresses stand alone (-n).
    pub numeric: bool,
    /// The last hop that was to be probed.
    pub last_hop: u8,
    /// Bytes of a whole packet, where that was chosen.
    pub size_bytes: Option<u16>,
    /// Type of service, or traffic class, of the probes.
    pub traffic_class: u8,
    /// What fills them.
    pub fill: u8,
}

/// Every path of a Run in a form; empty without any.
pub fn render(run: &Run, form: Form, shown: &Shown<'_>) -> String {
    let mut text = String::new();
    for measurement in &run.measurements {
        let Outcome::Path(path) = &measurement.outcome else {
            continue;
        };
        text += &match form {
            Form::MtrReport => mtr::report(run, measurement, path, shown),
            Form::MtrJson => pretty(&mtr::json(run, measurement, path, shown)),
            Form::MtrCsv => mtr::csv(run, measurement, path, shown),
            Form::Traceroute => traceroute(run, measurement, path, shown),
            Form::Dot => graph::dot(path),
            Form::GraphJson => pretty(&graph::json(path)),
        };
    }
    text
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).map_or_else(|_| String::new(), |text| text + "\n")
}

fn target(run: &Run) -> &str {
    run.target
        .as_ref()
        .map_or("", |target| target.name.as_str())
}

fn traceroute(
    run: &Run,
    measurement: &Measurement,
    path: &PathResult,
    shown: &Shown<'_>,
) -> String {
    let size = shown
        .size_bytes
        .map_or_else(String::new, |bytes| format!(", {bytes} byte packets"));
    let mut text = format!(
        "traceroute to {} ({}), {} hops max{size}\n",
        target(run),
        path.address,
        shown.last_hop
    );
    for hop in &path.hops {
        let _ = write!(text, "{:>2} ", hop.ttl);
        if let Some(address) = &hop.address {
            let name = hop.name.as_ref().unwrap_or(address);
            let _ = match shown.numeric {
                true => write!(text, " {address}"),
                false => write!(text, " {name} ({address})"),
            };
        }
        let series = measurement.series.get(&format!("rtt_hop_{}", hop.ttl));
        for rtt in series.map_or(&[][..], |series| series.values.as_slice()) {
            let _ = match rtt {
                Some(seconds) => write!(text, "  {:.3} ms", seconds * 1000.0),
                None => write!(text, " *"),
            };
        }
        if let Some(mark) = &hop.annotation {
            let _ = write!(text, " {mark}");
        }
        for label in &hop.mpls {
            let _ = write!(
                text,
                " <MPLS:L={},E={},T={}>",
                label.label, label.traffic_class, label.ttl
            );
        }
        text.push('\n');
    }
    text
}
