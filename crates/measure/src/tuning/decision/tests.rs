#![allow(clippy::unwrap_used)]

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;

use super::super::RUNS;
use super::*;

/// Tables of the normal and of Student's distribution.
#[test]
fn tails_are_those_of_the_tables() {
    for (z, p) in [(0.0, 0.5), (1.6449, 0.05), (3.0902, 0.001), (4.2649, 1e-5)] {
        assert!(
            (normal_tail(z) / p - 1.0).abs() < 1e-3,
            "{z}: {}",
            normal_tail(z)
        );
    }
    for (t, freedom, p) in [
        (6.3138, 1.0, 0.05),
        (2.3534, 3.0, 0.05),
        (10.2145, 3.0, 0.001),
        (1.6602, 100.0, 0.05),
        (3.0984, 1000.0, 0.001),
    ] {
        let tail = student_tail(t, freedom);
        assert!((tail / p - 1.0).abs() < 2e-3, "{t} {freedom}: {tail}");
        assert!((student_tail(-t, freedom) - (1.0 - tail)).abs() < 1e-9);
    }
}

struct Path {
    random: Pcg64Mcg,
    noise: f64,
    effect: f64,
}

impl Path {
    /// A rate near 1, times what the change makes of it, with noise (Box and Muller).
    fn rate(&mut self, with: bool) -> f64 {
        let (u, v): (f64, f64) = (self.random.random(), self.random.random());
        let normal = (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        let rate = if with { 1.0 + self.effect } else { 1.0 };
        // No rate is below nothing.
        rate * (1.0 + self.noise * normal).max(0.01)
    }

    fn trial(&mut self, most_runs: usize) -> (bool, usize) {
        let mut pairs = Vec::new();
        loop {
            let (with, without) = (self.rate(true), self.rate(false));
            pairs.push((with / without).ln());
            match decide(&pairs, most_runs) {
                Decision::Continue => {}
                decision => return (decision == Decision::Keep, 2 * pairs.len()),
            }
        }
    }
}

/// The share of trials in which the change is kept, and the mean and the most of the runs that it took.
fn kept(trials: u32, effect: impl Fn(f64) -> f64, noise: impl Fn(f64) -> f64) -> (f64, f64, usize) {
    kept_within(MOST_RUNS, trials, effect, noise)
}

/// The same within a limit.
fn kept_within(
    most_runs: usize,
    trials: u32,
    effect: impl Fn(f64) -> f64,
    noise: impl Fn(f64) -> f64,
) -> (f64, f64, usize) {
    let mut path = Path {
        random: Pcg64Mcg::seed_from_u64(6),
        noise: 0.0,
        effect: 0.0,
    };
    let (mut kept, mut sum, mut most) = (0u32, 0, 0);
    for _ in 0..trials {
        path.noise = noise(path.random.random());
        path.effect = effect(path.random.random());
        let (keep, runs) = path.trial(most_runs);
        kept += u32::from(keep);
        sum += runs;
        most = most.max(runs);
    }
    let share = f64::from(kept) / f64::from(trials);
    (share, sum as f64 / f64::from(trials), most)
}

/// Noise of 1 to 20 %.
fn any_noise(u: f64) -> f64 {
    0.01 + 0.19 * u
}

#[test]
fn ten_thousand_trials() {
    // Changes that harm: by anything up to a half.
    let (share, mean, most) = kept(10_000, |u| -0.5 * u, any_noise);
    println!("harmful: kept {share}, runs {mean} on average, {most} at most");
    assert!(share <= 0.001 && most <= MOST_RUNS, "{share} {most}");
    // Changes that help by over 5 %, up to doubling.
    let (share, mean, most) = kept(10_000, |u| 0.05 + 0.95 * u, any_noise);
    println!("helping: kept {share}, runs {mean} on average, {most} at most");
    assert!(share >= 0.95 && most <= MOST_RUNS, "{share} {most}");
}

#[test]
fn the_hardest_cases() {
    // No effect at all, which is harm's border.
    let (share, mean, _) = kept(2_000, |_| 0.0, any_noise);
    println!("no effect: kept {share}, runs {mean} on average");
    assert!(share <= 0.002, "{share}");
    // Just over 5 % under the most noise.
    let (share, mean, _) = kept(300, |_| 0.055, |_| 0.20);
    println!("5.5 % under 20 %: kept {share}, runs {mean} on average");
    assert!(share >= 0.95, "{share}");
}

/// What a limit keeps is what is written down of it, and a low one keeps no more of what harms.
#[test]
fn what_the_usual_runs_and_few_of_them_keep() {
    for most_runs in [24, RUNS] {
        let (share, _, most) = kept_within(most_runs, 10_000, |u| -0.5 * u, any_noise);
        assert!(
            share <= 0.001 && most <= most_runs,
            "{most_runs}: {share} {most}"
        );
        let (share, _, _) = kept_within(most_runs, 10_000, |_| 0.0, any_noise);
        assert!(share <= 0.0015, "{most_runs}: no effect: {share}");
    }
    // The usual ones keep what the helping changes are held to.
    let (share, mean, _) = kept_within(RUNS, 10_000, |u| 0.05 + 0.95 * u, any_noise);
    println!("helping, within {RUNS}: kept {share}, runs {mean} on average");
    assert!(share >= 0.95, "{share}");
    for (most_runs, noise, gain, least) in [
        (24, 0.02, 0.10, 0.99),
        (24, 0.03, 0.10, 0.97),
        (24, 0.05, 0.10, 0.55),
        (24, 0.05, 0.20, 0.99),
        (24, 0.10, 0.30, 0.90),
        (24, 0.20, 1.00, 0.99),
        (RUNS, 0.05, 0.05, 0.85),
        (RUNS, 0.05, 0.10, 0.99),
        (RUNS, 0.10, 0.10, 0.84),
        (RUNS, 0.20, 0.30, 0.98),
    ] {
        let (share, _, _) = kept_within(most_runs, 2_000, |_| gain, |_| noise);
        println!("{gain} under {noise} within {most_runs}: kept {share}");
        assert!(
            share >= least,
            "{gain} under {noise} within {most_runs}: {share}"
        );
    }
}

#[test]
fn the_least_gain_that_would_have_been_seen() {
    // Pairs of a noise of 5 % a run, without any effect.
    let pairs: Vec<_> = (0..12)
        .map(|i| if i % 2 == 0 { 0.067 } else { -0.067 })
        .collect();
    assert_eq!(decide(&pairs, 24), Decision::CannotTell);
    let least = least_seen(&pairs, 24).unwrap();
    assert!((0.08..0.10).contains(&least), "{least}");
    let shifted = |by: f64| -> Vec<_> { pairs.iter().map(|x| x + by.ln_1p()).collect() };
    assert_eq!(decide(&shifted(least - 0.001), 24), Decision::CannotTell);
    assert_eq!(decide(&shifted(least), 24), Decision::Keep);
    assert_eq!(least_seen(&[0.1], 24), None);
}

#[test]
fn a_large_effect_takes_four_runs_and_a_limit_never_keeps() {
    assert_eq!(decide(&[2.0], 24), Decision::Continue);
    assert_eq!(decide(&[2.0, 2.1], 24), Decision::Keep);
    assert_eq!(decide(&[-2.0, -2.1], 24), Decision::TooLittle);
    assert_eq!(decide(&[0.3, -0.2], 4), Decision::CannotTell);
    assert_eq!(
        decide(&[0.01, 0.011, 0.009, 0.010], 24),
        Decision::TooLittle
    );
    // Nothing, and one run, decide nothing.
    assert_eq!(decide(&[], 24), Decision::Continue);
    assert_eq!(decide(&[f64::NAN, 1.0], 24), Decision::Continue);
}
