//! Periodic structure in a series, such as a satellite system that deals its capacity out anew every
//! 15 s. Pure.
//!
//! Two things may repeat: the level itself, and the instants at which it changes while the levels
//! between them are new each time. Each is looked for by autocorrelation: values one, two, three …
//! periods apart must resemble each other. What noise reaches is known from Bartlett's formula
//! (Box and Jenkins, Time Series Analysis, section 2.1.6): the slower the noise wanders by itself, the
//! larger is the correlation that means nothing.

use plumb_model::distribution::quantile_of_sorted;
use plumb_model::results::PeriodicOf;

/// Time that one value covers, in seconds: some round trips, and a small part of any period that is looked for.
const BIN_S: f64 = 0.25;

/// Shortest period that is looked for, in seconds: shorter ones are the sawtooth of a congestion
/// control, or Wi-Fi's beacons.
const SHORTEST_S: f64 = 3.0;

/// A pattern must be seen this often to be called periodic.
const TIMES_SEEN: f64 = 3.0;

/// A change is the difference between so many bins before an instant and after it: one second.
const CHANGE_BINS: usize = 4;

/// Standard errors that a correlation must reach. By chance one series of noise in some millions of
/// lags does.
const SIGNIFICANT: f64 = 5.0;

/// Least mean correlation that is worth a word: half of the variance.
const LEAST_STRENGTH: f64 = 0.5;

/// Share of the bins that may be empty, and are filled in from their neighbours.
const MOST_MISSING: f64 = 0.2;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    pub of: PeriodicOf,
    /// How long it takes.
    pub period_s: f64,
    /// Mean correlation of values whole periods apart, 0…1.
    pub strength_ratio: f64,
    /// How sure it is that noise did not do it, 0…1.
    pub confidence: f64,
    /// How many whole periods were seen.
    pub times_seen: u64,
}

/// What repeats in a series of times and values, in order of time.
pub fn find(points: &[(f64, f64)]) -> Vec<Period> {
    let Some(level) = binned(points) else {
        return Vec::new();
    };
    let changes = changes(&level);
    [(PeriodicOf::Level, level), (PeriodicOf::Changes, changes)]
        .into_iter()
        .filter_map(|(of, values)| strongest(of, &values))
        .collect()
}

/// Medians of equal bins; `None` where the series is too short or has too many holes.
fn binned(points: &[(f64, f64)]) -> Option<Vec<f64>> {
    let (first, last) = (points.first()?.0, points.last()?.0);
    let count = ((last - first) / BIN_S).floor() as usize;
    if (count as f64) < TIMES_SEEN * SHORTEST_S / BIN_S {
        return None;
    }
    let mut bins: Vec<Vec<f64>> = vec![Vec::new(); count];
    for (t, value) in points {
        if let Some(bin) = bins.get_mut(((t - first) / BIN_S) as usize) {
            bin.push(*value);
        }
    }
    let medians: Vec<Option<f64>> = bins.into_iter().map(median).collect();
    let missing = medians.iter().filter(|median| median.is_none()).count();
    if missing as f64 > MOST_MISSING * count as f64 {
        return None;
    }
    let mut latest = medians.iter().copied().find_map(|median| median)?;
    let filled = medians.into_iter().map(|median| {
        latest = median.unwrap_or(latest);
        latest
    });
    Some(filled.collect())
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    quantile_of_sorted(&values, 0.5)
}

/// How much the series changes at each instant.
fn changes(level: &[f64]) -> Vec<f64> {
    level
        .windows(2 * CHANGE_BINS)
        .filter_map(|around| {
            let (before, after) = around.split_at(CHANGE_BINS);
            Some((median(after.to_vec())? - median(before.to_vec())?).abs())
        })
        .collect()
}

/// The period at which the series resembles itself most, if noise would not.
fn strongest(of: PeriodicOf, values: &[f64]) -> Option<Period> {
    let longest = (values.len() as f64 / TIMES_SEEN) as usize;
    let values = without_drift(values, longest);
    let correlations: Vec<f64> = (0..values.len())
        .map(|lag| correlation(&values, lag).unwrap_or(0.0))
        .collect();
    let memory = memory(&correlations)?;
    let shortest = ((SHORTEST_S / BIN_S) as usize).max(memory.lag);
    let best = (shortest..=longest)
        .filter(|lag| is_peak(&correlations, *lag))
        .filter_map(|lag| Some((lag, resemblance(&correlations, lag, memory.sum_of_squares)?)))
        .max_by(|a, b| a.1.errors.total_cmp(&b.1.errors));
    let (lag, found) = best?;
    if found.errors < SIGNIFICANT || found.mean < LEAST_STRENGTH {
        return None;
    }
    // Each lag that was looked at is a chance to be wrong.
    let tried = (longest - shortest + 1) as f64;
    Some(Period {
        of,
        period_s: refined(&correlations, lag) * BIN_S,
        strength_ratio: found.mean.min(1.0),
        confidence: (1.0 - tried * upper_tail(found.errors)).clamp(0.0, 0.999),
        times_seen: (values.len() as f64 / lag as f64).floor() as u64,
    })
}

