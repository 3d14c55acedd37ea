//! The charts of a page: each Run over its time, all on the same scales, and the distributions of
//! their round trips over each other.

use minijinja::Value;
use plumb_model::order::sort_few;
use plumb_model::run::Run;
use serde::Serialize;

use crate::phase::PHASES;
use crate::registry::{phase, shown};
use crate::round_trips::round_trips;
use crate::show::ChartGroup;
use crate::svg::cdf::{self, Curve};
use crate::svg::timeline::{self, Extent, Timeline};

/// A chart with the name of its Run.
#[derive(Serialize)]
pub(super) struct Figure {
    pub(super) label: String,
    pub(super) svg: Value,
}

/// Charts under one head.
#[derive(Serialize)]
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) figures: Vec<Figure>,
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
        svg: Value::from_safe_string(timeline::render(&line, extent).both()),
    };
    lines.into_iter().map(figure).collect()
}

/// The charts that results have to themselves, the charts of a group together.
pub(super) fn groups(runs: &[(&str, &Run)]) -> Vec<Group> {
    let mut found: Vec<(ChartGroup, Figure)> = Vec::new();
    for (name, run) in runs {
        for measurement in &run.measurements {
            let charts = shown(measurement).charts(measurement, phase(measurement));
            found.extend(charts.into_iter().map(|chart| {
                let label = match (chart.of, *name) {
                    (Some(of), "") => of,
                    (Some(of), name) => format!("{of}, {}", name.to_lowercase()),
                    (None, name) => name.to_owned(),
                };
                let svg = Value::from_safe_string(chart.svg.both());
                (chart.group, Figure { label, svg })
            }));
        }
    }
    sort_few(&mut found, |(a, _), (b, _)| a.cmp(b));
    let mut groups: Vec<Group> = Vec::new();
    for (group, figure) in found {
        match groups.last_mut().filter(|last| last.title == group.title()) {
            Some(last) => last.figures.push(figure),
            None => groups.push(Group {
                title: group.title(),
                figures: vec![figure],
            }),
        }
    }
    groups
}

/// The distributions of the round trips of every phase; of two Runs, the first is dashed.
pub(super) fn distribution(runs: &[(&str, &Run)]) -> Option<String> {
    let mut curves = Vec::new();
    for phase in PHASES {
        for (i, (label, run)) in runs.iter().enumerate() {
            let dashed = runs.len() > 1 && i == 0;
            let name = if label.is_empty() {
                phase.shown().to_owned()
            } else {
                format!("{}, {}", phase.shown(), label.to_lowercase())
            };
            curves.extend(Curve::new(
                name,
                phase.name(),
                dashed,
                &round_trips(run, phase),
            ));
        }
    }
    cdf::render(&curves).map(|drawing| drawing.both())
}
