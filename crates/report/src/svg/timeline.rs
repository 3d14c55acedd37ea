//! Rates and round trips of a Run over its own time: two panels that share the axis of time,
//! with the load phases marked.

use plumb_model::results::{Direction, Outcome, ProbeProtocol};
use plumb_model::run::{Measurement, Run};
use plumb_model::series::Series;

use super::axis::{Axis, drawable};
use super::{Anchor, Canvas, LETTER, WIDTH, line};
use crate::number::Scale;
use crate::view::{self, Phase};

/// A quantity over the time of the Run.
struct Trace {
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
    rates: Vec<Trace>,
    round_trips: Vec<Trace>,
    leading: ProbeProtocol,
}

/// Ends of the axes, so that two Runs can be drawn alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    time_s: f64,
    rate_bps: f64,
    round_trip_s: f64,
}

impl Extent {
    /// The extent that holds both.
    pub(crate) fn with(self, other: Self) -> Self {
        Self {
            time_s: self.time_s.max(other.time_s),
            rate_bps: self.rate_bps.max(other.rate_bps),
            round_trip_s: self.round_trip_s.max(other.round_trip_s),
        }
    }
}

impl Timeline {
    /// What there is to draw; `None` when no measurement has values over time.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let leading = view::leading_protocol(run);
        let mut timeline = Self {
            bands: bands(run),
            rates: Vec::new(),
            round_trips: Vec::new(),
            leading,
        };
        for measurement in &run.measurements {
            for (name, series) in &measurement.series {
                timeline.add(measurement, name, series);
            }
        }
        // Faint ones first, so that they lie behind.
        timeline.round_trips.sort_by_key(|trace| !trace.faint);
        let any = !timeline.rates.is_empty() || !timeline.round_trips.is_empty();
        any.then_some(timeline)
    }

    fn add(&mut self, measurement: &Measurement, name: &str, series: &Series) {
        let points = || {
            let at = series.t_s.iter().map(|t| measurement.at_s + t);
            let points = at
                .zip(&series.values)
                .filter_map(|(t, v)| Some((drawable(t)?, v.and_then(drawable))));
            points.collect()
        };
        let carried = match &measurement.outcome {
            Outcome::Throughput(t) => Some(t.direction),
            Outcome::Udp(u) => Some(u.direction),
            _ => None,
        };
        match (&measurement.outcome, name) {
            (Outcome::Throughput(_) | Outcome::Udp(_), "bps") => {
                let class = if carried == Some(Direction::Up) {
                    "up"
                } else {
                    "down"
                };
                self.rates.push(Trace {
                    class,
                    faint: false,
                    points: points(),
                });
            }
            (Outcome::Ping(_) | Outcome::LoadedLatency(_), "rtt" | "rtt_icmp") => {
                let faint = protocol(measurement, name) != Some(self.leading);
                self.round_trips.push(Trace {
                    class: Phase::of(measurement).name(),
                    faint,
                    points: points(),
                });
            }
            _ => {}
        }
    }

    /// The ends of the axes that this Run needs.
    pub(crate) fn extent(&self) -> Extent {
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let traces = || self.rates.iter().chain(&self.round_trips);
        let times = traces().flat_map(|t| t.points.iter().map(|p| p.0));
        let values = |traces: &[Trace]| {
            largest(
                &mut traces
                    .iter()
                    .flat_map(|t| t.points.iter().filter_map(|p| p.1)),
            )
        };
        Extent {
            time_s: largest(&mut times.chain(self.bands.iter().map(|b| b.to_s))),
            rate_bps: values(&self.rates),
            round_trip_s: values(&self.round_trips),
        }
    }
}

/// The protocol of the probes of a series.
pub(crate) fn protocol(measurement: &Measurement, name: &str) -> Option<ProbeProtocol> {
    match (&measurement.outcome, name) {
        (Outcome::LoadedLatency(_), "rtt_icmp") => Some(ProbeProtocol::Icmp),
        (Outcome::LoadedLatency(l), "rtt") => Some(l.protocol),
        (Outcome::Ping(p), "rtt") => Some(p.protocol),
        _ => None,
    }
}

