//! Shares of a whole in words.

/// A share of packets or of time, to the digits that people compare.
pub(crate) fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    match percent {
        p if p >= 10.0 => format!("{p:.0} %"),
        p if p >= 0.1 || p == 0.0 => format!("{p:.1} %"),
        p => format!("{p:.2} %"),
    }
}
