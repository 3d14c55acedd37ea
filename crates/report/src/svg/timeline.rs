//! Rates, losses, delays and round trips of a Run over its own time: panels that share the axis of time,
//! with the load phases marked.

use plumb_model::context::Phase;
use plumb_model::order::sort_few;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;
use plumb_model::run::{Measurement, Run};
use plumb_model::series::Series;

use super::axis::{Axis, drawable};
use super::canvas::{Anchor, Canvas, Drawing, LEGEND_LINE, Width, legend_rows};
use super::{limit, polyline};
use crate::latency::leading_protocol;
use crate::number::{self, Scale};
use crate::phase::{PHASES, flow};
use crate::registry::{phase, shown};
use crate::show::Trace as Shown;

/// What a panel is of, from the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Rate,
    /// What of UDP's packets never came.
    Loss,
    /// How much longer than the fastest UDP's packets took.
    Delay,
    /// Round trips of the probes.
    RoundTrip,
}

impl Quantity {
    const ALL: [Self; 4] = [Self::Rate, Self::Loss, Self::Delay, Self::RoundTrip];

    /// What to print over a panel whose values reach that far, and what to multiply them by.
    fn title(self, largest: f64) -> (String, f64) {
        let of = |what: &str, scale: Scale| (format!("{what}, {}", scale.unit), scale.factor());
        let one = [largest].into_iter();
        match self {
            Self::Rate => of("Rate", Scale::rates(one)),
            Self::Loss => ("UDP packets lost, %".to_owned(), 100.0),
            Self::Delay => of("UDP delay above the smallest", Scale::seconds(one)),
            Self::RoundTrip => of("Round-trip time", Scale::seconds(one)),
        }
    }

    /// Height of its panel, and steps of its axis.
    fn size(self) -> (f64, usize) {
        match self {
            Self::Rate => (130.0, 4),
            Self::Loss => (80.0, 2),
            Self::Delay => (130.0, 4),
            Self::RoundTrip => (190.0, 5),
        }
    }
}

/// A quantity over the time of the Run.
struct Trace {
    quantity: Quantity,
    class: &'static str,
    /// Whether it is drawn faintly, behind the others.
    faint: bool,
    points: Vec<(f64, Option<f64>)>,
}

/// A phase on the axis of time.
struct Band {
    phase: Phase,
    from_s: f64,
    to_s: f64,
}

/// What there is to draw of a Run.
pub(crate) struct Timeline {
    bands: Vec<Band>,
    traces: Vec<Trace>,
    leading: Protocol,
}

/// Ends of the axes, so that two Runs can be drawn alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    time_s: f64,
    largest: [f64; Quantity::ALL.len()],
}

impl Extent {
    /// The extent that holds both.
    pub(crate) fn with(self, other: Self) -> Self {
        let mut largest = self.largest;
        for (mine, its) in largest.iter_mut().zip(other.largest) {
            *mine = mine.max(its);
        }
        Self {
            time_s: self.time_s.max(other.time_s),
            largest,
        }
    }
}

