//! Lines whose rate varies.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod drawn;
mod fluid;

use std::path::Path;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use self::fluid::{Came, Reflector, STEP_S, Traffic, Witness};
use super::*;

fn healthy(base_s: f64) -> Reflector {
    Reflector {
        base_s,
        jitter_s: 0.002,
        loss: 0.0,
        trouble: |_| 0.0,
    }
}

fn four() -> Vec<Reflector> {
    [0.012, 0.018, 0.025, 0.040].map(healthy).into()
}

const WITNESS: Witness = Witness {
    base_s: 0.012,
    jitter_s: 0.0,
    clock_off_s: 1234.5,
    drift: 50e-6,
    trouble: |_| 0.0,
};

/// An upload, and a download that does nothing.
struct World<'a> {
    line: &'a dyn Fn(f64) -> f64,
    demand: &'a dyn Fn(f64) -> f64,
    reflectors: Vec<Reflector>,
    base_bps: f64,
    seconds: f64,
}

/// A direction with a long queue, whose senders yield at once.
fn traffic<'a>(
    line: &'a dyn Fn(f64) -> f64,
    demand: &'a dyn Fn(f64) -> f64,
    base_bps: f64,
) -> Traffic<'a> {
    Traffic {
        line,
        demand,
        base_bps,
        queue_s: 0.7,
        lag_s: 0.0,
    }
}

fn run(world: World<'_>) -> Came {
    let up = traffic(world.line, world.demand, world.base_bps);
    let idle = traffic(&|_| 100e6, &|_| 0.0, 90e6);
    let [up, _] = run_both([up, idle], &world.reflectors, None, world.seconds);
    up
}

fn run_both(
    [up, down]: [Traffic<'_>; 2],
    reflectors: &[Reflector],
    witness: Option<Witness>,
    seconds: f64,
) -> [Came; 2] {
    fluid::run(&fluid::World {
        up,
        down,
        reflectors,
        witness,
        seconds,
        seed: 7,
    })
}

const GREEDY: &dyn Fn(f64) -> f64 = &|_| 1e9;

fn greedy(line: &dyn Fn(f64) -> f64, base_bps: f64, seconds: f64) -> Came {
    run(World {
        line,
        demand: GREEDY,
        reflectors: four(),
        base_bps,
        seconds,
    })
}

#[test]
fn a_steady_line_is_used_without_delay() {
    for bps in [2e6, 20e6, 400e6] {
        let came = greedy(&|_| bps, bps * 0.9, 60.0);
        println!("{bps}: p95 {} used {}", came.p95(5.0), came.used(5.0));
        assert!(came.p95(5.0) <= 0.030, "{bps}: {}", came.p95(5.0));
        assert!(came.used(5.0) >= 0.9, "{bps}: {}", came.used(5.0));
    }
}

#[test]
fn a_step_is_tracked_within_ten_seconds() {
    for (before, after) in [(50e6, 20e6), (20e6, 50e6), (50e6, 5e6), (10e6, 40e6)] {
        let line = |now_s: f64| if now_s < 20.0 { before } else { after };
        let came = greedy(&line, before * 0.9, 60.0);
        let late = came.queued_s[2000..].iter().filter(|s| **s > 0.030).count() as f64 * STEP_S;
        println!(
            "{before:e} to {after:e}: {:e} p95 {} used {} late {late}",
            came.rate_at(30.0),
            came.p95(30.0),
            came.used(30.0)
        );
        // From ten seconds after the step on.
        assert!(
            came.used(30.0) >= 0.85,
            "{before} to {after}: {}",
            came.used(30.0)
        );
        assert!(
            came.p95(30.0) <= 0.030,
            "{before} to {after}: {}",
            came.p95(30.0)
        );
        assert!(came.used(29.0) >= 0.85);
    }
}

#[test]
fn a_sawtooth_of_15_s() {
    let part = |now_s: f64| now_s % 15.0 / 15.0;
    let up = |now_s: f64| 20e6 + 30e6 * part(now_s);
    let down = |now_s: f64| 50e6 - 30e6 * part(now_s);
    let triangle = |now_s: f64| 20e6 + 30e6 * (1.0 - (2.0 * part(now_s) - 1.0).abs());
    let lines: [(&str, &dyn Fn(f64) -> f64); 3] =
        [("up", &up), ("down", &down), ("triangle", &triangle)];
    for (name, line) in lines {
        let came = greedy(line, 20e6, 150.0);
        println!("{name}: p95 {} used {}", came.p95(15.0), came.used(15.0));
        assert!(came.p95(15.0) <= 0.030, "{name}: {}", came.p95(15.0));
        assert!(came.used(15.0) >= 0.8, "{name}: {}", came.used(15.0));
    }
}

#[test]
fn a_mobile_line_by_its_trace() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/traces/lte-like.trace");
    let text = std::fs::read_to_string(file).unwrap();
    let mut bits = vec![0.0; 100];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let at_ms: usize = line.trim().parse().unwrap();
        bits[at_ms.min(9999) / 100] += 1504.0 * 8.0;
    }
    // By tenths of a second; the handover is no rate at all, but for what a retry carries.
    let line = |now_s: f64| (bits[(now_s * 10.0) as usize % 100] / 0.1_f64).max(0.2e6);
    let came = greedy(&line, 8e6, 120.0);
    println!("lte: p95 {} used {}", came.p95(10.0), came.used(10.0));
    // Tens of percent from one tenth of a second to the next make queues whatever the rate; still no rate that stays
    // the same carries as much with as little of them.
    for fixed in 1..=24 {
        let fixed_bps = f64::from(fixed) * 0.5e6;
        let fixed = run(World {
            line: &line,
            demand: &|_| fixed_bps,
            reflectors: Vec::new(),
            base_bps: 1e9,
            seconds: 120.0,
        });
        let better = fixed.used(10.0) >= came.used(10.0) && fixed.p95(10.0) <= came.p95(10.0);
        println!(
            "{fixed_bps:e}: p95 {} used {}",
            fixed.p95(10.0),
            fixed.used(10.0)
        );
        assert!(!better, "{fixed_bps}");
    }
}

