//! How round trips to one hop grow with the size of what is sent there, and of what comes back.
//!
//! A packet of `s` bytes that lives for `n` hops is put onto each of the first `n` lines one after the other, and each
//! takes `s` / rate. The answer, of `a` bytes, does the same on the reverse path. So round trips without queueing lie
//! on the plane `base + forward · s + back · a` (pathchar, Jacobson 1997; its answers are all of one size). Queueing
//! adds to them, whatever their size: the mean of the same part of the round trips of each size, from the least on or
//! in the middle, lies on the same slopes. Which part is known best depends on the noise, so several are tried and the
//! one of the smallest error is taken. The error is the larger of two: the spread of the samples, and the difference
//! between estimates of parts of the time, for noise comes and goes.

/// Round trips of probes of one size to one hop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OfSize {
    /// Whole IP packet sent, bytes.
    pub size_bytes: u16,
    /// Whole IP packet that came back, bytes.
    pub answer_bytes: u16,
    /// Round trips in seconds, in the order of time.
    pub rtt_s: Vec<f64>,
}

/// The plane through the round trips of one hop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Seconds for each byte sent; of both ways together where `both_ways`.
    pub forward: Value,
    /// Seconds for each byte that came back, where the sizes of answers differ enough to determine it.
    pub back: Option<Value>,
    /// Seconds for no bytes at all; without `back`, for the answer that all probes got.
    pub base: Value,
    /// Answers grew as what was sent did: the slope is of both ways.
    pub both_ways: bool,
    /// Which part of the sorted round trips of each size it rests on, from and to, 0…1.
    pub part: (f64, f64),
}

/// A value and one standard error of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    pub value: f64,
    pub error: f64,
}

/// Parts of the sorted round trips that are tried: the least, where some packets wait nowhere; the middle,
/// where all are late by something.
const PARTS: [(f64, f64); 6] = [
    (0.0, 0.05),
    (0.0, 0.1),
    (0.0, 0.25),
    (0.0, 0.5),
    (0.1, 0.5),
    (0.25, 0.75),
];

/// A part of fewer round trips is not tried.
const LEAST_OF_PART: f64 = 2.5;

/// Parts of the time that are compared, and the fewest; and round trips of each size in one of them.
const BATCHES: usize = 16;
const LEAST_BATCHES: usize = 4;
const LEAST_OF_BATCH: usize = 5;

/// Sizes of fewer round trips are left out.
const LEAST_OF_SIZE: usize = 5;

/// No stamp is better than this, seconds: what reading a clock costs.
const STAMP_ERROR_S: f64 = 50e-9;

/// Answers whose sizes are within this of each other are alike, bytes.
const ALIKE_BYTES: f64 = 4.0;

/// Where the part of the round trips of one size lies.
struct Point {
    size: f64,
    answer: f64,
    rtt: f64,
    error: f64,
    weight: f64,
}

/// Round trips of one size, sorted: all of them, and separately the round trips of each part of the time.
struct Sorted {
    size: f64,
    answer: f64,
    all: Vec<f64>,
    batches: Vec<Vec<f64>>,
}

/// The plane through the round trips of some sizes; `None` with too few of them.
pub fn fit(sizes: &[OfSize]) -> Option<Fit> {
    let used = sizes
        .iter()
        .filter(|of_size| of_size.rtt_s.len() >= LEAST_OF_SIZE);
    let used: Vec<&OfSize> = used.collect();
    let fewest = used.iter().map(|of_size| of_size.rtt_s.len()).min()?;
    let batches = (fewest / LEAST_OF_BATCH).min(BATCHES);
    let sorted: Vec<Sorted> = used.iter().map(|of_size| sort(of_size, batches)).collect();
    let best = PARTS
        .iter()
        .filter(|(from, to)| (to - from) * fewest as f64 >= LEAST_OF_PART)
        .filter_map(|part| plane(&points(&sorted, *part, |size| Some(&size.all))?, *part))
        .min_by(|a, b| a.forward.error.total_cmp(&b.forward.error))?;
    Some(over_time(&sorted, batches, best))
}

