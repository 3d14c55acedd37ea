//! The commands of xplot that graphs are drawn with.

use std::fmt::{Display, Write as _};

const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_US: u64 = 1000;

/// A time since 1970, as xplot reads it: to the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Time(pub(super) u64);

impl Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}.{:06}",
            self.0 / NS_PER_S,
            self.0 % NS_PER_S / NS_PER_US
        )
    }
}

/// What a file begins with.
pub(super) fn head(title: &str, axis: &str) -> String {
    format!("timeval double\ntitle\n{title}\nxlabel\ntime\nylabel\n{axis}\n")
}

/// The colour of what comes next.
pub(super) fn colour(text: &mut String, name: &str) {
    text.push_str(name);
    text.push('\n');
}

/// A mark at a point: `dot`, `darrow`, `htick` and the like.
pub(super) fn mark(text: &mut String, what: &str, at: Time, value: impl Display) {
    // Writing to a String does not fail.
    let _ = writeln!(text, "{what} {at} {value}");
}

/// Words above a point.
pub(super) fn words(text: &mut String, at: Time, value: impl Display, words: &str) {
    let _ = writeln!(text, "atext {at} {value}\n{words}");
}

/// A line between two points.
pub(super) fn line<V: Display>(text: &mut String, (from, low): (Time, V), (to, high): (Time, V)) {
    let _ = writeln!(text, "line {from} {low} {to} {high}");
}
