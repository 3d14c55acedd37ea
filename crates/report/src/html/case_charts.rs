//! The charts of an experiment: for each thing that was measured one, with a line or a bar for each case before and after.

use minijinja::Value;
use plumb_model::distribution::quantile_of_sorted;
use plumb_model::run::Run;
use plumb_model::series::Series;

use super::charts::{Figure, Group};
use crate::cases::{self, Experiment};
use crate::number;
use crate::registry::shown;
use crate::show::Trace;
use crate::svg::bars::{self, Bar};
use crate::svg::canvas::Drawing;
use crate::svg::cdf::{self, Curve};
use crate::svg::series::{self, Line, Scale, Subject, Written};

/// Colours of cases, from the first again where there are more; before the change they are dashed.
const COLOURS: [[&str; 2]; 5] = [
    ["idle before", "idle"],
    ["up before", "up"],
    ["both before", "both"],
    ["down before", "down"],
    ["after before", "after"],
];

/// Rates are averaged over so many seconds, so that the lines of several cases do not cover each other.
const AVERAGED_S: f64 = 1.0;

/// A case before or after the change.
struct Side<'a> {
    name: String,
    /// The colours of its case, dashed and not.
    colours: &'static [&'static str; 2],
    after: bool,
    run: Option<&'a Run>,
}

impl Side<'_> {
    fn colour(&self) -> &'static str {
        let [before, after] = self.colours;
        if self.after { after } else { before }
    }
}

pub(super) fn groups(experiment: &Experiment) -> Vec<Group> {
    let heads = experiment.heads.iter().enumerate();
    let groups = heads.filter_map(|(i, head)| {
        let sides: Vec<Side<'_>> = experiment
            .column(i)
            .map(|(case, after, name, run)| Side {
                name,
                colours: COLOURS.iter().cycle().nth(case).unwrap_or(&COLOURS[0]),
                after,
                run,
            })
            .collect();
        let drawing = rates(&sides)
            .or_else(|| round_trips(&sides))
            .or_else(|| loads(&sides))?;
        Some(Group {
            title: Experiment::name(head),
            figures: vec![Figure {
                label: String::new(),
                svg: Value::from_safe_string(drawing.both()),
            }],
        })
    });
    groups.collect()
}

/// The series of a Run that its kind draws so.
fn traces(run: &Run, is: fn(Trace) -> bool) -> impl Iterator<Item = &Series> {
    run.measurements.iter().flat_map(move |measurement| {
        let series = measurement.series.iter();
        let wanted = series.filter(move |(name, _)| shown(measurement).trace(name).is_some_and(is));
        wanted.map(|(_, series)| series)
    })
}

fn rates(sides: &[Side<'_>]) -> Option<Drawing> {
    let averaged: Vec<(&Side<'_>, Series)> = sides
        .iter()
        .filter_map(|side| {
            let mut of_run = traces(side.run?, |trace| matches!(trace, Trace::Rate(_)));
            Some((side, average(of_run.next()?)))
        })
        .collect();
    let lines: Vec<Line<'_>> = averaged
        .iter()
        .map(|(side, values)| Line {
            name: &side.name,
            colour: side.colour(),
            values,
        })
        .collect();
    let subject = Subject {
        title: "seconds; Mbit/s",
        description: "Rate over time, a line for each case",
        scale: Scale::FromZero,
        written: Written {
            factor: 1e-6,
            words: number::rate,
        },
    };
    series::render(&subject, &lines)
}

/// The mean of each second, of the last one where half of it is there; what was lost counts as nothing.
fn average(series: &Series) -> Series {
    let mut averaged = Series::new(series.unit);
    let (mut sum, mut count, mut end) = (0.0, 0_u32, AVERAGED_S);
    for (t_s, value) in series.t_s.iter().zip(&series.values) {
        if *t_s >= end && count > 0 {
            averaged.push(end - AVERAGED_S / 2.0, Some(sum / f64::from(count)));
            (sum, count) = (0.0, 0);
            end = (t_s / AVERAGED_S).floor() * AVERAGED_S + AVERAGED_S;
        }
        sum += value.unwrap_or(0.0);
        count += 1;
    }
    let last_s = series.t_s.last().copied().unwrap_or(0.0);
    if count > 0 && last_s >= end - AVERAGED_S / 2.0 {
        averaged.push(end - AVERAGED_S / 2.0, Some(sum / f64::from(count)));
    }
    averaged
}

fn round_trips(sides: &[Side<'_>]) -> Option<Drawing> {
    let curves = sides.iter().filter_map(|side| {
        let series = traces(side.run?, |trace| matches!(trace, Trace::RoundTrip { .. }));
        let values: Vec<Option<f64>> = series.flat_map(|s| s.values.iter().copied()).collect();
        Curve::new(side.name.clone(), side.colours[1], !side.after, &values)
    });
    cdf::render(&curves.collect::<Vec<_>>())
}

fn loads(sides: &[Side<'_>]) -> Option<Drawing> {
    let times = |side: &Side<'_>| side.run.and_then(cases::loads);
    if sides.iter().all(|side| times(side).is_none()) {
        return None;
    }
    let bars = sides.iter().map(|side| Bar {
        name: side.name.clone(),
        class: side.colour().to_owned(),
        value: times(side).and_then(|(times, _)| quantile_of_sorted(&times, 0.5)),
        text: cases::cell(side.run),
    });
    bars::render(
        "Page load time, a bar for each case",
        &bars.collect::<Vec<_>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_model::series::Unit;

    #[test]
    fn rates_are_averaged_by_the_second() {
        let mut series = Series::new(Unit::BitsPerSecond);
        for (t_s, value) in [
            (0.5, Some(2.0)),
            (0.9, None),
            (1.5, Some(4.0)),
            (3.5, Some(6.0)),
            (4.1, Some(8.0)),
        ] {
            series.push(t_s, value);
        }
        let averaged = average(&series);
        let points: Vec<_> = averaged.points().collect();
        assert_eq!(points, [(0.5, 1.0), (1.5, 4.0), (3.5, 6.0)]);
    }
}
