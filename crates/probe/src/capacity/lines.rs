//! Rates of lines, from how round trips to hops grow with size: the slope of a hop minus the slope of the hop before it
//! is the time that the line between takes for a byte.
//!
//! Errors add up, so a fast line behind slow or noisy ones cannot be distinguished from no line at all. A rate that
//! cannot be determined is bounded: nothing is guessed.

use plumb_model::results::capacity::{Doubt, RateEstimate, RateStatus};

use super::fit::{Fit, Value};

/// Standard errors within which a value is taken to lie: 99.95 % of a normal distribution, and 99.7 % where
/// errors are known from sixteen samples (Student's distribution).
const SIGMAS: f64 = 3.5;

/// A rate is given where both its bounds are this close to it.
const TOLERANCE: f64 = 0.1;

/// A line's share of the slope that is not the line's, at most, seconds a byte: hosts and routers take
/// each byte over a bus and copy it, at some 4 Gbit/s in the slowest (one lane of PCI Express 1.1, and
/// memory). It makes lines seem slower, never faster.
const HANDLING_S: f64 = 2e-9;

/// No rate is given for a line faster than this, for the error of its handling alone exceeds the tolerance: once it is
/// known to be faster, more probes are of no use.
const CEILING_BPS: f64 = 8.0 * TOLERANCE / HANDLING_S;

/// What is known of the line, or the lines, before a hop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineFigures {
    /// How many lines: more than one where hops between have no figures; none without figures.
    pub lines: u8,
    pub rate: RateEstimate,
    pub back: Option<RateEstimate>,
    /// Round trip of the line and what it may be off by, seconds.
    pub latency_s: Option<(f64, f64)>,
    /// Which hop was the nearer end, 0 for this host; `None` without figures.
    pub nearer: Option<usize>,
    /// Whether more probes could narrow the bounds.
    pub open: bool,
}

/// The lines before each of the hops, whose fits are given from the first hop on.
pub fn lines(fits: &[Option<Fit>]) -> Vec<LineFigures> {
    (0..fits.len())
        .map(|index| {
            let Some(Some(fit)) = fits.get(index) else {
                return LineFigures {
                    rate: unknown(Doubt::FewAnswers),
                    open: true,
                    ..LineFigures::default()
                };
            };
            let nearer = fits.iter().enumerate().take(index).rev();
            let nearer = nearer
                .filter_map(|(at, fit)| Some((at + 1, (*fit)?)))
                .find(|(_, nearer)| fit.both_ways || !nearer.both_ways);
            let (at, nearer) = nearer.map_or((0, None), |(at, fit)| (at, Some(fit)));
            figures(index + 1 - at, at, nearer.as_ref(), fit)
        })
        .collect()
}

fn unknown(doubt: Doubt) -> RateEstimate {
    RateEstimate {
        doubts: vec![doubt],
        ..RateEstimate::default()
    }
}

fn figures(count: usize, at: usize, nearer: Option<&Fit>, fit: &Fit) -> LineFigures {
    let handling_s = HANDLING_S * count as f64;
    let mut rate = estimate(less(fit.forward, nearer.map(|n| n.forward)), handling_s);
    let mut open = rate.status != RateStatus::Measured
        && rate
            .at_least_bps
            .is_none_or(|bps| bps < CEILING_BPS / count as f64);
    if fit.both_ways {
        only_least(&mut rate, Doubt::BothWays);
        // Twice the time at most is of the reverse path.
        open = false;
    }
    if count > 1 {
        only_least(&mut rate, Doubt::SeveralLines);
    }
    let back = match (fit.back, nearer.map(|nearer| nearer.back)) {
        (Some(back), None) => Some(estimate(back, handling_s)),
        (Some(back), Some(Some(nearer))) => Some(estimate(less(back, Some(nearer)), handling_s)),
        _ => None,
    };
    let back = back.map(|mut back| {
        if count > 1 {
            only_least(&mut back, Doubt::SeveralLines);
        }
        back
    });
    let alike = nearer.is_none_or(|nearer| nearer.back.is_some() == fit.back.is_some());
    let latency = less(fit.base, nearer.map(|n| n.base));
    LineFigures {
        lines: u8::try_from(count).unwrap_or(u8::MAX),
        rate,
        back,
        latency_s: alike.then_some((latency.value, SIGMAS * latency.error)),
        nearer: Some(at),
        open,
    }
}

fn less(value: Value, other: Option<Value>) -> Value {
    other.map_or(value, |other| Value {
        value: value.value - other.value,
        error: value.error.hypot(other.error),
    })
}

/// A line is at least as fast as several one after the other, and as both its ways together; how much
/// faster is not known.
fn only_least(rate: &mut RateEstimate, doubt: Doubt) {
    if rate.status == RateStatus::Measured {
        rate.status = RateStatus::Bounded;
    }
    rate.bps = None;
    rate.at_most_bps = None;
    if rate.at_least_bps.is_none() {
        rate.status = RateStatus::Unknown;
    }
    rate.doubts.push(doubt);
}

