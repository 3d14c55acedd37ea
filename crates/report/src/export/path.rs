//! A path in the forms of other programs: mtr's report, JSON and CSV, traceroute's lines, and as a
//! graph.

use std::fmt::Write as _;

use plumb_model::printable;
use plumb_model::run::Run;
use serde_json::Value;

use super::form::Traced;
pub use super::form::{Form, Shown};
pub use super::order::{Order, OrderError};
use super::{graph, mtr};
use crate::kinds::path::paths;

/// Every path of a Run in a form; empty without any.
pub fn render(run: &Run, form: Form, shown: &Shown<'_>) -> String {
    let mut text = String::new();
    for (measurement, path) in paths(run) {
        let traced = Traced {
            run,
            measurement,
            path,
        };
        let lines = |text: String| printable::lines(&text).into_owned();
        text += &match form {
            Form::MtrReport => lines(mtr::report(&traced, shown)),
            Form::MtrJson => pretty(&mtr::json(&traced, shown)),
            Form::MtrCsv => lines(mtr::csv(&traced, shown)),
            Form::Traceroute => lines(traceroute(&traced, shown)),
            Form::Dot => lines(graph::dot(&traced)),
            Form::GraphJson => pretty(&graph::json(&traced)),
        };
    }
    text
}

fn pretty(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    printable::json(&text).into_owned() + "\n"
}

fn traceroute(traced: &Traced<'_>, shown: &Shown<'_>) -> String {
    let path = traced.path;
    let size = shown
        .size_bytes
        .map_or_else(String::new, |bytes| format!(", {bytes} byte packets"));
    let mut text = format!(
        "traceroute to {} ({}), {} hops max{size}\n",
        traced.target(),
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
        for rtt in traced.round_trips(hop.ttl) {
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
