//! The largest flows over time: rates above each other, and all others at the top.

use std::fmt::Write as _;

use super::words::{escaped, moment};
use crate::flows::table::Top;
use crate::unit::Unit;

/// Of the drawing, in its own units, which the page scales.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 240.0;
/// Room for the words of the axis at the left, and of the axis of time.
const LEFT: f64 = 80.0;
const TIMES: f64 = 20.0;
/// A line of the legend.
const LINE: f64 = 18.0;

/// Colours of Okabe and Ito's palette, which the colour-blind distinguish; the last one is of all others.
const COLOURS: [&str; 7] = [
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#999999",
];

/// Draws windows of `window_s` seconds from `from_s` to `to_s`: the largest of `all`, and the rest as others.
pub(super) fn stacked(
    windows: &[(i64, Top)],
    all: &Top,
    window_s: i64,
    (from_s, to_s): (i64, i64),
) -> String {
    let Some((others, colours)) = COLOURS.split_last() else {
        return String::new();
    };
    let keys = all.rows.iter().map(|row| row.key.as_str());
    let keys: Vec<(&str, &str)> = keys.zip(colours.iter().copied()).collect();
    let bps = |bytes: f64| bytes * 8.0 / window_s as f64;
    let total = |top: &Top| {
        let rows = top.rows.iter().map(|row| row.sums.bytes);
        rows.sum::<f64>() + top.others.bytes
    };
    let highest = windows.iter().map(|(_, top)| bps(total(top)));
    let highest = highest.fold(1.0, f64::max) * 1.05;
    let height = HEIGHT + TIMES + LINE * (keys.len() + 1) as f64;
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"rates of the largest flows over time\">\
         <line x1=\"{LEFT}\" x2=\"{LEFT}\" y1=\"0\" y2=\"{HEIGHT}\" stroke=\"var(--rule)\"/>\
         <line x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{HEIGHT}\" y2=\"{HEIGHT}\" stroke=\"var(--rule)\"/>\
         <text x=\"0\" y=\"12\">{}</text><text x=\"0\" y=\"{HEIGHT}\">0</text>",
        Unit::BitsPerSecond.words(highest),
    );
    let span_s = (to_s - from_s).max(1) as f64;
    let x = |at_s: i64| LEFT + (at_s - from_s).max(0) as f64 / span_s * (WIDTH - LEFT);
    for (at_s, top) in windows {
        let (left, right) = (x(*at_s), x((at_s + window_s).min(to_s)));
        let mut below = 0.0;
        let mut part = |colour: &str, bytes: f64| {
            let tall = bps(bytes) / highest * HEIGHT;
            below += tall;
            if tall > 0.0 {
                // Writing to text does not fail.
                let _ = write!(
                    out,
                    "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\" fill=\"{colour}\"/>",
                    HEIGHT - below,
                    (right - left).max(0.5),
                );
            }
        };
        let mut rest = total(top);
        for (key, colour) in &keys {
            let row = top.rows.iter().find(|row| row.key == *key);
            let bytes = row.map_or(0.0, |row| row.sums.bytes);
            part(colour, bytes);
            rest -= bytes;
        }
        part(others, rest);
    }
    for (at_s, anchor) in [(from_s, "start"), (to_s, "end")] {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            x(at_s),
            HEIGHT + TIMES - 4.0,
            moment(at_s.saturating_mul(1_000_000)),
        );
    }
    let legend = keys.iter().copied().chain([("others", *others)]);
    for (number, (key, colour)) in legend.enumerate() {
        let y = HEIGHT + TIMES + LINE * (number + 1) as f64;
        let _ = write!(
            out,
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{colour}\"/><text x=\"{}\" y=\"{y:.1}\">{}</text>",
            y - 11.0,
            LEFT + 18.0,
            escaped(key),
        );
    }
    out + "</svg>\n"
}
