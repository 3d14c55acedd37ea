//! Whether a change is kept: a sequential test of paired measurements. Pure.
//!
//! What comes in is, for each pair of runs, the natural logarithm of the rate with the change over the rate
//! without it. At fixed numbers of pairs two questions are asked: is it sure that the change does not harm
//! (then it is kept), and is it sure that it gains less than [`WORTH`] (then it is not)? All looks up to the last
//! one that is wanted share an error of [`HARM`] and one of [`MISS`], so that together they keep to them
//! (Bonferroni); the last look, at which the smallest effects are seen, has `LAST_SHARE` of it.
//!
//! Two tests answer: Student's, which learns the noise from the pairs, and a normal one that takes every run's
//! noise to be [`MOST_NOISE`], the most that a measurement may have, with `NORMAL_SHARE` of the error. The second
//! sees a large effect after two pairs, from which nothing could be learnt about noise; it is asked only while
//! the pairs agree with that bound.

/// A gain that is worth a change: 5 %, as a logarithm.
pub const WORTH: f64 = 0.048_790_164_169_432;

/// Share of changes without any effect, the worst case of those that harm, that may be kept.
pub const HARM: f64 = 0.001;

/// Share of changes that gain more than [`WORTH`] that may be missed by stopping early.
pub const MISS: f64 = 0.01;

/// The most noise of one run that is reckoned with: a standard deviation of 20 %.
pub const MOST_NOISE: f64 = 0.20;

/// Numbers of pairs at which is looked; the last one is enough for a gain of 5 % under a noise of 20 %.
pub const LOOKS: [usize; 15] = [2, 3, 4, 6, 8, 12, 18, 27, 40, 60, 100, 180, 320, 600, 1100];

/// Runs after which every change is decided, at the most.
pub const MOST_RUNS: usize = 2 * 1100;

/// Share of the errors that the last look may make: it is the one that the smallest effects are seen at.
const LAST_SHARE: f64 = 0.6;

/// Share of a look's error that the normal test may make, where Student's is asked too.
const NORMAL_SHARE: f64 = 0.1;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Continue,
    Keep,
    /// It gains less than it would have to, or harms.
    TooLittle,
    /// The noise hides the effect.
    CannotTell,
}

/// What the pairs so far show, when no more than `most_runs` are wanted. The errors keep to their bounds whatever that
/// limit is; with a low one more changes remain undecided.
pub fn decide(pairs: &[f64], most_runs: usize) -> Decision {
    let last = last_look(most_runs);
    let undecided = if pairs.len() >= last {
        Decision::CannotTell
    } else {
        Decision::Continue
    };
    let Some(share) = share(pairs.len(), last) else {
        return undecided;
    };
    let summary = Summary::of(pairs);
    // Too little first: what is surely below the worth is not kept, however sure it is above nothing.
    if summary.is_surely_below(WORTH, MISS * share) {
        Decision::TooLittle
    } else if summary.is_surely_above(0.0, HARM * share) {
        Decision::Keep
    } else {
        undecided
    }
}

