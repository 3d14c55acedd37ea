//! The charts of a page: each Run over its time, all on the same scales, and the distributions of
//! their round trips over each other.

use minijinja::Value;
use plumb_model::dscp::BEST_EFFORT;
use plumb_model::results::{Outcome, RAMP_S};
use plumb_model::run::{Measurement, Run};
use serde::Serialize;

use crate::svg::cdf::{self, Curve};
use crate::svg::lines::{self, Line, Scale, Subject};
use crate::svg::timeline::{self, Extent, Timeline};
use crate::view::{self, Phase};

/// A chart with the name of its Run.
#[derive(Serialize)]
pub(super) struct Figure {
    label: String,
    svg: Value,
}

/// Each Run over its time, on the same scales.
pub(super) fn timelines(runs: &[(&str, &Run)]) -> Vec<Figure> {
    let lines: Vec<_> = runs
        .iter()
        .filter_map(|(label, run)| Some((*label, Timeline::of(run)?)))
        .collect();
    let Some(extent) = lines
        .iter()
        .map(|(_, line)| line.extent())
        .reduce(Extent::with)
    else {
        return Vec::new();
    };
    let figure = |(label, line): (&str, Timeline)| Figure {
        label: label.to_owned(),
        svg: Value::from_safe_string(timeline::render(&line, extent)),
    };
    lines.into_iter().map(figure).collect()
}

/// What the charts of classes are of.
const CLASSES: Subject<'_> = Subject {
    title: "seconds; round-trip time in ms (logarithmic)",
    description: "Round trips over time, one line for each class of traffic",
    scale: Scale::Logarithmic,
};

/// The charts that `draw` makes of each Run.
pub(super) fn each(runs: &[(&str, &Run)], draw: fn(&Run) -> Vec<String>) -> Vec<Figure> {
    let charts = runs.iter().flat_map(|(name, run)| {
        draw(run).into_iter().map(|svg| Figure {
            label: (*name).to_owned(),
            svg: Value::from_safe_string(svg),
        })
    });
    charts.collect()
}

/// The round trips of each class of traffic over time, a chart for each phase that has several.
pub(super) fn classes(runs: &[(&str, &Run)]) -> Vec<Figure> {
    /// Colours of phases, which one phase does not need.
    const COLOURS: [&str; 5] = ["idle", "up", "down", "both", "after"];
    let chart = |name: &str, run: &Run| -> Vec<Figure> {
        let loaded = view::loaded(run).filter(|(_, result)| !result.classes.is_empty());
        let figures = loaded.filter_map(|(measurement, result)| {
            let names = result.classes.keys().zip(COLOURS.iter().cycle());
            let lines: Vec<_> = names
                .filter_map(|(class, colour)| {
                    let own = format!("rtt_{}", class.to_lowercase());
                    // Best effort is what every phase probes.
                    let series = measurement.series.get(&own);
                    let best_effort = (class == BEST_EFFORT.name).then_some("rtt");
                    let series = series.or_else(|| measurement.series.get(best_effort?))?;
                    Some(Line {
                        name: class,
                        colour,
                        values: series,
                    })
                })
                .collect();
            let phase = Phase::of(measurement).title();
            let label = match name {
                "" => phase.to_owned(),
                name => format!("{phase}, {}", name.to_lowercase()),
            };
            Some(Figure {
                label,
                svg: Value::from_safe_string(lines::render(&CLASSES, &lines)?),
            })
        });
        figures.collect()
    };
    let all = runs.iter().flat_map(|(name, run)| chart(name, run));
    all.collect()
}

/// The distributions of the round trips of every phase; of two Runs, the first is dashed.
pub(super) fn distribution(runs: &[(&str, &Run)]) -> Option<String> {
    let mut curves = Vec::new();
    for phase in Phase::ALL {
        for (i, (label, run)) in runs.iter().enumerate() {
            let dashed = runs.len() > 1 && i == 0;
            let name = if label.is_empty() {
                phase.title().to_owned()
            } else {
                format!("{}, {}", phase.title(), label.to_lowercase())
            };
            curves.extend(Curve::new(
                name,
                phase.name(),
                dashed,
                &round_trips(run, phase),
            ));
        }
    }
    cdf::render(&curves)
}

/// The round trips of a phase with the probes that lead, `None` where one was lost.
fn round_trips(run: &Run, phase: Phase) -> Vec<Option<f64>> {
    let leading = view::leading_protocol(run);
    let counts = |measurement: &Measurement, t_s: f64| match measurement.outcome {
        Outcome::LoadedLatency(_) => (RAMP_S..=measurement.duration_s).contains(&t_s),
        _ => true,
    };
    let measurements = run.measurements.iter().filter(|m| Phase::of(m) == phase);
    let series =
        measurements.flat_map(|m| m.series.iter().map(move |(name, series)| (m, name, series)));
    series
        .filter(|(m, name, _)| timeline::protocol(m, name) == Some(leading))
        .flat_map(|(m, _, series)| {
            series
                .t_s
                .iter()
                .zip(&series.values)
                .filter(move |(t, _)| counts(m, **t))
                .map(|(_, value)| *value)
        })
        .collect()
}