fn sort(of_size: &OfSize, batches: usize) -> Sorted {
    let sorted = |rtt_s: &[f64]| {
        let mut rtt_s = rtt_s.to_vec();
        rtt_s.retain(|rtt| rtt.is_finite());
        rtt_s.sort_by(f64::total_cmp);
        rtt_s
    };
    let of_batch = of_size.rtt_s.len().div_ceil(batches.max(1)).max(1);
    Sorted {
        size: of_size.size_bytes.into(),
        answer: of_size.answer_bytes.into(),
        all: sorted(&of_size.rtt_s),
        batches: of_size.rtt_s.chunks(of_batch).map(sorted).collect(),
    }
}

fn points<'a>(
    sorted: &'a [Sorted],
    part: (f64, f64),
    of: impl Fn(&'a Sorted) -> Option<&'a Vec<f64>>,
) -> Option<Vec<Point>> {
    let points = sorted
        .iter()
        .map(|size| point(size.size, size.answer, of(size)?, part));
    points.collect()
}

/// The fit with errors no smaller than what fits of parts of the time differ by.
fn over_time(sorted: &[Sorted], batches: usize, mut fit: Fit) -> Fit {
    let fits: Vec<Fit> = (0..batches)
        .filter_map(|batch| {
            plane(
                &points(sorted, fit.part, |size| size.batches.get(batch))?,
                fit.part,
            )
        })
        .collect();
    if fits.len() < LEAST_BATCHES {
        return fit;
    }
    let differ = |of: fn(&Fit) -> f64| {
        let count = fits.len() as f64;
        let mean = fits.iter().map(of).sum::<f64>() / count;
        let square: f64 = fits.iter().map(|fit| (of(fit) - mean).powi(2)).sum();
        (square / (count - 1.0) / count).sqrt()
    };
    let more = |value: &mut Value, error: f64| value.error = value.error.max(error);
    more(&mut fit.forward, differ(|fit| fit.forward.value));
    more(&mut fit.base, differ(|fit| fit.base.value));
    if let Some(back) = &mut fit.back {
        more(back, differ(|fit| fit.back.map_or(0.0, |back| back.value)));
    }
    fit
}

/// The mean of a part of sorted round trips, and its standard error. The error is the one of a trimmed mean: from the
/// variance of the samples with those outside moved to the edges (Tukey and McLaughlin 1963).
fn point(size: f64, answer: f64, sorted: &[f64], (from, to): (f64, f64)) -> Option<Point> {
    let count = sorted.len() as f64;
    let first = (from * count).floor() as usize;
    let end = ((to * count).ceil() as usize).clamp(first + 1, sorted.len().max(first + 1));
    let part = sorted.get(first..end)?;
    let mean = part.iter().sum::<f64>() / part.len() as f64;
    let (least, most) = (*part.first()?, *part.last()?);
    let moved = || sorted.iter().map(|rtt| rtt.clamp(least, most));
    let middle = moved().sum::<f64>() / count;
    let variance = moved().map(|rtt| (rtt - middle).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let share = part.len() as f64 / count;
    Some(Point {
        size,
        answer,
        rtt: mean,
        error: ((variance / count).sqrt() / share).max(STAMP_ERROR_S),
        weight: count,
    })
}

/// The plane through points, by least squares.
fn plane(points: &[Point], part: (f64, f64)) -> Option<Fit> {
    let most_bytes = |of: fn(&Point) -> f64| {
        let values = points.iter().map(of);
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| {
            (a.min(v), b.max(v))
        });
        most - least
    };
    let answers_differ = most_bytes(|p| p.answer) > ALIKE_BYTES;
    let both_ways = answers_differ && most_bytes(|p| p.answer - p.size) <= ALIKE_BYTES;
    let solved = if answers_differ && !both_ways {
        solve(points, |p| [1.0, p.size, p.answer])
    } else {
        solve(points, |p| [1.0, p.size]).map(|[base, forward]| [base, forward, Value::NONE])
    };
    let [base, forward, back] = solved?;
    Some(Fit {
        forward,
        back: (answers_differ && !both_ways).then_some(back),
        base,
        both_ways,
        part,
    })
}

