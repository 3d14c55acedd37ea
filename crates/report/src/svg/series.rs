//! Values over time, a line for each of a few series, with marks where something happened.

use plumb_model::series::Series;

use super::axis::{Axis, drawable};
use super::canvas::{Anchor, Canvas, Drawing, Width};
use super::{limit, polyline};
use crate::number;

pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    /// Class of its colour.
    pub(crate) colour: &'static str,
    /// Its values over time.
    pub(crate) values: &'a Series,
}

/// How the axis of the values is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// By their logarithms, for what may differ a hundredfold.
    Logarithmic,
    /// Evenly, between the least and the greatest; also below zero.
    Even,
    /// Evenly from zero, so far that nothing is cut off.
    FromZero,
}

/// Points at which something happened.
pub(crate) struct Marks<'a> {
    pub(crate) name: &'a str,
    /// Class of their colour.
    pub(crate) colour: &'static str,
    pub(crate) at: Vec<(f64, f64)>,
}

/// How values are written.
#[derive(Clone, Copy)]
pub(crate) struct Written {
    /// What they are multiplied by at the axis.
    pub(crate) factor: f64,
    /// One of them in words, with its unit.
    pub(crate) words: fn(f64) -> String,
}

impl Written {
    /// Times in seconds, as milliseconds.
    pub(crate) const TIMES: Self = Self {
        factor: 1e3,
        words: number::seconds,
    };
}

/// What the chart is of.
pub(crate) struct Subject<'a> {
    /// Under the axis of time, the unit included.
    pub(crate) title: &'a str,
    /// In words, for who does not see it.
    pub(crate) description: &'a str,
    pub(crate) scale: Scale,
    pub(crate) written: Written,
}

const HEIGHT: f64 = 240.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 192.0;
const LEFT: f64 = 56.0;
/// Right of the plot.
const MARGIN: f64 = 12.0;

/// The chart; `None` when there is nothing to draw.
pub(crate) fn render(subject: &Subject<'_>, lines: &[Line<'_>]) -> Option<Drawing> {
    render_marked(subject, lines, &[])
}

