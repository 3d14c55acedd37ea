//! Columns of bins as series to be drawn.

use plumb_model::series::{Series, Unit};

/// Points of a rate, each the mean of as many bins as that takes: finer ones show bursts, not a rate.
const POINTS: usize = 100;

/// Values that hold until the next one, each at the end of its bin; those beyond `limit` are left out.
pub(super) fn held(values: &[Option<u64>], bin_s: f64, limit: f64) -> Series {
    let mut series = Series::new(Unit::Bytes);
    let mut last = None;
    for (bin, value) in values.iter().enumerate() {
        last = value.or(last);
        if let Some(last) = last {
            let value = Some(last as f64).filter(|value| *value <= limit);
            series.push((bin + 1) as f64 * bin_s, value);
        }
    }
    series
}

/// Values at the middle of their bins, one line through those that there are; those beyond `limit` are left out.
pub(super) fn sparse(
    values: impl IntoIterator<Item = Option<f64>>,
    unit: Unit,
    bin_s: f64,
    limit: f64,
) -> Series {
    let mut series = Series::new(unit);
    for (bin, value) in values.into_iter().enumerate() {
        if let Some(value) = value {
            let at_s = (bin as f64 + 0.5) * bin_s;
            series.push(at_s, Some(value).filter(|value| *value <= limit));
        }
    }
    series
}

/// What came a second, multiplied by `factor`.
pub(super) fn rates(values: &[u64], bin_s: f64, factor: f64) -> Series {
    let mut series = Series::new(Unit::Count);
    let each = values.len().div_ceil(POINTS).max(1);
    for (index, bins) in values.chunks(each).enumerate() {
        let length_s = bins.len() as f64 * bin_s;
        let sum = bins
            .iter()
            .fold(0_u64, |sum, value| sum.saturating_add(*value));
        let begin_s = (index * each) as f64 * bin_s;
        let middle_s = begin_s + length_s / 2.0;
        series.push(middle_s, Some(sum as f64 * factor / length_s));
    }
    series
}

/// The largest value of several series.
pub(super) fn largest<'a>(series: impl IntoIterator<Item = &'a Series>) -> f64 {
    let values = series.into_iter().flat_map(Series::points);
    values.map(|(_, value)| value).fold(0.0, f64::max)
}

/// The points of a series at whose bins something was counted: the series has a value for each bin up to its end.
pub(super) fn marked(counts: &[u64], series: &Series) -> Vec<(f64, f64)> {
    let missing = counts.len().saturating_sub(series.t_s.len());
    let points = series.t_s.iter().zip(&series.values);
    let counted = counts.iter().skip(missing).zip(points);
    counted
        .filter(|(count, _)| **count > 0)
        .filter_map(|(_, (t, value))| Some((*t, (*value)?)))
        .collect()
}

/// What to multiply values by that reach so far, and how that is called in front of their unit.
pub(super) fn prefix(largest: f64) -> (f64, &'static str) {
    match largest {
        v if v >= 1e9 => (1e-9, "billion "),
        v if v >= 1e6 => (1e-6, "million "),
        v if v >= 1e4 => (1e-3, "thousand "),
        _ => (1.0, ""),
    }
}
