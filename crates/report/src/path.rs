//! A path in the forms of other programs: mtr's report, JSON and CSV, traceroute's lines, and as a
//! graph.

use std::fmt::Write as _;

use plumb_model::results::Outcome;
use plumb_model::results::path::{PathHop, PathResult};
use plumb_model::run::{Measurement, Run};
use serde_json::{Value, json};

mod graph;

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
pub fn render(run: &Run, form: Form) -> String {
    let mut text = String::new();
    for measurement in &run.measurements {
        let Outcome::Path(path) = &measurement.outcome else {
            continue;
        };
        text += &match form {
            Form::MtrReport => mtr_report(run, path),
            Form::MtrJson => pretty(&mtr_json(run, path)),
            Form::MtrCsv => mtr_csv(run, path),
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

/// What mtr shows of a hop.
struct Hub<'a> {
    host: &'a str,
    loss_percent: f64,
    /// One for each of [`TIMES`].
    times_ms: [f64; 5],
}

/// mtr's names of its columns of times.
const TIMES: [&str; 5] = ["Last", "Avg", "Best", "Wrst", "StDev"];

impl<'a> Hub<'a> {
    fn of(hop: &'a PathHop) -> Self {
        let rtt = |get: fn(&plumb_model::distribution::Distribution) -> f64| {
            hop.rtt_s.as_ref().map_or(0.0, get) * 1000.0
        };
        // mtr divides by one less than the number of samples.
        let sample = hop.rtt_s.map_or(1.0, |d| match d.count {
            0 | 1 => 1.0,
            n => (n as f64 / (n - 1) as f64).sqrt(),
        });
        Self {
            host: hop
                .name
                .as_deref()
                .or(hop.address.as_deref())
                .unwrap_or("???"),
            loss_percent: hop.unanswered_ratio * 100.0,
            times_ms: [
                hop.last_rtt_s.unwrap_or(0.0) * 1000.0,
                rtt(|d| d.mean),
                rtt(|d| d.min),
                rtt(|d| d.max),
                rtt(|d| d.stddev) * sample,
            ],
        }
    }
}

fn target(run: &Run) -> &str {
    run.target
        .as_ref()
        .map_or("", |target| target.name.as_str())
}

fn mtr_json(run: &Run, path: &PathResult) -> Value {
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let hubs: Vec<Value> = path
        .hops
        .iter()
        .map(|hop| {
            let hub = Hub::of(hop);
            let mut value = json!({ "count": hop.ttl, "host": hub.host });
            if let (Some(asn), Some(fields)) = (hop.asn, value.as_object_mut()) {
                fields.insert("ASN".to_owned(), format!("AS{asn}").into());
            }
            if let Some(fields) = value.as_object_mut() {
                fields.insert("Loss%".to_owned(), rounded(hub.loss_percent).into());
                fields.insert("Snt".to_owned(), hop.sent.into());
                for (name, ms) in TIMES.iter().zip(hub.times_ms) {
                    fields.insert((*name).to_owned(), rounded(ms).into());
                }
            }
            value
        })
        .collect();
    json!({ "report": {
        "mtr": { "src": "", "dst": target(run), "tests": path.cycles },
        "hubs": hubs,
    } })
}

fn mtr_csv(run: &Run, path: &PathResult) -> String {
    let mut text =
        "Mtr_Version,Start_Time,Status,Host,Hop,Ip,Loss%,Snt, ,Last,Avg,Best,Wrst,StDev,\n"
            .to_owned();
    let began = run
        .started
        .parse::<jiff::Timestamp>()
        .map_or(0, jiff::Timestamp::as_second);
    let field = |text: &str| text.replace([',', '\n', '"'], " ");
    for hop in &path.hops {
        let hub = Hub::of(hop);
        let _ = write!(
            text,
            "plumb.{},{began},OK,{},{},{},{:.2},{},0",
            run.plumb,
            field(target(run)),
            hop.ttl,
            field(hub.host),
            hub.loss_percent,
            hop.sent
        );
        for ms in hub.times_ms {
            let _ = write!(text, ",{ms:.2}");
        }
        text.push('\n');
    }
    text
}

fn mtr_report(run: &Run, path: &PathResult) -> String {
    let width = path
        .hops
        .iter()
        .map(|hop| Hub::of(hop).host.chars().count())
        .max()
        .unwrap_or(0)
        .max(24);
    let mut text = format!("Start: {}\n", run.started);
    let head = format!("HOST: {}", target(run));
    let _ = writeln!(
        text,
        "{head:<pad$} Loss%   Snt   Last   Avg  Best  Wrst StDev",
        pad = width + 8
    );
    for hop in &path.hops {
        let hub = Hub::of(hop);
        let _ = write!(
            text,
            "{:>3}.|-- {:<width$} {:>5.1}% {:>5} ",
            hop.ttl, hub.host, hub.loss_percent, hop.sent
        );
        for ms in hub.times_ms {
            let _ = write!(text, " {ms:>5.1}");
        }
        text.push('\n');
    }
    text
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