/// The least gain, as a share, that would have been kept at the last look under the noise of these pairs; `None` where
/// they show no noise.
pub fn least_seen(pairs: &[f64], most_runs: usize) -> Option<f64> {
    let present = Summary::of(pairs);
    present.deviation?;
    let last = last_look(most_runs);
    let seen = |mean: f64| {
        let there = Summary {
            count: last,
            mean,
            ..present
        };
        there.is_surely_above(0.0, HARM * share(last, last).unwrap_or(1.0))
    };
    // Between nothing and e⁵ times the rate, to a ten thousandth.
    let (mut below, mut above) = (0.0, 5.0);
    if !seen(above) {
        return None;
    }
    while above - below > 1e-4 {
        let middle = f64::midpoint(below, above);
        if seen(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
    Some(above.exp() - 1.0)
}

/// The number of pairs at which is looked for the last time.
fn last_look(most_runs: usize) -> usize {
    (most_runs.min(MOST_RUNS) / 2).max(1)
}

/// The share of the errors that may be made at so many pairs; none where it is not looked.
fn share(pairs: usize, last: usize) -> Option<f64> {
    let before = LOOKS.iter().filter(|n| **n < last).count();
    match pairs {
        _ if pairs >= last && before == 0 => Some(1.0),
        _ if pairs >= last => Some(LAST_SHARE),
        _ if LOOKS.contains(&pairs) => Some((1.0 - LAST_SHARE) / before as f64),
        _ => None,
    }
}

/// Mean and spread of pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub count: usize,
    /// Mean of the logarithms.
    pub mean: f64,
    /// Their standard deviation; none with fewer than two.
    pub deviation: Option<f64>,
}

impl Summary {
    pub fn of(pairs: &[f64]) -> Self {
        let count = pairs.len();
        let mean = pairs.iter().sum::<f64>() / (count.max(1)) as f64;
        let squares: f64 = pairs.iter().map(|x| (x - mean) * (x - mean)).sum();
        Self {
            count,
            mean,
            deviation: (count > 1).then(|| (squares / (count - 1) as f64).sqrt()),
        }
    }

    /// Noise of one run, as a share: a pair has the noise of two.
    pub fn noise(&self) -> Option<f64> {
        self.deviation.map(|deviation| deviation / 2f64.sqrt())
    }

    fn is_surely_above(&self, bound: f64, error: f64) -> bool {
        self.tail(self.mean - bound) <= error
    }

    fn is_surely_below(&self, bound: f64, error: f64) -> bool {
        self.tail(bound - self.mean) <= error
    }

    /// How probable a distance from the bound is when the truth is at the bound: the smaller answer of both tests,
    /// each over its share of the error.
    fn tail(&self, distance: f64) -> f64 {
        let root = (self.count as f64).sqrt();
        let most = MOST_NOISE * 2f64.sqrt();
        let normal = match self.deviation {
            // Twice the bound is beyond what two pairs of that noise show in all but 0.5 % of cases.
            Some(deviation) if deviation <= 2.0 * most => normal_tail(distance * root / most),
            _ => 1.0,
        };
        match self.deviation {
            Some(deviation) if self.count > 2 => {
                let freedom = (self.count - 1) as f64;
                // Pairs that are all alike would make anything sure: no clock and no counter is as exact.
                let student =
                    student_tail(distance * root / deviation.max(LEAST_DEVIATION), freedom);
                (normal / NORMAL_SHARE).min(student / (1.0 - NORMAL_SHARE))
            }
            _ => normal,
        }
    }
}

/// The least deviation of pairs that is believed.
const LEAST_DEVIATION: f64 = 1e-3;

/// P(Z ≥ z) of the normal distribution.
fn normal_tail(z: f64) -> f64 {
    0.5 * erfc(z / 2f64.sqrt())
}

/// The complementary error function, to 1.2e-7 of itself (Numerical Recipes, 2nd ed., section 6.2).
fn erfc(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let sum = COEFFICIENTS.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let tail = t * (-x * x + sum).exp();
    if x >= 0.0 { tail } else { 2.0 - tail }
}

/// P(T ≥ t) of Student's distribution (Abramowitz and Stegun, 26.7.1).
fn student_tail(t: f64, freedom: f64) -> f64 {
    let half = 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    if t >= 0.0 { half } else { 1.0 - half }
}

/// The regularised incomplete beta function (Numerical Recipes, section 6.4).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// Its continued fraction, by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..=300 {
        let m = f64::from(m);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away(1.0 + numerator * d);
            c = away(1.0 + numerator / c);
            h *= d * c;
        }
        if (d * c - 1.0).abs() < 1e-12 {
            break;
        }
    }
    h
}

/// ln Γ(x) for x > 0 (Lanczos; Numerical Recipes, section 6.1).
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.001_208_650_973_866_179,
        -0.000_005_395_239_384_953,
    ];
    let base = x + 5.5 - (x + 0.5) * (x + 5.5).ln();
    let (sum, _) = COEFFICIENTS
        .iter()
        .fold((1.000_000_000_190_015, x), |(sum, y), c| {
            (sum + c / (y + 1.0), y + 1.0)
        });
    -base + (2.506_628_274_631_000_5 * sum / x).ln()
}

#[cfg(test)]
mod tests;
