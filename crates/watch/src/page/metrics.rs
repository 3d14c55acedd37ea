//! `/metrics`: Prometheus' text format (version 0.0.4).

use std::fmt::Write as _;

use plumb_wire::remote_write::Kind;

use crate::metrics::Family;

pub(super) fn text(families: &[Family]) -> String {
    let mut out = String::new();
    for Family {
        name,
        kind,
        help,
        points,
    } in families
    {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Unspecified => "untyped",
        };
        // Writing to text does not fail.
        let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for point in points {
            let labels = point
                .labels
                .iter()
                .map(|(name, value)| format!("{name}=\"{}\"", label(value)));
            let labels = labels.collect::<Vec<_>>().join(",");
            let _ = match labels.is_empty() {
                true => writeln!(out, "{name} {}", point.value),
                false => writeln!(out, "{name}{{{labels}}} {}", point.value),
            };
        }
    }
    out
}

/// Text as the value of a label.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
