//! Several Runs in one figure, as a file of SVG: their round trips over time, as distributions, or as boxes.

use plumb_model::context::Phase;
use plumb_model::distribution::quantile_of_sorted;
use plumb_model::run::Run;
use plumb_model::series::{Series, Unit};
use plumb_model::vocabulary;

use super::svg::standalone;
use crate::latency::leading_protocol;
use crate::number;
use crate::registry::{phase, shown};
use crate::round_trips::round_trips;
use crate::show::Trace;
use crate::svg::axis::{Axis, drawable};
use crate::svg::canvas::{Anchor, Canvas, Drawing, LETTER, Width};
use crate::svg::cdf::{self, Curve};
use crate::svg::series::{self, Line, Scale, Subject, Written};

vocabulary! {
    /// A figure of several Runs.
    pub enum Figure {
        /// Round trips over time, a line for each Run.
        Overlay = "overlay",
        /// How the round trips of each Run are distributed, a curve for each.
        Cdf = "cdf",
        /// Median, middle half, and 5th to 95th percentile of the round trips of each Run.
        Box = "box",
    }
}

/// Classes of the colours, one Run after the other; the second round of them is dashed.
const COLOURS: [&str; 5] = ["up", "down", "both", "after", "idle"];

/// Phases in the order in which they are chosen where none is asked for: where latency is most telling first.
const CHOSEN: [Phase; 4] = [Phase::Up, Phase::Down, Phase::Both, Phase::Idle];

/// The figure of a phase of these Runs, each with a name: of the phase given, or of the first that any of them has; `None`
/// where none has round trips.
pub fn figure(kind: Figure, runs: &[(String, Run)], wanted: Option<Phase>) -> Option<String> {
    let has = |phase: Phase| {
        let mut all = runs.iter().flat_map(|(_, run)| round_trips(run, phase));
        all.any(|rtt| rtt.is_some())
    };
    let phase = match wanted {
        Some(wanted) => has(wanted).then_some(wanted)?,
        None => CHOSEN.into_iter().find(|phase| has(*phase))?,
    };
    let drawing = match kind {
        Figure::Overlay => overlay(runs, phase),
        Figure::Cdf => {
            let curves = runs.iter().enumerate().filter_map(|(place, (name, run))| {
                let label = format!("{}, {}", shortened(name), phase.shown());
                let (class, dashed) = colour(place);
                Curve::new(label, class, dashed, &round_trips(run, phase))
            });
            cdf::render(&curves.collect::<Vec<_>>())
        }
        Figure::Box => Some(boxes(runs, phase)),
    };
    standalone(&drawing?.wide)
}