/// The rate of a line that takes so many seconds a byte, of which up to `handling_s` are not its own.
fn estimate(slope: Value, handling_s: f64) -> RateEstimate {
    let bps = |seconds_a_byte: f64| 8.0 / seconds_a_byte;
    let error = SIGMAS * slope.error;
    let (most, least) = (slope.value + error, slope.value - error - handling_s);
    if most <= 0.0 {
        return unknown(Doubt::Contradiction);
    }
    let (low, high) = (bps(most), (least > 0.0).then(|| bps(least)));
    let told = slope.value > 0.0 && {
        let rate = bps(slope.value);
        low >= rate * (1.0 - TOLERANCE) && high.is_some_and(|high| high <= rate * (1.0 + TOLERANCE))
    };
    RateEstimate {
        status: if told {
            RateStatus::Measured
        } else {
            RateStatus::Bounded
        },
        bps: told.then(|| bps(slope.value)),
        at_least_bps: Some(low),
        at_most_bps: high,
        doubts: if told {
            Vec::new()
        } else {
            vec![Doubt::Timing]
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    const NS: f64 = 1e-9;

    fn fit_of(slope_ns: f64, error_ns: f64) -> Option<Fit> {
        Some(Fit {
            forward: Value {
                value: slope_ns * NS,
                error: error_ns * NS,
            },
            back: None,
            base: Value {
                value: 0.01,
                error: 1e-6,
            },
            both_ways: false,
            part: (0.25, 0.75),
        })
    }

    #[test]
    fn differences_are_the_lines() {
        // 10 Mbit/s, 1 Mbit/s and 100 Mbit/s.
        let found = lines(&[fit_of(800.0, 1.0), fit_of(8800.0, 1.0), fit_of(8880.0, 1.0)]);
        let rates: Vec<_> = found.iter().map(|l| l.rate.bps.map(f64::round)).collect();
        assert_eq!(rates, [Some(1e7), Some(1e6), Some(1e8)]);
        assert!(found.iter().all(|l| l.lines == 1 && !l.open));
        // The same with errors that hide the fast one.
        let unsure = lines(&[fit_of(8800.0, 10.0), fit_of(8880.0, 10.0)]);
        let rate = &unsure[1].rate;
        assert_eq!((rate.status, rate.bps), (RateStatus::Bounded, None));
        assert!(rate.at_least_bps.unwrap() < 1e8 && rate.at_most_bps.unwrap() > 1e8);
        assert_eq!(
            (rate.doubts.as_slice(), unsure[1].open),
            ([Doubt::Timing].as_slice(), true)
        );
    }

    #[test]
    fn a_gigabit_is_beyond_what_handling_allows() {
        let found = lines(&[fit_of(8.0, 0.01)]);
        let rate = &found[0].rate;
        assert_eq!(
            (rate.status, rate.bps, found[0].open),
            (RateStatus::Bounded, None, false)
        );
        assert!(rate.at_least_bps.unwrap() > 9e8);
    }

    #[test]
    fn a_silent_hop_makes_one_of_two_lines() {
        let found = lines(&[fit_of(80.0, 0.1), None, fit_of(1680.0, 0.1)]);
        assert_eq!(
            (found[1].rate.status, found[1].lines),
            (RateStatus::Unknown, 0)
        );
        let both = &found[2];
        assert_eq!(
            (both.lines, both.rate.bps, both.rate.at_most_bps),
            (2, None, None)
        );
        assert!((both.rate.at_least_bps.unwrap() / 5e6 - 1.0).abs() < 0.01);
        assert!(both.rate.doubts.contains(&Doubt::SeveralLines));
    }

    #[test]
    fn what_grows_less_behind_contradicts() {
        let found = lines(&[fit_of(800.0, 1.0), fit_of(100.0, 1.0)]);
        assert_eq!(found[1].rate, unknown(Doubt::Contradiction));
    }

    #[test]
    fn both_ways_are_a_bound() {
        let mut far = fit_of(1600.0, 1.0).unwrap();
        far.both_ways = true;
        let found = lines(&[fit_of(0.1, 0.1), Some(far)]);
        assert_eq!((found[1].rate.bps, found[1].rate.at_most_bps), (None, None));
        assert!((found[1].rate.at_least_bps.unwrap() / 5e6 - 1.0).abs() < 0.01);
        // What is behind it is not measured against it.
        let found = lines(&[fit_of(800.0, 1.0), Some(far), fit_of(1600.0, 1.0)]);
        assert_eq!((found[2].lines, found[2].nearer), (2, Some(1)));
    }

    proptest! {
        #[test]
        fn any_fits_are_survived(values in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<bool>()), 0..20)) {
            let fits: Vec<_> = values
                .iter()
                .map(|(value, error, both_ways)| Some(Fit { both_ways: *both_ways, ..fit_of(*value, error.abs())? }))
                .collect();
            for line in lines(&fits) {
                if let Some(bps) = line.rate.bps {
                    let rate = line.rate;
                    prop_assert!(rate.at_least_bps.unwrap() <= bps && bps <= rate.at_most_bps.unwrap());
                }
            }
        }
    }
}
