//! The charts of a page: each Run over its time, all on the same scales, and the distributions of
//! their round trips over each other.

use minijinja::Value;
use plumb_model::results::{Outcome, RAMP_S};
use plumb_model::run::{Measurement, Run};
use serde::Serialize;

use crate::svg::cdf::{self, Curve};
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