impl Value {
    const NONE: Self = Self {
        value: 0.0,
        error: 0.0,
    };
}

/// Least squares of `N` parameters. A point is weighted by the number of round trips in it. Errors follow from the
/// errors of the points, and are larger where the points lie further off the plane than their errors explain. `None`
/// where the points do not determine the parameters.
fn solve<const N: usize>(points: &[Point], row: impl Fn(&Point) -> [f64; N]) -> Option<[Value; N]> {
    if points.len() <= N {
        return None;
    }
    // Sizes are of the order of a thousand: what is solved is scaled to stay well conditioned.
    const SCALE: f64 = 1000.0;
    let row = |point: &Point| {
        let mut row = row(point);
        row.iter_mut().skip(1).for_each(|v| *v /= SCALE);
        row
    };
    let mut normal = [[0.0; N]; N];
    for point in points {
        let x = row(point);
        for (line, a) in normal.iter_mut().zip(x) {
            for (cell, b) in line.iter_mut().zip(x) {
                *cell += point.weight * a * b;
            }
        }
    }
    let inverse = inverse(normal)?;
    // What each point adds to each parameter.
    let shares: Vec<[f64; N]> = points
        .iter()
        .map(|point| {
            let x = row(point);
            inverse.map(|line| {
                let sum: f64 = line.iter().zip(x).map(|(a, b)| a * b).sum();
                sum * point.weight
            })
        })
        .collect();
    let mut values = [0.0; N];
    let mut variances = [0.0; N];
    for (share, point) in shares.iter().zip(points) {
        for ((value, variance), share) in values.iter_mut().zip(&mut variances).zip(share) {
            *value += share * point.rtt;
            *variance += (share * point.error).powi(2);
        }
    }
    let off: f64 = points
        .iter()
        .map(|point| {
            let expected: f64 = row(point).iter().zip(values).map(|(a, b)| a * b).sum();
            ((point.rtt - expected) / point.error).powi(2)
        })
        .sum();
    // As the Particle Data Group does with results that agree less than their errors say.
    let more = (off / (points.len() - N) as f64).sqrt().max(1.0);
    let mut place = 0;
    let solved = values.map(|value| {
        let scale = if place == 0 { 1.0 } else { SCALE };
        let variance: f64 = variances.get(place).copied().unwrap_or(0.0);
        place += 1;
        Value {
            value: value / scale,
            error: variance.sqrt() * more / scale,
        }
    });
    let finite = |value: &Value| value.value.is_finite() && value.error.is_finite();
    solved.iter().all(finite).then_some(solved)
}

