//! In virtual time: series whose period is known, and series that have none.

#![allow(clippy::unwrap_used)]

use super::*;
use plumb_model::results::PeriodicOf::{Changes, Level};

/// Numbers as a seed has them: the generator of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal, with variance 1 (Irwin and Hall).
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Round trips every 20 ms for `seconds`.
fn series(seconds: f64, mut value: impl FnMut(f64) -> f64) -> Vec<(f64, f64)> {
    (0..)
        .map(|n| f64::from(n) * 0.02)
        .take_while(|t| *t < seconds)
        .map(|t| (t, value(t)))
        .collect()
}

fn of(found: &[Period], of: PeriodicOf) -> Option<f64> {
    let mut found = found.iter().filter(|period| period.of == of);
    found.next().map(|period| period.period_s)
}

#[test]
fn a_reallocation_every_15_s_is_found_whatever_the_levels() {
    for seed in 0..40 {
        let mut random = Random(seed);
        // Levels 20 ms apart on average, drawn anew, and noise of 5 ms.
        let levels: Vec<f64> = (0..8).map(|_| 0.04 + 0.08 * random.uniform()).collect();
        let phase = 15.0 * random.uniform();
        let found = find(&series(90.0, |t| {
            let level = levels.get(((t + phase) / 15.0) as usize).unwrap();
            level + 0.005 * random.normal()
        }));
        // Two levels in a row may be alike, and then nothing changes.
        let steps = levels.windows(2).map(|w| (w[1] - w[0]).abs());
        if steps.fold(f64::INFINITY, f64::min) > 0.015 {
            let period = of(&found, Changes);
            assert!(
                period.is_some_and(|p| (p - 15.0).abs() < 0.3),
                "seed {seed}: {found:?} for {levels:?}"
            );
        }
    }
}

#[test]
fn a_level_that_comes_back_is_found_with_its_own_period() {
    for (period, seconds) in [(10.0, 60.0), (15.0, 90.0), (30.0, 180.0), (12.3, 120.0)] {
        let mut random = Random(7);
        let found = find(&series(seconds, |t| {
            let high = t % period < period / 2.0;
            0.04 + if high { 0.03 } else { 0.0 } + 0.003 * random.normal()
        }));
        let level = of(&found, Level).unwrap();
        assert!((level / period - 1.0).abs() < 0.02, "{period}: {found:?}");
        // It changes twice in each period.
        let changes = of(&found, Changes).unwrap();
        assert!((changes / period - 0.5).abs() < 0.02, "{period}: {found:?}");
        assert!(found.iter().all(|f| f.confidence > 0.99), "{found:?}");
    }
}

#[test]
fn noise_has_no_period() {
    for seed in 0..100 {
        let mut random = Random(seed);
        let mut walk = 0.0;
        // What each value keeps of the one before it: nothing, 0.2 s of memory, and 10 s.
        for keeps in [0.0, 0.9, 0.998] {
            let found = find(&series(120.0, |_| {
                walk = keeps * walk + random.normal();
                0.1 + 0.001 * walk
            }));
            assert_eq!(found, [], "seed {seed}, {keeps}");
        }
    }
}

#[test]
fn a_single_change_and_a_drift_are_not_periodic() {
    let mut random = Random(3);
    let mut noise = || 0.002 * random.normal();
    assert_eq!(find(&series(90.0, |t| 0.04 + t / 1000.0 + noise())), []);
    let step = |t: f64| if t > 40.0 { 0.1 } else { 0.04 };
    assert_eq!(find(&series(90.0, |t| step(t) + noise())), []);
    assert_eq!(find(&series(90.0, |_| 0.04)), [], "nothing varies");
}

#[test]
fn two_times_are_not_enough() {
    let wave = |t: f64| if t % 15.0 < 7.5 { 0.04 } else { 0.07 };
    let found = find(&series(32.0, wave));
    assert_eq!(of(&found, Level), None, "{found:?}");
    assert_eq!(find(&series(2.0, wave)), []);
    assert_eq!(find(&[]), []);
}

#[test]
fn what_changes_faster_than_is_looked_for_shows_at_a_multiple() {
    let wave = |t: f64| if t % 5.0 < 2.5 { 0.04 } else { 0.07 };
    let found = find(&series(40.0, wave));
    assert_eq!(of(&found, Changes).map(f64::round), Some(5.0), "{found:?}");
}

#[test]
fn losses_leave_holes_that_do_not_matter() {
    let mut random = Random(5);
    let all = series(90.0, |t| if t % 10.0 < 5.0 { 0.04 } else { 0.07 });
    let some: Vec<_> = all
        .into_iter()
        .filter(|(t, _)| random.uniform() > 0.5 && !(20.0..23.0).contains(t))
        .collect();
    let level = of(&find(&some), Level).unwrap();
    assert!((level - 10.0).abs() < 0.2, "{level}");
}