/// The phases on the axis of time, each as long as its measurements.
fn bands(run: &Run) -> Vec<Band> {
    let of = |phase: Phase| {
        let ends = run
            .measurements
            .iter()
            .filter(|m| Phase::of(m) == phase && !matches!(m.outcome, Outcome::Port(_)));
        let ends = ends.filter_map(|m| Some((drawable(m.at_s)?, drawable(m.at_s + m.duration_s)?)));
        let (from_s, to_s) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        Some(Band {
            phase,
            from_s,
            to_s,
        })
    };
    Phase::ALL.into_iter().filter_map(of).collect()
}

const LEFT: f64 = 56.0;
const RIGHT: f64 = WIDTH - 12.0;
/// Names of the phases stand above here.
const BANDS_TOP: f64 = 24.0;
const RATES_HEIGHT: f64 = 130.0;
const ROUND_TRIPS_HEIGHT: f64 = 190.0;
/// Room for a panel's title.
const TITLE: f64 = 34.0;
/// Room for the labels of the axis of time.
const FOOT: f64 = 44.0;

/// The chart.
pub(crate) fn render(timeline: &Timeline, extent: Extent) -> String {
    let mut canvas = Canvas::new();
    let x = Axis::linear((0.0, extent.time_s), (LEFT, RIGHT));
    let mut top = BANDS_TOP + TITLE;
    let mut panels = Vec::new();
    if extent.rate_bps > 0.0 {
        panels.push((top, top + RATES_HEIGHT));
        top += RATES_HEIGHT + TITLE + 6.0;
    }
    let rtt_panel = (extent.round_trip_s > 0.0).then_some((top, top + ROUND_TRIPS_HEIGHT));
    panels.extend(rtt_panel);
    let bottom = panels.last().map_or(top, |panel| panel.1);

    phases(&mut canvas, timeline, &x, bottom);
    if extent.rate_bps > 0.0
        && let Some(&panel) = panels.first()
    {
        let scale = Scale::rates([extent.rate_bps].into_iter());
        frame(&mut canvas, panel, &x, &format!("Rate, {}", scale.unit));
        legend(&mut canvas, panel.0, &rate_legend(timeline));
        let y = Axis::from_zero(extent.rate_bps, 4, (panel.1, panel.0));
        values(&mut canvas, &y, scale.factor(), 4);
        draw(&mut canvas, &timeline.rates, &x, &y);
    }
    if let Some(panel) = rtt_panel {
        let scale = Scale::seconds([extent.round_trip_s].into_iter());
        frame(
            &mut canvas,
            panel,
            &x,
            &format!("Round-trip time, {}", scale.unit),
        );
        legend(&mut canvas, panel.0, &round_trip_legend(timeline));
        let y = Axis::from_zero(extent.round_trip_s, 5, (panel.1, panel.0));
        values(&mut canvas, &y, scale.factor(), 5);
        draw(&mut canvas, &timeline.round_trips, &x, &y);
        losses(&mut canvas, timeline, &x, panel.0);
    }
    for tick in x.ticks(12, 1.0) {
        canvas.text(
            "tick",
            (tick.position, bottom + 18.0),
            Anchor::Middle,
            &tick.label,
        );
    }
    canvas.text(
        "tick",
        ((LEFT + RIGHT) / 2.0, bottom + 36.0),
        Anchor::Middle,
        "seconds from the start",
    );
    canvas.finish(
        bottom + FOOT,
        "Rates and round-trip times over the time of the measurement",
    )
}