/// The same with marks on it.
pub(crate) fn render_marked(
    subject: &Subject<'_>,
    lines: &[Line<'_>],
    marks: &[Marks<'_>],
) -> Option<Drawing> {
    let mut points = lines.iter().flat_map(|line| line.values.points());
    let any = points.any(|(t, v)| drawable(t).is_some() && drawable(v).is_some());
    any.then(|| Drawing::of(|width| draw(subject, lines, marks, width).unwrap_or_default()))
}

fn draw(
    subject: &Subject<'_>,
    lines: &[Line<'_>],
    marks: &[Marks<'_>],
    width: Width,
) -> Option<String> {
    let values = || {
        let series = lines.iter().flat_map(|line| line.values.points());
        series.filter_map(|(t, v)| Some((drawable(t)?, drawable(v)?)))
    };
    let low = values().map(|(_, v)| v).reduce(f64::min)?;
    let of_line = |line: &Line<'_>| {
        line.values
            .points()
            .filter_map(|(_, v)| drawable(v))
            .collect()
    };
    let high = match subject.scale {
        Scale::Logarithmic | Scale::FromZero => values().map(|(_, v)| v).reduce(f64::max)?,
        Scale::Even => limit::end(lines.iter().map(of_line), limit::OF_TIMES)?.max(low),
    };
    let end = values().map(|(t, _)| t).reduce(f64::max)?;
    let right = width.units() - MARGIN;
    let x = Axis::linear((0.0, end), (LEFT, right));
    let y = match subject.scale {
        Scale::Logarithmic => Axis::logarithmic((low, high), (BOTTOM, TOP)),
        Scale::FromZero => Axis::from_zero(high, 6, (BOTTOM, TOP)),
        // A little room, so that the least and the greatest are not on the edge.
        Scale::Even => {
            let room = ((high - low) * 0.05).max(high.abs() * 0.01);
            Axis::linear((low - room, high + room), (BOTTOM, TOP))
        }
    };
    let mut canvas = Canvas::new(width);
    for tick in y.ticks(6, subject.written.factor) {
        canvas.rule("grid", (LEFT, tick.position), (right, tick.position));
        let at = (LEFT - 8.0, tick.position + 4.0);
        canvas.text("tick", at, Anchor::End, &tick.label);
    }
    for tick in x.ticks(width.ticks(), 1.0) {
        let at = (tick.position, BOTTOM + 18.0);
        canvas.text("tick", at, Anchor::Middle, &tick.label);
    }
    canvas.rule("axis", (LEFT, BOTTOM), (right, BOTTOM));
    let middle = ((LEFT + right) / 2.0, BOTTOM + 38.0);
    canvas.text("tick", middle, Anchor::Middle, subject.title);
    let mut beyond: Vec<f64> = Vec::new();
    for class in lines {
        let series = class.values;
        let points = series.t_s.iter().zip(&series.values).map(|(t, v)| {
            let (t, v) = (drawable(*t)?, drawable((*v)?)?);
            Some((x.position(t), y.position(v)))
        });
        let colour = format!("line {}", class.colour);
        canvas.path(&colour, &polyline::path(points));
        for (t, value) in series.points().filter(|(_, value)| !y.holds(*value)) {
            beyond.push(value);
            canvas.beyond((x.position(t), TOP));
        }
    }
    draw_marks(&mut canvas, marks, &x, &y);
    let mut names: Vec<(String, String)> = lines
        .iter()
        .map(|line| (line.colour.to_owned(), line.name.to_owned()))
        .collect();
    let there = marks.iter().filter(|marks| !marks.at.is_empty());
    names.extend(there.map(|marks| (marks.colour.to_owned(), marks.name.to_owned())));
    if let Some(most) = beyond.iter().copied().reduce(f64::max) {
        let text = format!(
            "{} beyond the top, up to {}",
            beyond.len(),
            (subject.written.words)(most)
        );
        names.push(("cut".to_owned(), text));
    }
    let bottom = canvas.legend((LEFT, HEIGHT + 6.0), right, &names);
    Some(canvas.finish(bottom + 10.0, subject.description))
}

/// A stroke for each column of pixels in which there is a mark.
fn draw_marks(canvas: &mut Canvas, marks: &[Marks<'_>], x: &Axis, y: &Axis) {
    /// Half of its length.
    const REACH: f64 = 5.0;
    for marks in marks {
        let class = format!("line {}", marks.colour);
        let mut last = f64::NEG_INFINITY;
        for (t, value) in &marks.at {
            let (at, height) = (x.position(*t).floor(), y.position(*value));
            if at != last {
                canvas.rule(&class, (at, height - REACH), (at, height + REACH));
                last = at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::series::Unit;

    #[test]
    fn each_class_has_its_line_and_what_was_lost_breaks_it() {
        let series = |lost: bool| {
            let mut series = Series::new(Unit::Seconds);
            for k in 0..100 {
                let value = 0.02 + f64::from(k) / 1e3;
                series.push(f64::from(k), (!lost || k % 2 == 0).then_some(value));
            }
            series
        };
        let (whole, broken) = (series(false), series(true));
        let line = |name, colour, values| Line {
            name,
            colour,
            values,
        };
        let subject = Subject {
            title: "time",
            description: "a chart",
            scale: Scale::Logarithmic,
            written: Written::TIMES,
        };
        let svg = render(
            &subject,
            &[line("EF", "up", &whole), line("<BK>", "idle", &broken)],
        )
        .unwrap();
        let svg = svg.wide;
        assert_eq!(svg.matches("<path").count(), 2);
        assert!(svg.contains("&lt;BK&gt;") && !svg.contains("<BK>"));
        // Fifty dots and one line.
        assert_eq!(svg.matches("h0").count(), 51);
        assert_eq!(render(&subject, &[]), None);
        let nothing = Series::new(Unit::Seconds);
        assert_eq!(render(&subject, &[line("EF", "up", &nothing)]), None);
        // An even axis also shows what is below zero, with its own labels.
        let even = Subject {
            scale: Scale::Even,
            ..subject
        };
        let mut negative = Series::new(Unit::Seconds);
        negative.push(0.0, Some(-0.002));
        negative.push(1.0, Some(0.002));
        let svg = render(&even, &[line("there", "up", &negative)])
            .unwrap()
            .wide;
        assert!(
            svg.contains(">-2<") || svg.contains(">−2<") || svg.contains(">-1<"),
            "{svg}"
        );
    }
}
