//! Where an axis of times or rates ends: what matters is to be seen, and a few values far beyond it are not to press it flat.

use plumb_model::distribution::quantile_of_sorted;

/// Of each series of times so much is always on the axis.
pub(crate) const OF_TIMES: f64 = 0.99;

/// The same of rates, which burst where a receiver is given all that waited for one lost segment.
pub(crate) const OF_RATES: f64 = 0.95;

/// How far above that the axis ends where more is cut off.
const ROOM: f64 = 1.2;

/// The end of the axis for these series: the greatest value, or where it lies far beyond that percentile of every
/// series, a fifth above the greatest of those.
pub(crate) fn end(series: impl IntoIterator<Item = Vec<f64>>, percentile: f64) -> Option<f64> {
    let ends = series.into_iter().filter_map(|mut values| {
        values.sort_by(f64::total_cmp);
        Some((quantile_of_sorted(&values, percentile)?, *values.last()?))
    });
    let (shown, greatest) = ends.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)))?;
    let end = ROOM * shown;
    Some(if shown > 0.0 && greatest > end {
        end
    } else {
        greatest
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_far_values_are_cut_off_and_a_short_phase_is_not() {
        let idle = || vec![0.02; 1000];
        let mut with_one = idle();
        with_one.push(2.1);
        assert_eq!(end([with_one], OF_TIMES), Some(0.02 * ROOM));
        // A loaded phase of few probes is what the chart is for.
        assert_eq!(end([idle(), vec![0.7; 20]], OF_TIMES), Some(0.7));
        // Nearly as high as the others: nothing is won by cutting it off.
        assert_eq!(end([vec![0.02, 0.021, 0.022]], OF_TIMES), Some(0.022));
        assert_eq!(end([Vec::new()], OF_TIMES), None);
        assert_eq!(end([vec![-0.2, -0.1]], OF_TIMES), Some(-0.1));
    }
}
