//! Levels between which a rate goes up and down.

use plumb_model::distribution::Distribution;

use super::Carried;

/// The higher level carries at least so many times the lower one: others' small traffic does not count.
pub(crate) const LEAST_TIMES: f64 = 1.3;

/// Within a level the rate varies by less than this share of its middle: what TCP does by itself.
const WITHIN_RATIO: f64 = 0.1;

/// A level lasts for seconds.
const LEAST_SECONDS: usize = 2;

/// Two levels of a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Levels {
    pub(crate) low_bps: f64,
    pub(crate) high_bps: f64,
    /// Whole seconds at the higher one, where it was there first and then at the lower one to the end.
    pub(crate) falls_once_after: Option<usize>,
}

impl Carried<'_> {
    /// The two levels that its rate has had, where it had two.
    pub(crate) fn levels(self) -> Option<Levels> {
        let later = levels(&self.each_second_bps());
        // What is fast at the beginning may be over before a slow start must have ended.
        let early = levels(&self.each_second_after_ramp_bps());
        let falls_once_after = early.and_then(|levels| levels.falls_once_after);
        match (later, falls_once_after) {
            (Some(levels), Some(_)) if levels.falls_once_after.is_some() => Some(Levels {
                falls_once_after,
                ..levels
            }),
            (_, Some(_)) => early,
            (later, None) => later,
        }
    }
}

/// Of the rates of seconds in a row. A second in which the level changes lies between them.
fn levels(rates: &[f64]) -> Option<Levels> {
    let all = Distribution::of(rates.iter().copied())?;
    let middle = (all.min.max(1.0) * all.max).sqrt();
    let mut stays: Vec<(bool, Vec<f64>)> = Vec::new();
    for rate in rates {
        let high = *rate >= middle;
        match stays.last_mut() {
            Some((level, stay)) if *level == high => stay.push(*rate),
            _ => stays.push((high, vec![*rate])),
        }
    }
    let count = stays.len();
    for (number, (_, stay)) in stays.iter_mut().enumerate() {
        // The first and last second of a stay may hold a part of the change, where there was one.
        if number > 0 && stay.len() > LEAST_SECONDS {
            stay.remove(0);
        }
        if number + 1 < count && stay.len() > LEAST_SECONDS {
            stay.pop();
        }
    }
    // A second alone between two levels is the change, and one of two may hold a part of it.
    stays.retain(|(_, stay)| match stay.as_slice() {
        [] | [_] => false,
        [first, second] => (first - second).abs() <= WITHIN_RATIO * (first + second),
        _ => true,
    });
    let of = |level: bool| {
        let seconds = stays.iter().filter(|(high, _)| *high == level);
        Distribution::of(seconds.flat_map(|(_, stay)| stay.iter().copied()))
    };
    let (low, high) = (of(false)?, of(true)?);
    let tight = |level: &Distribution| level.p95 - level.p5 <= 2.0 * WITHIN_RATIO * level.p50;
    let apart = high.p50 >= LEAST_TIMES * low.p50 && high.p5 > low.p95;
    // Nothing at all is a stall, and no level.
    (low.p5 > 0.0 && tight(&low) && tight(&high) && apart).then(|| Levels {
        low_bps: low.p50,
        high_bps: high.p50,
        falls_once_after: falls_once(rates, middle),
    })
}

/// After how many seconds above a rate it falls below it, where it stays there but for the second in which that happens.
fn falls_once(rates: &[f64], middle: f64) -> Option<usize> {
    let at = rates.iter().position(|rate| *rate < middle)?;
    let later = rates.iter().skip(at).filter(|rate| **rate >= middle);
    (at > 0 && later.count() <= 1 && rates.last()? < &middle).then_some(at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_levels_are_told_from_what_tcp_does() {
        let steps = [
            30.0, 29.5, 30.2, 20.0, 10.1, 9.8, 10.0, 10.0, 25.0, 30.0, 29.0,
        ]
        .map(|m| m * 1e6);
        let seen = levels(&steps).unwrap();
        assert!(
            (seen.low_bps - 10e6).abs() < 0.3e6 && (seen.high_bps - 29.7e6).abs() < 0.6e6,
            "{seen:?}"
        );
        assert_eq!(seen.falls_once_after, None);
        let boost = [80.0, 80.0, 79.0, 40.0, 20.0, 20.0, 20.0, 20.1].map(|m| m * 1e6);
        assert_eq!(levels(&boost).unwrap().falls_once_after, Some(4));
        // Nothing for a time is a stall.
        let stall = [50.0, 50.0, 0.0, 0.0, 20.0, 50.0, 50.0].map(|m| m * 1e6);
        assert_eq!(levels(&stall), None);
        // A step within a second leaves a part of it on either side.
        let uneven = [
            9.6, 9.6, 9.5, 9.8, 26.5, 28.9, 28.9, 28.9, 28.6, 29.2, 12.0, 9.4, 9.8,
        ]
        .map(|m| m * 1e6);
        assert!(levels(&uneven).is_some());
        let cut_off = [
            32.7, 32.7, 25.8, 8.0, 7.5, 7.5, 10.7, 29.5, 32.7, 32.7, 15.3, 7.8,
        ]
        .map(|m| m * 1e6);
        assert!(levels(&cut_off).is_some());
        let comes_back = [32.7, 32.7, 25.8, 8.0, 7.5, 7.5, 10.7, 25.8, 32.7].map(|m| m * 1e6);
        assert_eq!(levels(&comes_back).unwrap().falls_once_after, None);
        let sawtooth: Vec<f64> = (0..14).map(|s| 10e6 + f64::from(s % 7) * 1.6e6).collect();
        assert_eq!(levels(&sawtooth), None);
        let steady: Vec<f64> = (0..14).map(|s| 20e6 + f64::from(s % 3) * 0.4e6).collect();
        assert_eq!(levels(&steady), None);
        assert_eq!(levels(&[]), None);
        // A dip of one second is no level.
        let dip = [20.0, 20.0, 20.0, 5.0, 20.0, 20.0, 20.0].map(|m| m * 1e6);
        assert_eq!(levels(&dip), None);
    }

    proptest! {
        #[test]
        fn any_rates_are_read(rates in prop::collection::vec(0.0..1e12f64, 0..40)) {
            if let Some(seen) = levels(&rates) {
                prop_assert!(0.0 < seen.low_bps && seen.low_bps < seen.high_bps);
            }
        }
    }
}
