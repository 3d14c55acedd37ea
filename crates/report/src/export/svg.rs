//! The chart of a Run over time as an SVG file of its own, in the colours of the page.

use plumb_model::run::Run;

use crate::registry::{phase, shown};
use crate::svg::timeline::{self, Timeline};

/// The chart of round trips and rates, or where there are none of the delays of each way, of the hops of a path or of the
/// heaviest connection of a capture, with the part of the page's style sheet that it needs; `None` when no measurement of
/// the Run has values over time.
pub fn svg(run: &Run) -> Option<String> {
    let of_round_trips = Timeline::of(run);
    let chart = match of_round_trips {
        Some(timeline) => timeline::render(&timeline, timeline.extent()).wide,
        None => {
            let measurements = run.measurements.iter();
            let own = measurements.flat_map(|m| shown(m).charts(m, phase(m)));
            own.min_by_key(|chart| chart.group)?.svg.wide
        }
    };
    standalone(&chart)
}

/// A chart as a file of its own, with the part of the page's style sheet that it needs.
pub(super) fn standalone(chart: &str) -> Option<String> {
    let body = chart.strip_prefix("<svg ")?;
    let (attributes, rest) = body.split_once('>')?;
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" {attributes}>\n<style>\n{}</style>{rest}\n",
        style()
    ))
}

/// Of the page's style sheet the colours and what concerns charts.
fn style() -> String {
    let sheet = include_str!("../html/style.css");
    let mut out = String::new();
    let mut in_colours = false;
    for line in sheet.lines() {
        // The colours by light and in the dark; those on paper follow further down.
        in_colours |= line.starts_with(":root") || line.contains("prefers-color-scheme: dark");
        if in_colours || line.starts_with("svg ") {
            out.push_str(line);
            out.push('\n');
        }
        in_colours &= !line.starts_with('}');
    }
    out
}
