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

/// Every path of a Run in a form; empty without any.
/// `order` says which fields mtr's forms have.
pub fn render(run: &Run, form: Form, order: &Order) -> String {
    let mut text = String::new();
    for measurement in &run.measurements {
        let Outcome::Path(path) = &measurement.outcome else {
            continue;
        };
        text += &match form {
            Form::MtrReport => mtr::report(run, measurement, path, order),
            Form::MtrJson => pretty(&mtr::json(run, measurement, path, order)),
            Form::MtrCsv => mtr::csv(run, measurement, path, order),
            Form::Traceroute => traceroute(run, measurement, path),
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

fn traceroute(run: &Run, measurement: &Measurement, path: &PathResult) -> String {
    let last = path.hops.last().map_or(0, |hop| hop.ttl);
    let mut text = format!(
        "traceroute to {} ({}), {last} hops\n",
        target(run),
        path.address
    );
    for hop in &path.hops {
        let _ = write!(text, "{:>2} ", hop.ttl);
        if let Some(address) = &hop.address {
            let name = hop.name.as_ref().unwrap_or(address);
            let _ = write!(text, " {name} ({address})");
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