/// The series without what is slower than anything that could repeat in it.
fn without_drift(values: &[f64], longest: usize) -> Vec<f64> {
    let around = |n: usize| {
        let half = (longest / 2).min(n);
        let window = values.get(n - half..=n + half).unwrap_or(values);
        window.iter().sum::<f64>() / window.len().max(1) as f64
    };
    // Near its ends a centred mean would be of ever fewer values, and take all with it.
    let last = values.len().saturating_sub(1);
    let edge = (longest / 2).min(last / 2);
    let centred = |(n, value): (usize, &f64)| value - around(n.clamp(edge, last - edge));
    values.iter().enumerate().map(centred).collect()
}

/// Pearson's correlation of the series with itself `lag` bins later.
fn correlation(values: &[f64], lag: usize) -> Option<f64> {
    let (early, late) = (values.get(..values.len() - lag)?, values.get(lag..)?);
    let n = early.len() as f64;
    if early.len() < 2 {
        return None;
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / n;
    let (mean_early, mean_late) = (mean(early), mean(late));
    let mut sums = (0.0, 0.0, 0.0);
    for (a, b) in early.iter().zip(late) {
        let (a, b) = (a - mean_early, b - mean_late);
        sums = (sums.0 + a * b, sums.1 + a * a, sums.2 + b * b);
    }
    let spread = (sums.1 * sums.2).sqrt();
    (spread > 0.0).then(|| sums.0 / spread)
}

/// How long the series remembers by itself, before anything repeats.
struct Memory {
    /// The first lag at which nothing is left of it.
    lag: usize,
    /// Sum of the squares of the correlations up to there.
    sum_of_squares: f64,
}

fn memory(correlations: &[f64]) -> Option<Memory> {
    let lag = correlations.iter().position(|r| *r <= 0.0)?;
    let sum_of_squares = correlations.iter().take(lag).skip(1).map(|r| r * r).sum();
    Some(Memory {
        lag,
        sum_of_squares,
    })
}

fn is_peak(correlations: &[f64], lag: usize) -> bool {
    let at = |n: usize| correlations.get(n).copied().unwrap_or(f64::NEG_INFINITY);
    at(lag) >= at(lag - 1) && at(lag) >= at(lag + 1)
}

/// How the series resembles itself at all multiples of a lag.
struct Resemblance {
    mean: f64,
    /// The same in standard errors of noise with the same memory.
    errors: f64,
}

fn resemblance(correlations: &[f64], lag: usize, memory: f64) -> Option<Resemblance> {
    let peaks = peaks(correlations, lag);
    let sum: f64 = peaks.iter().map(|(_, r)| r).sum();
    let variance: f64 = peaks
        .iter()
        .map(|(at, _)| (1.0 + 2.0 * memory) / (correlations.len() - at) as f64)
        .sum();
    let count = peaks.len() as f64;
    (count >= TIMES_SEEN - 1.0).then(|| Resemblance {
        mean: sum / count,
        errors: sum / variance.sqrt(),
    })
}

/// Where the correlation has its peaks near the multiples of a lag, and how high they are. A period
/// is no whole number of bins, so each peak says more exactly where the next one is to be.
fn peaks(correlations: &[f64], lag: usize) -> Vec<(usize, f64)> {
    let mut period = lag as f64;
    let mut found = Vec::new();
    // The last overlap must be a period long, or a single resemblance would count.
    let end = correlations.len().saturating_sub(lag);
    for multiple in 1.. {
        let expected = (f64::from(multiple) * period).round() as usize;
        let around = expected.saturating_sub(1)..=(expected + 1).min(end);
        let peak = around
            .filter_map(|n| Some((n, *correlations.get(n)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some(peak) = peak.filter(|_| expected <= end) else {
            break;
        };
        period = peak.0 as f64 / f64::from(multiple);
        found.push(peak);
    }
    found
}

/// The period in bins, from where all multiples have their peaks (least squares through zero).
fn refined(correlations: &[f64], lag: usize) -> f64 {
    let peaks = peaks(correlations, lag);
    let numbered = || (1..).map(f64::from).zip(&peaks);
    let dots: f64 = numbered().map(|(n, (at, _))| n * *at as f64).sum();
    let squares: f64 = numbered().map(|(n, _)| n * n).sum();
    if squares > 0.0 {
        dots / squares
    } else {
        lag as f64
    }
}

/// An upper bound of the chance that a normal variable exceeds `x` (Mills' ratio).
fn upper_tail(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (x * (2.0 * std::f64::consts::PI).sqrt())
}

#[cfg(test)]
mod tests;
