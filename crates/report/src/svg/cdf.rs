//! Cumulative distributions on a logarithmic axis of time. A lost probe counts as one that never
//! came back, so a curve with losses ends below 100 %.

use super::axis::{Axis, drawable};
use super::canvas::{Anchor, Canvas, Drawing, LEGEND_LINE, Width};
use super::polyline;
use crate::number;

/// The samples of one curve.
pub(crate) struct Curve {
    pub(crate) label: String,
    /// Class of its colour.
    pub(crate) class: &'static str,
    /// The first of two Runs is dashed.
    pub(crate) dashed: bool,
    samples_s: Vec<f64>,
    lost: usize,
}

impl Curve {
    /// A curve of round trips, `None` where one was lost; `None` when none came back.
    pub(crate) fn new(
        label: String,
        class: &'static str,
        dashed: bool,
        values_s: &[Option<f64>],
    ) -> Option<Self> {
        let mut samples_s: Vec<f64> = values_s
            .iter()
            .flatten()
            .copied()
            .filter_map(drawable)
            .collect();
        samples_s.sort_by(f64::total_cmp);
        let lost = values_s.len() - samples_s.len();
        (!samples_s.is_empty()).then_some(Self {
            label,
            class,
            dashed,
            samples_s,
            lost,
        })
    }

    fn quantile(&self, p: f64) -> Option<f64> {
        plumb_model::distribution::quantile_of_sorted(&self.samples_s, p)
    }

    /// The steps of the curve: at each sample, the share of probes that were back by then.
    fn steps(&self, x: &Axis, y: &Axis) -> impl Iterator<Item = Option<(f64, f64)>> {
        let sent = (self.samples_s.len() + self.lost) as f64;
        self.samples_s
            .iter()
            .enumerate()
            .flat_map(move |(i, sample)| {
                let at = x.position(*sample);
                [
                    Some((at, y.position(i as f64 / sent))),
                    Some((at, y.position((i + 1) as f64 / sent))),
                ]
            })
    }
}

const TOP: f64 = 14.0;
const BOTTOM: f64 = 252.0;
const LEFT: f64 = 56.0;
/// Right of the plot.
const MARGIN: f64 = 20.0;
/// Under the plot stand a sample of each line, the name of the curve and two numbers, which end here.
const LEGEND_TOP: f64 = 318.0;
const LEGEND_NAME: f64 = 84.0;
const LEGEND_P50: f64 = 284.0;
const LEGEND_P95: f64 = 354.0;

/// The chart; `None` when there is nothing to draw.
pub(crate) fn render(curves: &[Curve]) -> Option<Drawing> {
    (!curves.is_empty()).then(|| Drawing::of(|width| draw(curves, width).unwrap_or_default()))
}

fn draw(curves: &[Curve], width: Width) -> Option<String> {
    let ends = |pick: fn(&[f64]) -> Option<&f64>| {
        curves
            .iter()
            .filter_map(move |c| pick(&c.samples_s).copied())
    };
    let low = ends(|s| s.first()).reduce(f64::min)?;
    let high = ends(|s| s.last()).reduce(f64::max)?;
    let right = width.units() - MARGIN;
    let x = Axis::logarithmic((low, high), (LEFT, right));
    let y = Axis::linear((0.0, 1.0), (BOTTOM, TOP));

    let mut canvas = Canvas::new(width);
    for tick in y.ticks(5, 100.0) {
        canvas.rule("grid", (LEFT, tick.position), (right, tick.position));
        canvas.text(
            "tick",
            (LEFT - 8.0, tick.position + 4.0),
            Anchor::End,
            &format!("{} %", tick.label),
        );
    }
    for tick in x.ticks(width.ticks(), 1e3) {
        canvas.rule("grid", (tick.position, TOP), (tick.position, BOTTOM));
        canvas.text(
            "tick",
            (tick.position, BOTTOM + 18.0),
            Anchor::Middle,
            &tick.label,
        );
    }
    canvas.rule("axis", (LEFT, BOTTOM), (right, BOTTOM));
    canvas.text(
        "tick",
        ((LEFT + right) / 2.0, BOTTOM + 38.0),
        Anchor::Middle,
        "round-trip time, ms (logarithmic)",
    );
    for curve in curves {
        let dashed = if curve.dashed { " before" } else { "" };
        canvas.path(
            &format!("line {}{dashed}", curve.class),
            &polyline::path(curve.steps(&x, &y)),
        );
    }
    let bottom = legend(&mut canvas, curves);
    Some(canvas.finish(
        bottom + 10.0,
        "Share of probes answered within a time, one curve for each phase",
    ))
}

/// Returns where it ends.
fn legend(canvas: &mut Canvas, curves: &[Curve]) -> f64 {
    canvas.text("tick", (LEGEND_P50, LEGEND_TOP), Anchor::End, "median");
    canvas.text("tick", (LEGEND_P95, LEGEND_TOP), Anchor::End, "95 %");
    let mut y = LEGEND_TOP;
    for curve in curves {
        y += LEGEND_LINE;
        let dashed = if curve.dashed { " before" } else { "" };
        canvas.rule(
            &format!("line {}{dashed}", curve.class),
            (LEFT, y - 4.0),
            (LEGEND_NAME - 6.0, y - 4.0),
        );
        canvas.text("label", (LEGEND_NAME, y), Anchor::Start, &curve.label);
        for (right, p) in [(LEGEND_P50, 0.5), (LEGEND_P95, 0.95)] {
            let text = curve.quantile(p).map_or_else(String::new, number::seconds);
            canvas.text("label", (right, y), Anchor::End, &text);
        }
    }
    y
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn losses_keep_a_curve_below_the_top() {
        let curve = Curve::new(
            "idle".into(),
            "idle",
            false,
            &[Some(0.010), Some(0.020), None, None],
        )
        .unwrap();
        let (x, y) = (
            Axis::linear((0.0, 1.0), (0.0, 1.0)),
            Axis::linear((0.0, 1.0), (0.0, 1.0)),
        );
        let top = curve
            .steps(&x, &y)
            .flatten()
            .map(|(_, y)| y)
            .fold(0.0, f64::max);
        assert_eq!(top, 0.5);
        assert!(Curve::new("none".into(), "idle", false, &[None]).is_none());
    }

    proptest! {
        #[test]
        fn any_samples_draw(bits in proptest::collection::vec(proptest::option::of(any::<u64>()), 0..200)) {
            let values: Vec<_> = bits.into_iter().map(|b| b.map(f64::from_bits)).collect();
            if let Some(curve) = Curve::new("<&>".into(), "up", true, &values) {
                let svg = render(&[curve]).unwrap().both();
                prop_assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<&>"));
            }
        }
    }
}