/// A name as far as the legend of distributions has room for it.
fn shortened(name: &str) -> String {
    const ROOM: usize = 18;
    match name.chars().count() > ROOM {
        true => name.chars().take(ROOM - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

fn colour(place: usize) -> (&'static str, bool) {
    let class = COLOURS.get(place % COLOURS.len()).copied();
    (class.unwrap_or("idle"), place / COLOURS.len() % 2 == 1)
}

/// The round trips of each Run from the beginning of the phase.
fn overlay(runs: &[(String, Run)], of: Phase) -> Option<Drawing> {
    let series: Vec<Series> = runs.iter().map(|(_, run)| over_time(run, of)).collect();
    let lines = series.iter().zip(runs).enumerate();
    let lines: Vec<Line<'_>> = lines
        .map(|(place, (values, (name, _)))| Line {
            name,
            colour: match colour(place) {
                ("up", true) => "up before",
                ("down", true) => "down before",
                ("both", true) => "both before",
                ("after", true) => "after before",
                ("idle", true) => "idle before",
                (class, _) => class,
            },
            values,
        })
        .collect();
    let title = format!(
        "s from the beginning of the phase: {}; round-trip time, ms",
        of.shown()
    );
    let subject = Subject {
        title: &title,
        description: "Round trips over time, a line for each Run",
        scale: Scale::Logarithmic,
        written: Written::TIMES,
    };
    series::render(&subject, &lines)
}

fn over_time(run: &Run, of: Phase) -> Series {
    let leading = leading_protocol(run);
    let mut all = Series::new(Unit::Seconds);
    for measurement in run.measurements.iter().filter(|m| phase(m) == of) {
        for (name, series) in &measurement.series {
            let leads = matches!(
                shown(measurement).trace(name),
                Some(Trace::RoundTrip { protocol, .. }) if protocol == leading
            );
            if leads {
                for (t_s, value) in series.t_s.iter().zip(&series.values) {
                    all.push(*t_s, *value);
                }
            }
        }
    }
    all
}

/// Quantiles that a box shows: its whiskers, its sides, and the line in it.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

const TOP: f64 = 12.0;
const ROW: f64 = 30.0;
const THICKNESS: f64 = 16.0;
/// Between the name and the plot, and beside it.
const GAP: f64 = 12.0;

/// A box a Run, on a logarithmic axis of time; a Run without round trips has a name alone.
fn boxes(runs: &[(String, Run)], of: Phase) -> Drawing {
    let quantiles = |run: &Run| -> Option<[f64; 5]> {
        let values = round_trips(run, of);
        let mut values: Vec<f64> = values.into_iter().flatten().filter_map(drawable).collect();
        values.sort_by(f64::total_cmp);
        let at = QUANTILES.map(|p| quantile_of_sorted(&values, p));
        let [Some(a), Some(b), Some(c), Some(d), Some(e)] = at else {
            return None;
        };
        Some([a, b, c, d, e])
    };
    let rows: Vec<_> = runs
        .iter()
        .map(|(name, run)| (name, quantiles(run)))
        .collect();
    Drawing::of(|width| draw_boxes(&rows, of, width))
}

fn draw_boxes(rows: &[(&String, Option<[f64; 5]>)], of: Phase, width: Width) -> String {
    let widest = rows.iter().map(|(name, _)| name.chars().count()).max();
    let left = (widest.unwrap_or(0) as f64 * LETTER + GAP).min(width.units() * 0.5);
    let right = width.units() - GAP;
    let ends = || rows.iter().filter_map(|(_, box_)| *box_);
    let low = ends().map(|[low, ..]| low).fold(f64::INFINITY, f64::min);
    let high = ends().map(|[.., high]| high).fold(0.0, f64::max);
    let x = Axis::logarithmic((low, high), (left, right));
    let bottom = TOP + ROW * rows.len() as f64;
    let mut canvas = Canvas::new(width);
    for tick in x.ticks(width.ticks(), 1e3) {
        canvas.rule("grid", (tick.position, TOP), (tick.position, bottom));
        let at = (tick.position, bottom + 18.0);
        canvas.text("tick", at, Anchor::Middle, &tick.label);
    }
    canvas.rule("axis", (left, bottom), (right, bottom));
    for (place, (name, box_)) in rows.iter().enumerate() {
        let middle = TOP + ROW * (place as f64 + 0.5);
        canvas.text("label", (left - GAP / 2.0, middle + 4.0), Anchor::End, name);
        let Some(box_) = box_ else { continue };
        let [p5, p25, p50, p75, p95] = box_.map(|value| x.position(value));
        let (class, _) = colour(place);
        canvas.rule(&format!("line {class}"), (p5, middle), (p25, middle));
        canvas.rule(&format!("line {class}"), (p75, middle), (p95, middle));
        let (above, below) = (middle - THICKNESS / 2.0, middle + THICKNESS / 2.0);
        let path = format!("M{p25:.1} {above:.1}H{p75:.1}V{below:.1}H{p25:.1}Z");
        canvas.path(&format!("line {class}"), &path);
        canvas.rule(&format!("line {class}"), (p50, above), (p50, below));
        let median = number::seconds(box_[2]);
        canvas.text("tick", (p50, above - 2.0), Anchor::Middle, &median);
    }
    let title = format!("round-trip time, ms (logarithmic): {}", of.shown());
    let at = ((left + right) / 2.0, bottom + 38.0);
    canvas.text("tick", at, Anchor::Middle, &title);
    canvas.finish(
        bottom + 50.0,
        "Round trips of each Run: 5th to 95th percentile, middle half and median",
    )
}