impl Timeline {
    /// What there is to draw; `None` when no measurement has values over time.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let leading = leading_protocol(run);
        let mut timeline = Self {
            bands: bands(run),
            traces: Vec::new(),
            leading,
        };
        for measurement in &run.measurements {
            for (name, series) in &measurement.series {
                timeline.add(measurement, name, series);
            }
        }
        // Faint ones first, so that they lie behind.
        sort_few(&mut timeline.traces, |a, b| b.faint.cmp(&a.faint));
        (!timeline.traces.is_empty()).then_some(timeline)
    }

    fn add(&mut self, measurement: &Measurement, name: &str, series: &Series) {
        let points = || {
            let at = series.t_s.iter().map(|t| measurement.at_s + t);
            let points = at
                .zip(&series.values)
                .filter_map(|(t, v)| Some((drawable(t)?, v.and_then(drawable))));
            points.collect()
        };
        let of_direction = |direction| match direction {
            Direction::Up => "up",
            Direction::Down | Direction::Both => "down",
        };
        let Some(shown) = shown(measurement).trace(name) else {
            return;
        };
        let (quantity, class, faint) = match shown {
            Shown::Rate(direction) => (Quantity::Rate, of_direction(direction), false),
            Shown::Loss(direction) => (Quantity::Loss, of_direction(direction), false),
            Shown::Delay(direction) => (Quantity::Delay, of_direction(direction), false),
            Shown::RoundTrip { protocol, .. } => (
                Quantity::RoundTrip,
                phase(measurement).name(),
                protocol != self.leading,
            ),
        };
        self.traces.push(Trace {
            quantity,
            class,
            faint,
            points: points(),
        });
    }

    fn of_quantity(&self, quantity: Quantity) -> impl Iterator<Item = &Trace> {
        let traces = self.traces.iter();
        traces.filter(move |trace| trace.quantity == quantity)
    }

    /// The ends of the axes that this Run needs.
    pub(crate) fn extent(&self) -> Extent {
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let points = self.traces.iter().flat_map(|trace| &trace.points);
        let ends = self.bands.iter().map(|band| band.to_s);
        Extent {
            time_s: largest(&mut points.map(|(t, _)| *t).chain(ends)),
            largest: Quantity::ALL.map(|quantity| match quantity {
                Quantity::Loss => {
                    let points = self.of_quantity(quantity).flat_map(|t| &t.points);
                    largest(&mut points.filter_map(|(_, value)| *value))
                }
                Quantity::Rate | Quantity::Delay | Quantity::RoundTrip => {
                    let values =
                        |trace: &Trace| trace.points.iter().filter_map(|(_, v)| *v).collect();
                    let percentile = match quantity {
                        Quantity::Rate => limit::OF_RATES,
                        _ => limit::OF_TIMES,
                    };
                    limit::end(self.of_quantity(quantity).map(values), percentile).unwrap_or(0.0)
                }
            }),
        }
    }
}

/// The phases on the axis of time, each as long as its measurements.
fn bands(run: &Run) -> Vec<Band> {
    let of = |band: Phase| {
        let ends = run
            .measurements
            .iter()
            .filter(|m| phase(m) == band && shown(m).fills_its_phase());
        let ends = ends.filter_map(|m| Some((drawable(m.at_s)?, drawable(m.at_s + m.duration_s)?)));
        let (from_s, to_s) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        Some(Band {
            phase: band,
            from_s,
            to_s,
        })
    };
    PHASES.into_iter().filter_map(of).collect()
}

const LEFT: f64 = 56.0;
/// Right of the plots.
const MARGIN: f64 = 12.0;
/// The names of the phases stand here, and the first panel below them.
const PHASES_TOP: f64 = 16.0;
/// Width of a letter of a panel's title, about: it is larger and bolder than other text.
const TITLE_LETTER: f64 = 8.0;
/// Room for a panel's title.
const TITLE: f64 = 34.0;
/// Between a panel and the title of the next.
const GAP: f64 = 6.0;
/// Room for the labels of the axis of time.
const FOOT: f64 = 44.0;

/// The chart, on axes that end where `extent` says.
pub(crate) fn render(timeline: &Timeline, extent: Extent) -> Drawing {
    Drawing::of(|width| draw(timeline, extent, width))
}

