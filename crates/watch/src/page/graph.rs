//! The smoke graph: the median as a line, 5 % to 95 % shaded, loss in a colour of its own.

use std::fmt::Write as _;

use super::words::{moment, percent};
use crate::distribution::{Distribution, Times};
use crate::unit::Unit;

/// Of the drawing, in its own units, which the page scales.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
/// Room for the words of the axis at the left and for loss at the bottom.
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 24.0;
/// Room for the words of the axis of time.
const TIMES: f64 = 16.0;

/// A time of day in UTC to the minute.
fn minute(at_s: i64) -> String {
    let moment = moment(at_s.saturating_mul(1_000_000));
    let minute = moment.get(..16).unwrap_or(&moment);
    minute.replace('T', " ")
}

/// Where the axis of values begins and ends: it has zero.
fn limits(values: impl Iterator<Item = Times>, unit: Unit) -> (f64, f64) {
    // Of times a millisecond, so that a quiet line is not drawn as noise.
    let least = match unit {
        Unit::Seconds => 0.001,
        _ => f64::MIN_POSITIVE,
    };
    let (lowest, highest) = values.fold((0.0_f64, least), |(lowest, highest), values| {
        (lowest.min(values.p5_s), highest.max(values.p95_s))
    });
    match highest - lowest > least || unit == Unit::Seconds {
        true => (lowest * 1.1, highest * 1.1),
        false => (0.0, 1.0),
    }
}

/// Draws windows of `window_s` seconds from `from_s` to `to_s`.
pub(super) fn smoke(
    windows: &[(i64, Distribution)],
    window_s: i64,
    (from_s, to_s): (i64, i64),
    unit: Unit,
) -> String {
    let values = || windows.iter().filter_map(|(_, seen)| seen.times);
    let (lowest, highest) = limits(values(), unit);
    let span_s = (to_s - from_s).max(1) as f64;
    let x = |at_s: i64| LEFT + (at_s - from_s).max(0) as f64 / span_s * (WIDTH - LEFT);
    let y = |value: f64| (HEIGHT - BOTTOM) * (1.0 - (value - lowest) / (highest - lowest));
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {3}\" role=\"img\" aria-label=\"median, 5 % to 95 %, and loss\">\
         <line x1=\"{LEFT}\" x2=\"{LEFT}\" y1=\"0\" y2=\"{0}\" stroke=\"var(--rule)\"/>\
         <line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{0}\" y2=\"{0}\" stroke=\"var(--rule)\"/>\
         <text x=\"0\" y=\"12\">{1}</text><text x=\"0\" y=\"{0}\">{4}</text>\
         <text x=\"0\" y=\"{2}\">loss</text>",
        HEIGHT - BOTTOM,
        unit.words(highest),
        HEIGHT - 6.0,
        HEIGHT + TIMES,
        unit.words(lowest),
    );
    let middle_s = from_s + (to_s - from_s) / 2;
    for (at_s, anchor) in [(from_s, "start"), (middle_s, "middle"), (to_s, "end")] {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            x(at_s),
            HEIGHT + TIMES - 4.0,
            minute(at_s),
        );
    }
    for (at_s, seen) in windows {
        let (left, right) = (x(*at_s), x((at_s + window_s).min(to_s)));
        let wide = (right - left).max(1.0);
        if let Some(times) = seen.times {
            let (top, low, middle) = (y(times.p95_s), y(times.p5_s), y(times.p50_s));
            // Writing to text does not fail.
            let _ = write!(
                out,
                "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{:.1}\" fill=\"var(--soft)\" opacity=\".5\"/>\
                 <rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"2\" fill=\"var(--line)\"/>",
                (low - top).max(1.0),
                middle - 1.0,
            );
        }
        if let Some(lost) = seen.loss_ratio().filter(|lost| *lost > 0.0) {
            let _ = write!(
                out,
                "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{:.1}\" fill=\"var(--loss)\"><title>{} lost</title></rect>",
                HEIGHT - BOTTOM + 2.0,
                4.0 + 16.0 * lost,
                percent(lost),
            );
        }
    }
    out += "</svg>\n";
    out
}
