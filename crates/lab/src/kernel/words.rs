//! How tc takes its arguments.

use std::time::Duration;

/// A time for tc, whose shortest unit is the microsecond, with a fraction where there is one.
pub(super) fn micros(time: Duration) -> String {
    format!("{}us", time.as_nanos() as f64 / 1e3)
}

pub(super) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