fn draw(timeline: &Timeline, extent: Extent, width: Width) -> String {
    let mut canvas = Canvas::new(width);
    let right = width.units() - MARGIN;
    let x = Axis::linear((0.0, extent.time_s), (LEFT, right));
    let names: Vec<(String, String)> = timeline
        .bands
        .iter()
        .map(|band| {
            (
                format!("{} phase-line", band.phase.name()),
                band.phase.shown().to_owned(),
            )
        })
        .collect();
    let bands_top = canvas.legend((LEFT, PHASES_TOP), right, &names) + 12.0;
    let mut bottom = bands_top - GAP;
    let mut panels = Vec::new();
    for (quantity, largest) in Quantity::ALL.into_iter().zip(extent.largest) {
        if largest > 0.0 {
            let names = Names::of(timeline, (quantity, largest), right, width);
            let top = bottom + GAP + TITLE + names.height();
            bottom = top + quantity.size().0;
            panels.push((quantity, largest, names, (top, bottom)));
        }
    }
    let bottom = bottom.max(bands_top + TITLE);
    phases(&mut canvas, timeline, &x, (bands_top, bottom));
    for (quantity, largest, names, panel) in panels {
        let (title, factor) = quantity.title(largest);
        let (_, steps) = quantity.size();
        let y = Axis::from_zero(largest, steps, (panel.1, panel.0));
        let title_at = panel.0 - 12.0 - names.height();
        frame(
            &mut canvas,
            panel,
            (&x, right, width.ticks()),
            (&title, title_at),
        );
        let first_row = match names.own_rows {
            0 => title_at,
            _ => title_at + LEGEND_LINE,
        };
        canvas.legend((names.left, first_row), right, &names.entries);
        values(&mut canvas, (&y, right), factor, steps);
        lines(&mut canvas, timeline.of_quantity(quantity), &x, &y);
        for (t, _) in points_beyond(timeline, quantity, &y) {
            canvas.beyond((x.position(t), panel.0));
        }
        if quantity == Quantity::RoundTrip {
            losses(&mut canvas, timeline, &x, panel.0);
        }
    }
    for tick in x.ticks(width.ticks(), 1.0) {
        canvas.text(
            "tick",
            (tick.position, bottom + 18.0),
            Anchor::Middle,
            &tick.label,
        );
    }
    canvas.text(
        "tick",
        ((LEFT + right) / 2.0, bottom + 36.0),
        Anchor::Middle,
        "seconds from the start",
    );
    canvas.finish(
        bottom + FOOT,
        "Rates and times over the time of the measurement",
    )
}

/// The names of a panel's lines: beside its title where they fit, or in rows of their own beneath it.
struct Names {
    entries: Vec<(String, String)>,
    left: f64,
    own_rows: usize,
}

impl Names {
    fn of(
        timeline: &Timeline,
        (quantity, largest): (Quantity, f64),
        right: f64,
        width: Width,
    ) -> Self {
        let y = Axis::from_zero(largest, quantity.size().1, (1.0, 0.0));
        let mut entries = entries(timeline, quantity);
        entries.extend(beyond(timeline, quantity, &y));
        let title = quantity.title(largest).0;
        let beside = LEFT + TITLE_LETTER * title.chars().count() as f64 + 2.0 * MARGIN;
        if width == Width::Wide && legend_rows(beside, right, &entries) == 1 {
            return Self {
                entries,
                left: beside,
                own_rows: 0,
            };
        }
        Self {
            left: LEFT,
            own_rows: legend_rows(LEFT, right, &entries),
            entries,
        }
    }

    fn height(&self) -> f64 {
        LEGEND_LINE * self.own_rows as f64
    }
}

/// What is higher than the axis reaches.
fn points_beyond(
    timeline: &Timeline,
    quantity: Quantity,
    y: &Axis,
) -> impl Iterator<Item = (f64, f64)> {
    let points = timeline
        .of_quantity(quantity)
        .flat_map(|trace| &trace.points);
    let points = points.filter_map(|(t, value)| Some((*t, (*value)?)));
    points.filter(|(_, value)| !y.holds(*value))
}

/// What is cut off, as an entry of the legend.
fn beyond(timeline: &Timeline, quantity: Quantity, y: &Axis) -> Option<(String, String)> {
    let values = || points_beyond(timeline, quantity, y).map(|(_, value)| value);
    let most = values().reduce(f64::max)?;
    let most = match quantity {
        Quantity::Rate => number::rate(most),
        Quantity::Loss => number::percent(most),
        Quantity::Delay | Quantity::RoundTrip => number::seconds(most),
    };
    let text = format!("{} beyond the top, up to {most}", values().count());
    Some(("cut".to_owned(), text))
}