#[test]
fn lines_that_wander() {
    for seed in 0..6 {
        // A walk that returns to its mean within ten seconds, by half of the rate and more.
        let mut random = Pcg64::seed_from_u64(seed);
        let mut log = 0.0_f64;
        let walk: Vec<f64> = (0..1300)
            .map(|_| {
                let kick = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                log += -log * 0.01 + 0.3 * (2.0_f64 * 0.01).sqrt() * kick;
                20e6 * log.exp()
            })
            .collect();
        let line = |now_s: f64| walk[(now_s * 10.0) as usize];
        let came = greedy(&line, 15e6, 120.0);
        println!(
            "wander {seed}: p95 {} used {}",
            came.p95(10.0),
            came.used(10.0)
        );
        assert!(came.used(10.0) >= 0.85, "{seed}: {}", came.used(10.0));
        assert!(came.p95(10.0) <= 0.030, "{seed}: {}", came.p95(10.0));
    }
}

fn both_loaded(
    up: &dyn Fn(f64) -> f64,
    down: &dyn Fn(f64) -> f64,
    witness: Option<Witness>,
) -> [Came; 2] {
    let both = [up, down].map(|line| traffic(line, GREEDY, line(0.0) * 0.9));
    run_both(both, &four(), witness, 60.0)
}

/// Of that rate, and from 20 s on of another one.
fn step(before: f64, after: f64) -> impl Fn(f64) -> f64 {
    move |now_s| if now_s < 20.0 { before } else { after }
}

#[test]
fn both_directions_at_once() {
    let cases = [
        ("steady", step(20e6, 20e6), step(100e6, 100e6)),
        ("slower up", step(20e6, 8e6), step(100e6, 100e6)),
        ("slower down", step(20e6, 20e6), step(100e6, 40e6)),
        ("slower both", step(20e6, 8e6), step(100e6, 40e6)),
    ];
    for (name, up, down) in &cases {
        for witness in [None, Some(WITNESS)] {
            let came = both_loaded(up, down, witness);
            for (came, direction) in came.iter().zip(["up", "down"]) {
                let (p95, used) = (came.p95(30.0), came.used(30.0));
                let told = witness.is_some();
                println!("{name} {direction} {told}: p95 {p95} used {used}");
                assert!(p95 <= 0.030, "{name} {direction} {told}: {p95}");
                assert!(used >= 0.8, "{name} {direction} {told}: {used}");
            }
        }
    }
}