fn phases(canvas: &mut Canvas, timeline: &Timeline, x: &Axis, bottom: f64) {
    for band in &timeline.bands {
        let (from, to) = (x.position(band.from_s), x.position(band.to_s));
        let class = band.phase.name();
        canvas.rect(
            &format!("band {class}"),
            (from, BANDS_TOP),
            (to - from, bottom - BANDS_TOP),
        );
        canvas.rect(
            &format!("fill {class}"),
            (from, BANDS_TOP - 3.0),
            (to - from, 3.0),
        );
        // A name that does not fit its band would run into the next.
        let name = band.phase.title();
        if to - from > LETTER * name.len() as f64 {
            canvas.text(
                "phase",
                ((from + to) / 2.0, BANDS_TOP - 9.0),
                Anchor::Middle,
                name,
            );
        }
    }
}

/// Title, time grid and base line of a panel.
fn frame(canvas: &mut Canvas, (top, bottom): (f64, f64), x: &Axis, title: &str) {
    canvas.text("panel", (LEFT, top - 12.0), Anchor::Start, title);
    for tick in x.ticks(12, 1.0) {
        canvas.rule("grid", (tick.position, top), (tick.position, bottom));
    }
    canvas.rule("axis", (LEFT, bottom), (RIGHT, bottom));
}

fn values(canvas: &mut Canvas, y: &Axis, factor: f64, count: usize) {
    for tick in y.ticks(count, factor) {
        canvas.rule("grid", (LEFT, tick.position), (RIGHT, tick.position));
        canvas.text(
            "tick",
            (LEFT - 8.0, tick.position + 4.0),
            Anchor::End,
            &tick.label,
        );
    }
}

fn draw(canvas: &mut Canvas, traces: &[Trace], x: &Axis, y: &Axis) {
    for trace in traces {
        let faint = if trace.faint { " faint" } else { "" };
        let points = trace
            .points
            .iter()
            .map(|(t, v)| v.map(|v| (x.position(*t), y.position(v))));
        canvas.path(&format!("line {}{faint}", trace.class), &line::path(points));
    }
}

/// A stroke at the top of the panel for each column of pixels in which a probe was lost.
fn losses(canvas: &mut Canvas, timeline: &Timeline, x: &Axis, top: f64) {
    let mut last = f64::NEG_INFINITY;
    for trace in timeline.round_trips.iter().filter(|trace| !trace.faint) {
        for (t, _) in trace.points.iter().filter(|(_, value)| value.is_none()) {
            let at = x.position(*t).floor();
            if at != last {
                canvas.rule("lost", (at, top), (at, top + 8.0));
                last = at;
            }
        }
    }
}

fn rate_legend(timeline: &Timeline) -> Vec<(&'static str, String)> {
    let names = [("down", Direction::Down), ("up", Direction::Up)];
    let there = names
        .into_iter()
        .filter(|(class, _)| timeline.rates.iter().any(|t| t.class == *class));
    there
        .map(|(class, direction)| (class, view::flow(direction).to_owned()))
        .collect()
}

fn round_trip_legend(timeline: &Timeline) -> Vec<(&'static str, String)> {
    let other = match timeline.leading {
        ProbeProtocol::Udp | ProbeProtocol::Stamp => ProbeProtocol::Icmp,
        _ => ProbeProtocol::Udp,
    };
    let name = |protocol: ProbeProtocol| protocol.name().to_uppercase();
    let faint = timeline.round_trips.iter().any(|t| t.faint);
    let lost = timeline
        .round_trips
        .iter()
        .any(|t| !t.faint && t.points.iter().any(|p| p.1.is_none()));
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
    .collect()
}

/// Names of the lines, from the right end of a panel's title.
fn legend(canvas: &mut Canvas, top: f64, entries: &[(&'static str, String)]) {
    let y = top - 12.0;
    let mut right = RIGHT;
    for (class, name) in entries.iter().rev() {
        canvas.rule(
            &format!("line {class}"),
            (right - 20.0, y - 4.0),
            (right, y - 4.0),
        );
        canvas.text("label", (right - 27.0, y), Anchor::End, name);
        right -= 27.0 + LETTER * name.chars().count() as f64 + 18.0;
    }
}