fn phases(canvas: &mut Canvas, timeline: &Timeline, x: &Axis, (top, bottom): (f64, f64)) {
    for band in &timeline.bands {
        let (from, to) = (x.position(band.from_s), x.position(band.to_s));
        let class = band.phase.name();
        canvas.rect(
            &format!("band {class}"),
            (from, top),
            (to - from, bottom - top),
        );
        canvas.rect(
            &format!("fill {class}"),
            (from, top - 3.0),
            (to - from, 3.0),
        );
    }
}

/// Title, time grid and base line of a panel.
fn frame(
    canvas: &mut Canvas,
    (top, bottom): (f64, f64),
    (x, right, ticks): (&Axis, f64, usize),
    (title, title_y): (&str, f64),
) {
    canvas.text("panel", (LEFT, title_y), Anchor::Start, title);
    for tick in x.ticks(ticks, 1.0) {
        canvas.rule("grid", (tick.position, top), (tick.position, bottom));
    }
    canvas.rule("axis", (LEFT, bottom), (right, bottom));
}

fn values(canvas: &mut Canvas, (y, right): (&Axis, f64), factor: f64, count: usize) {
    for tick in y.ticks(count, factor) {
        canvas.rule("grid", (LEFT, tick.position), (right, tick.position));
        canvas.text(
            "tick",
            (LEFT - 8.0, tick.position + 4.0),
            Anchor::End,
            &tick.label,
        );
    }
}

fn lines<'a>(canvas: &mut Canvas, traces: impl Iterator<Item = &'a Trace>, x: &Axis, y: &Axis) {
    for trace in traces {
        let faint = if trace.faint { " faint" } else { "" };
        let points = trace
            .points
            .iter()
            .map(|(t, v)| v.map(|v| (x.position(*t), y.position(v))));
        canvas.path(
            &format!("line {}{faint}", trace.class),
            &polyline::path(points),
        );
    }
}

/// A stroke at the top of the panel for each column of pixels in which a probe was lost.
fn losses(canvas: &mut Canvas, timeline: &Timeline, x: &Axis, top: f64) {
    let mut last = f64::NEG_INFINITY;
    for trace in leading(timeline) {
        for (t, _) in trace.points.iter().filter(|(_, value)| value.is_none()) {
            let at = x.position(*t).floor();
            if at != last {
                canvas.rule("lost", (at, top), (at, top + 8.0));
                last = at;
            }
        }
    }
}

/// The round trips with the probes that lead.
fn leading(timeline: &Timeline) -> impl Iterator<Item = &Trace> {
    let traces = timeline.of_quantity(Quantity::RoundTrip);
    traces.filter(|trace| !trace.faint)
}

fn entries(timeline: &Timeline, quantity: Quantity) -> Vec<(String, String)> {
    if quantity == Quantity::RoundTrip {
        return round_trip_legend(timeline);
    }
    let names = [("down", Direction::Down), ("up", Direction::Up)];
    let there = names
        .into_iter()
        .filter(|(class, _)| timeline.of_quantity(quantity).any(|t| t.class == *class));
    there
        .map(|(class, direction)| (class.to_owned(), flow(direction).to_owned()))
        .collect()
}

fn round_trip_legend(timeline: &Timeline) -> Vec<(String, String)> {
    let other = match timeline.leading {
        Protocol::Udp | Protocol::Stamp | Protocol::Irtt => Protocol::Icmp,
        _ => Protocol::Udp,
    };
    let name = |protocol: Protocol| protocol.name().to_uppercase();
    let mut all = timeline.of_quantity(Quantity::RoundTrip);
    let faint = all.any(|trace| trace.faint);
    let lost = leading(timeline).any(|trace| trace.points.iter().any(|p| p.1.is_none()));
    [
        Some((
            "idle",
            if timeline.bands.len() > 1 {
                format!("{}, by phase", name(timeline.leading))
            } else {
                name(timeline.leading)
            },
        )),
        faint.then(|| ("idle faint", name(other))),
        lost.then(|| ("lost", "lost".to_owned())),
    ]
    .into_iter()
    .flatten()
    .map(|(class, name): (&str, String)| (class.to_owned(), name))
    .collect()
}
