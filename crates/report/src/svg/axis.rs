//! Axes: where a value stands, and the round numbers at which lines are drawn (1, 2 or 5 times a
//! power of ten).

/// Values beyond this stand at the edge: far above any rate or time of a path, and small enough
/// that sums and products of a few stay finite.
const LARGEST: f64 = 1e15;

/// The shortest time that a logarithmic axis shows: below the resolution of any probe.
const SMALLEST_LOG: f64 = 1e-7;

/// Maps values to positions along one direction of a chart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

/// A value with a line and a label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) position: f64,
    pub(crate) label: String,
}

/// A value that can be drawn, or none.
pub(crate) fn drawable(value: f64) -> Option<f64> {
    (!value.is_nan()).then(|| value.clamp(-LARGEST, LARGEST))
}

impl Axis {
    /// From `low` to `high` evenly.
    pub(crate) fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let low = drawable(low).unwrap_or(0.0);
        let high = drawable(high)
            .filter(|high| *high > low)
            .unwrap_or(low + 1.0);
        Self {
            low,
            high,
            from,
            to,
            logarithmic: false,
        }
    }

    /// From 0 to the round number at or above `high`, in about `count` steps.
    pub(crate) fn from_zero(high: f64, count: usize, range: (f64, f64)) -> Self {
        let high = drawable(high).filter(|high| *high > 0.0).unwrap_or(1.0);
        let step = nice_step(high, count);
        Self::linear((0.0, (high / step).ceil() * step), range)
    }

    /// From `low` to `high` by their logarithms, widened to round numbers.
    pub(crate) fn logarithmic((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let low = drawable(low).unwrap_or(1.0).max(SMALLEST_LOG);
        let high = drawable(high).unwrap_or(1.0).max(low);
        let (low, high) = (round_down(low), round_up(high));
        // A single value still needs an axis around it.
        let high = if high > low { high } else { low * 10.0 };
        Self {
            low,
            high,
            from,
            to,
            logarithmic: true,
        }
    }

    /// Whether the axis reaches so far.
    pub(crate) fn holds(&self, value: f64) -> bool {
        value <= self.high
    }

    /// Where a value stands; what lies outside stands at the edge.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(SMALLEST_LOG).ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let share = if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        };
        self.from + share * (self.to - self.from)
    }

    /// The round numbers on the axis, about `count`, labelled after multiplication by `factor`.
    pub(crate) fn ticks(&self, count: usize, factor: f64) -> Vec<Tick> {
        // Within less than a decade, even steps name more of the axis.
        let values = if self.logarithmic && self.high > self.low * 9.0 {
            self.decades(count)
        } else {
            self.steps(count)
        };
        values
            .into_iter()
            .map(|value| Tick {
                position: self.position(value),
                label: label(value * factor),
            })
            .collect()
    }

    fn steps(&self, count: usize) -> Vec<f64> {
        let step = nice_step(self.high - self.low, count);
        let first = (self.low / step).ceil();
        // One more than fits, for the rounding; the filter takes it away where it does not.
        let ticks = (0..=count * 3).map(|i| (first + i as f64) * step);
        ticks
            .filter(|value| *value <= self.high + step * 1e-6)
            .collect()
    }

    fn decades(&self, count: usize) -> Vec<f64> {
        let (from, to) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        let each = |multiples: &'static [f64]| -> Vec<f64> {
            let all =
                (from..=to).flat_map(|power| multiples.iter().map(move |m| m * 10f64.powi(power)));
            all.filter(|v| *v >= self.low * (1.0 - 1e-9) && *v <= self.high * (1.0 + 1e-9))
                .collect()
        };
        let fine = each(&[1.0, 2.0, 5.0]);
        if fine.len() <= count {
            fine
        } else {
            each(&[1.0])
        }
    }
}

/// The step of 1, 2 or 5 times a power of ten that divides `span` into at most `count`.
fn nice_step(span: f64, count: usize) -> f64 {
    let rough = (span / count.max(1) as f64).max(f64::MIN_POSITIVE * 1e10);
    let power = 10f64.powf(rough.log10().floor());
    // A hair of tolerance, so that a span of exactly five steps gets five.
    let multiple = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|m| m * power >= rough * (1.0 - 1e-9))
        .unwrap_or(10.0);
    multiple * power
}

fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|m| m * power)
        .find(|v| *v <= value * (1.0 + 1e-9))
        .unwrap_or(power)
}

fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|m| m * power)
        .find(|v| *v >= value * (1.0 - 1e-9))
        .unwrap_or(power * 10.0)
}

/// A round number without digits that say nothing.
fn label(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if (1e-4..1e7).contains(&v) => {
            let text = format!("{value:.6}");
            text.trim_end_matches('0')
                .trim_end_matches('.')
                .replacen('-', "−", 1)
        }
        _ => format!("{value:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    fn labels(axis: &Axis, count: usize, factor: f64) -> Vec<String> {
        axis.ticks(count, factor)
            .into_iter()
            .map(|tick| tick.label)
            .collect()
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::from_zero(0.706, 4, (200.0, 0.0));
        assert_eq!(labels(&axis, 4, 1e3), ["0", "200", "400", "600", "800"]);
        assert_eq!(
            (axis.position(0.0), axis.position(0.8), axis.position(9.0)),
            (200.0, 0.0, 0.0)
        );
        let axis = Axis::logarithmic((0.0179, 0.706), (0.0, 100.0));
        assert_eq!(
            labels(&axis, 8, 1e3),
            ["10", "20", "50", "100", "200", "500", "1000"]
        );
        assert!((axis.position(0.1) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn a_narrow_logarithmic_axis_has_even_steps() {
        let axis = Axis::logarithmic((0.0179, 0.0192), (0.0, 100.0));
        assert_eq!(labels(&axis, 6, 1e3), ["10", "12", "14", "16", "18", "20"]);
    }

    proptest! {
        #[test]
        fn any_range_has_an_axis(low in any::<u64>(), high in any::<u64>(), value in any::<u64>(), count in 1usize..12) {
            let [low, high, value] = [low, high, value].map(f64::from_bits);
            for axis in [
                Axis::linear((low, high), (0.0, 500.0)),
                Axis::from_zero(high, count, (500.0, 0.0)),
                Axis::logarithmic((low, high), (0.0, 500.0)),
            ] {
                prop_assert!((0.0..=500.0).contains(&axis.position(value)));
                let ticks = axis.ticks(count, 1e3);
                prop_assert!(ticks.len() <= 3 * count + 30, "{}", ticks.len());
                for tick in ticks {
                    prop_assert!(tick.position.is_finite() && tick.label.len() < 24, "{tick:?}");
                }
            }
        }
    }
}