/// The inverse of a small matrix by elimination with pivots; `None` where there is none to speak of.
fn inverse<const N: usize>(matrix: [[f64; N]; N]) -> Option<[[f64; N]; N]> {
    let mut left = matrix;
    let mut right = [[0.0; N]; N];
    for (place, line) in right.iter_mut().enumerate() {
        *line.get_mut(place)? = 1.0;
    }
    let size = left.iter().flatten().fold(0.0f64, |a, b| a.max(b.abs()));
    for column in 0..N {
        let pivot = (column..N).max_by(|a, b| {
            let at = |line: &usize| {
                left.get(*line)
                    .and_then(|l| l.get(column))
                    .map_or(0.0, |v| v.abs())
            };
            at(a).total_cmp(&at(b))
        })?;
        left.swap(column, pivot);
        right.swap(column, pivot);
        let by = *left.get(column)?.get(column)?;
        // Sizes that hardly differ determine nothing.
        if by.abs() <= size * 1e-9 || !by.is_finite() {
            return None;
        }
        for line in [left.get_mut(column)?, right.get_mut(column)?] {
            line.iter_mut().for_each(|v| *v /= by);
        }
        let (pivot_left, pivot_right) = (*left.get(column)?, *right.get(column)?);
        for line in (0..N).filter(|line| *line != column) {
            let times = *left.get(line)?.get(column)?;
            let less = |line: &mut [f64; N], pivot: [f64; N]| {
                line.iter_mut()
                    .zip(pivot)
                    .for_each(|(a, b)| *a -= times * b);
            };
            less(left.get_mut(line)?, pivot_left);
            less(right.get_mut(line)?, pivot_right);
        }
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Round trips of `count` probes of each size: exact, and one in three queued for up to `noise`.
    fn sizes(list: &[(u16, u16)], of: [f64; 3], noise: f64, count: usize) -> Vec<OfSize> {
        let mut state = 7u64;
        let mut random = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as f64 / 2f64.powi(31)
        };
        list.iter()
            .map(|(size, answer)| OfSize {
                size_bytes: *size,
                answer_bytes: *answer,
                rtt_s: (0..count)
                    .map(|_| {
                        let exact = of[0] + of[1] * f64::from(*size) + of[2] * f64::from(*answer);
                        let queued = if random() < 0.33 {
                            random() * noise
                        } else {
                            0.0
                        };
                        exact + random() * 2e-6 + queued
                    })
                    .collect(),
            })
            .collect()
    }

    const LIST: [(u16, u16); 6] = [
        (38, 66),
        (548, 576),
        (700, 576),
        (900, 576),
        (1200, 576),
        (1500, 576),
    ];

    #[test]
    fn both_slopes_are_found_under_queueing() {
        let fitted = fit(&sizes(&LIST, [0.01, 80e-9, 800e-9], 0.005, 60)).unwrap();
        assert!(
            (fitted.forward.value / 80e-9 - 1.0).abs() < 0.03,
            "{fitted:?}"
        );
        assert!(
            (fitted.back.unwrap().value / 800e-9 - 1.0).abs() < 0.03,
            "{fitted:?}"
        );
        assert!((fitted.base.value - 0.01).abs() < 20e-6, "{fitted:?}");
        assert!((fitted.forward.value - 80e-9).abs() < 4.0 * fitted.forward.error);
        assert!(!fitted.both_ways);
    }

    #[test]
    fn answers_of_one_size_and_as_large_as_the_probes() {
        let fitted = fit(&sizes(&LIST[1..], [0.01, 8e-6, 0.0], 0.0, 20)).unwrap();
        assert!((fitted.forward.value / 8e-6 - 1.0).abs() < 0.001);
        assert_eq!((fitted.back, fitted.both_ways), (None, false));
        let same = LIST.map(|(size, _)| (size, size));
        let fitted = fit(&sizes(&same, [0.01, 8e-6, 8e-6], 0.0, 20)).unwrap();
        assert!((fitted.forward.value / 16e-6 - 1.0).abs() < 0.001);
        assert_eq!((fitted.back, fitted.both_ways), (None, true));
    }

    #[test]
    fn what_is_not_straight_is_not_sure() {
        let mut bent = sizes(&LIST[1..], [0.01, 80e-9, 0.0], 0.0, 60);
        let sure = fit(&bent).unwrap().forward.error;
        bent[4].rtt_s.iter_mut().for_each(|rtt| *rtt += 1e-3);
        assert!(fit(&bent).unwrap().forward.error > 50.0 * sure);
    }

    #[test]
    fn too_little_is_nothing() {
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&sizes(&LIST[..2], [0.01, 1e-6, 0.0], 0.0, 50)), None);
        assert_eq!(fit(&sizes(&LIST, [0.01, 1e-6, 0.0], 0.0, 4)), None);
        let one_size = [(600, 576); 6];
        assert_eq!(fit(&sizes(&one_size, [0.01, 1e-6, 0.0], 0.0, 50)), None);
    }

    proptest! {
        #[test]
        fn any_samples_are_survived(sizes in proptest::collection::vec(
            (any::<u16>(), any::<u16>(), proptest::collection::vec(any::<f64>(), 0..30)), 0..12,
        )) {
            let sizes: Vec<OfSize> = sizes
                .into_iter()
                .map(|(size_bytes, answer_bytes, rtt_s)| OfSize { size_bytes, answer_bytes, rtt_s })
                .collect();
            if let Some(fit) = fit(&sizes) {
                prop_assert!(fit.forward.value.is_finite() && fit.forward.error >= 0.0);
            }
        }
    }
}