#[test]
fn trouble_of_who_tells_its_times_is_not_the_lines() {
    let witness = Witness {
        trouble: |now_s| if now_s > 20.0 { 0.150 } else { 0.0 },
        ..WITNESS
    };
    for came in both_loaded(&|_| 20e6, &|_| 100e6, Some(witness)) {
        println!("used {} p95 {}", came.used(20.0), came.p95(20.0));
        assert!(came.used(20.0) >= 0.9, "{}", came.used(20.0));
        assert!(came.p95(20.0) <= 0.030, "{}", came.p95(20.0));
    }
}

#[test]
fn a_download_over_a_line_that_became_slow_while_idle() {
    let late = |now_s: f64| if now_s < 20.0 { 0.0 } else { 1e9 };
    let down = traffic(&|_| 20e6, &late, 90e6);
    let up = traffic(&|_| 20e6, &|_| 0.0, 18e6);
    let [_, came] = run_both([up, down], &four(), Some(WITNESS), 60.0);
    println!("used {} p95 {}", came.used(30.0), came.p95(30.0));
    assert!(came.used(30.0) >= 0.8, "{}", came.used(30.0));
    assert!(came.p95(30.0) <= 0.030, "{}", came.p95(30.0));
}

#[test]
fn an_idle_line_does_nothing() {
    let came = run(World {
        line: &|_| 20e6,
        demand: &|_| 1e6,
        reflectors: four(),
        base_bps: 15e6,
        seconds: 60.0,
    });
    assert!(came.rates_bps.iter().all(|bps| *bps == 15e6));
}

#[test]
fn one_reflector_in_trouble_is_not_the_line() {
    let troubles: [fn(f64) -> f64; 3] = [
        |now_s| if now_s > 20.0 { 0.150 } else { 0.0 },
        |now_s| if now_s > 20.0 { f64::INFINITY } else { 0.0 },
        |now_s| if now_s % 2.0 < 1.0 { 0.080 } else { 0.0 },
    ];
    for trouble in troubles {
        let mut reflectors = four();
        reflectors[1].trouble = trouble;
        let came = run(World {
            line: &|_| 20e6,
            demand: GREEDY,
            reflectors,
            base_bps: 18e6,
            seconds: 60.0,
        });
        assert!(came.used(22.0) >= 0.9, "{}", came.used(22.0));
        assert!(came.p95(22.0) <= 0.030, "{}", came.p95(22.0));
    }
}

#[test]
fn without_reflectors_the_line_is_not_throttled() {
    for dead in [1, 3, 4] {
        let mut reflectors = four();
        for reflector in reflectors.iter_mut().take(dead) {
            reflector.trouble = |now_s| if now_s > 20.0 { f64::INFINITY } else { 0.0 };
        }
        let came = run(World {
            line: &|_| 20e6,
            demand: GREEDY,
            reflectors,
            base_bps: 18e6,
            seconds: 60.0,
        });
        assert!(came.used(20.0) >= 0.85, "{dead}: {}", came.used(20.0));
        assert!(came.rate_at(59.0) >= 17e6, "{dead}: {}", came.rate_at(59.0));
    }
}

#[test]
fn a_longer_route_to_all_is_soon_taken_for_what_it_is() {
    let mut reflectors = four();
    for reflector in &mut reflectors {
        reflector.trouble = |now_s| if now_s > 20.0 { 0.060 } else { 0.0 };
    }
    let came = run(World {
        line: &|_| 20e6,
        demand: GREEDY,
        reflectors,
        base_bps: 18e6,
        seconds: 60.0,
    });
    assert!(came.used(25.0) >= 0.9, "{}", came.used(25.0));
    assert!(came.p95(25.0) <= 0.030, "{}", came.p95(25.0));
}

#[test]
fn answers_that_cannot_be_are_ignored() {
    let limits = Limits {
        least_bps: 1e6,
        base_bps: 10e6,
        most_bps: 20e6,
    };
    let mut follow = Follow::new(limits, limits, 1);
    follow.answered(0, 0.0, f64::NAN);
    follow.answered(0, 0.1, -1.0);
    follow.answered(9, 0.2, 0.01);
    follow.answered_by_direction(0.1, 0.01, f64::NAN, 0.0);
    follow.answered_by_direction(0.1, -0.01, 0.0, 0.0);
    for step in 0..100 {
        let now_s = f64::from(step) * 0.05;
        follow.tick(now_s, now_s * 10e6, 0.0);
    }
    assert_eq!(follow.rate_bps(OneDirection::Up), 10e6);
}
