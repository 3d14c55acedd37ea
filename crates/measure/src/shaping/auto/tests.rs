//! Lines that the search does not know, packet by packet, against a fine sweep of each.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::framing::Framing;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use super::*;
use crate::shaping::search::End;
use crate::shaping::test_line::{Line, Processor, Running, p95};

const LOOK_S: f64 = 0.05;

/// Runs the search over a line; how long it took besides.
fn found(line: &Line) -> (Outcome, f64) {
    let mut running: Running = line.start();
    let mut auto = Auto::default();
    let (mut elapsed_s, mut added_s) = (0.0, Vec::new());
    loop {
        let look = Look {
            elapsed_s,
            carried_bits: running.carried_bits,
            added_s: &added_s,
            processors: &running.processors(),
        };
        match auto.look(&look) {
            Order::Keep => {}
            Order::Off => running.set(None),
            Order::Rate(rate_bps) => running.set(Some(rate_bps)),
            Order::End => return (auto.finish(), elapsed_s),
        }
        running.run(LOOK_S);
        elapsed_s += LOOK_S;
        added_s = running.take_added();
    }
}

/// The highest rate, in steps of 2 %, with which the latency stays low for 20 s, when bursts are used up.
fn best_bps(line: &Line, nominal_bps: f64) -> f64 {
    let mut rate_bps = nominal_bps * 1.1;
    loop {
        let mut running = line.start();
        running.run(8.0);
        running.set(Some(rate_bps * 0.3));
        running.run(2.0);
        running.set(Some(rate_bps));
        running.run(1.0);
        running.take_added();
        running.run(20.0);
        if p95(&running.take_added()) <= MOST_ADDED_S {
            return rate_bps;
        }
        rate_bps *= 0.98;
        assert!(rate_bps > nominal_bps * 0.2, "no rate passes: {line:?}");
    }
}

/// A line at random: its rate, queue, framing, jitter and loss, and how its rate behaves.
fn drawn(seed: u64) -> (Line, f64) {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut between = |low: f64, high: f64| low + (high - low) * random.random::<f64>();
    let rate_bps = (between(2e6_f64.ln(), 30e6_f64.ln())).exp().round();
    let queue_ms = between(80.0_f64.ln(), 1000.0_f64.ln()).exp().round();
    let framings = ["docsis", "ethernet", "pppoe-ptm", "pppoe-llcsnap", "raw"];
    let framing: Framing = framings
        .get(between(0.0, 5.0) as usize)
        .unwrap()
        .parse()
        .unwrap();
    let delay_ms = between(2.0, 75.0).round();
    let jitter_s = between(0.0002, 0.006);
    let loss = between(0.0, 0.3);
    let queue = format!("queue = {{ type = \"fifo\", limit = \"{queue_ms}ms\" }}");
    let rate = match seed % 4 {
        0 => format!("rate = \"{rate_bps}bit\""),
        // It varies by a tenth around its mean.
        1 => {
            let period_s = between(4.0, 12.0);
            let step = |part: f64, ratio: f64| {
                format!(
                    "{{ at = \"{:.3}s\", rate = \"{}bit\" }}",
                    part * period_s,
                    (rate_bps * ratio).round()
                )
            };
            let steps = [
                step(0.0, 1.0),
                step(0.25, 1.1),
                step(0.5, 1.0),
                step(0.75, 0.9),
            ];
            format!(
                "period = \"{period_s:.3}s\", schedule = [{}]",
                steps.join(", ")
            )
        }
        // As by radio: another rate every few hundredths of a second, for ten seconds that come again.
        2 => {
            let step_s = between(0.03, 0.12);
            let depth = between(0.1, 0.35);
            let count = (10.0 / step_s) as usize;
            let steps = (0..count).map(|number| {
                let ratio = 1.0 + depth * (2.0 * between(0.0, 1.0) - 1.0);
                let (at_s, bps) = (number as f64 * step_s, (rate_bps * ratio).round());
                format!("{{ at = \"{at_s:.3}s\", rate = \"{bps}bit\" }}")
            });
            let steps: Vec<String> = steps.collect();
            let period_s = count as f64 * step_s;
            format!(
                "period = \"{period_s:.3}s\", schedule = [{}]",
                steps.join(", ")
            )
        }
        // A burst of up to a second of the rate is saved up while it is free.
        _ => {
            let burst = (rate_bps / 8.0 * between(0.2, 1.0)).round();
            format!("rate = \"{rate_bps}bit\", burst = \"{burst}B\"")
        }
    };
    let cells = format!(
        "{{ type = \"shaper\", name = \"line\", {rate}, framing = \"{framing}\", {queue} }}, \
         {{ type = \"loss\", ratio = \"{loss:.3}%\" }}, {{ type = \"delay\", delay = \"{delay_ms}ms\" }}"
    );
    let line = Line {
        cells,
        framing,
        load_bps: rate_bps * 1.5,
        jitter_s,
        processor: Processor::Idle,
        seed,
    };
    (line, rate_bps)
}

/// Searches each line, compares it with its sweep, and returns how far from the best rate it came.
fn compared(seeds: std::ops::Range<u64>) -> Vec<f64> {
    let (mut ratios, mut times) = (Vec::new(), Vec::new());
    for seed in seeds {
        let (line, nominal_bps) = drawn(seed);
        let best_bps = best_bps(&line, nominal_bps);
        let (outcome, took_s) = found(&line);
        let Some(rate_bps) = outcome.rate_bps else {
            println!("{seed}: {outcome:?} where {best_bps:.3e} passes: {line:?}");
            ratios.push(f64::NAN);
            continue;
        };
        let ratio = rate_bps / best_bps;
        println!(
            "{seed}: {ratio:.3} of {best_bps:.3e} ({:.3} of nominal) in {took_s:.1} s, {:?}, {} blocks, {:?}",
            best_bps / nominal_bps,
            outcome.end,
            outcome.blocks.len(),
            outcome.trade
        );
        assert!(took_s <= 60.0, "{seed}: {took_s}");
        if let Some(trade) = outcome.trade {
            assert!(trade.on_added_s < trade.off_added_s, "{seed}: {trade:?}");
        }
        ratios.push(ratio);
        times.push(took_s);
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let (all, times) = (sorted(&ratios), sorted(&times));
    let at = |values: &[f64], part: f64| values[((values.len() - 1) as f64 * part) as usize];
    println!(
        "of the best rate: least {:.3}, 5 % {:.3}, median {:.3}, 95 % {:.3}, most {:.3}; median {:.1} s, most {:.1} s",
        at(&all, 0.0),
        at(&all, 0.05),
        at(&all, 0.5),
        at(&all, 0.95),
        at(&all, 1.0),
        at(&times, 0.5),
        at(&times, 1.0)
    );
    ratios
}

fn all_are_close(seeds: std::ops::Range<u64>) {
    let ratios = compared(seeds);
    let far = ratios.iter().filter(|ratio| !(0.9..=1.1).contains(*ratio));
    assert_eq!(far.count(), 0, "{ratios:?}");
}

#[test]
fn ten_lines_that_it_does_not_know() {
    all_are_close(100..110);
}

mod slow {
    #[test]
    #[ignore = "slow"]
    fn fifty_lines_more() {
        super::all_are_close(200..250);
    }
}

#[test]
fn a_line_with_a_short_queue_needs_no_shaper() {
    let line = Line {
        cells: r#"{ type = "shaper", name = "line", rate = "20mbit", queue = { type = "fifo", limit = "15ms" } }, { type = "delay", delay = "9ms" }"#.into(),
        framing: Framing::default(),
        load_bps: 30e6,
        jitter_s: 0.001,
        processor: Processor::Idle,
        seed: 1,
    };
    let (outcome, took_s) = found(&line);
    assert_eq!(outcome.end, End::NotNeeded);
    assert_eq!(outcome.rate_bps, None);
    assert!(took_s < 15.0, "{took_s}");
}

#[test]
fn a_far_end_that_answers_late_whatever_the_rate_gets_no_shaper() {
    let line = Line {
        cells: r#"{ type = "shaper", name = "line", rate = "20mbit", queue = { type = "fifo", limit = "300ms" } }, { type = "delay", delay = "9ms" }"#.into(),
        framing: Framing::default(),
        load_bps: 30e6,
        jitter_s: 0.100,
        processor: Processor::Idle,
        seed: 1,
    };
    let (outcome, took_s) = found(&line);
    println!("{took_s} {outcome:?}");
    assert!(
        matches!(outcome.end, End::LateAtAnyRate | End::OutOfTime),
        "{outcome:?}"
    );
    assert!(took_s <= 60.0);
}

/// 30 Mbit/s behind half a second of queue, shaped by a machine of that processor.
fn shaped_by(processor: Processor) -> Outcome {
    let line = Line {
        cells: r#"{ type = "shaper", name = "line", rate = "30mbit", queue = { type = "fifo", limit = "500ms" } }, { type = "delay", delay = "9ms" }"#.into(),
        framing: Framing::default(),
        load_bps: 45e6,
        jitter_s: 0.001,
        processor,
        seed: 1,
    };
    let (outcome, took_s) = found(&line);
    println!("{processor:?}: {took_s} {outcome:?}");
    assert!(took_s <= 60.0);
    outcome
}

#[test]
fn no_shaper_is_advised_that_the_processor_cannot_carry() {
    for most_bps in [8e6, 15e6, 24e6] {
        let outcome = shaped_by(Processor::Most(most_bps));
        let rate_bps = outcome.rate_bps.unwrap();
        assert!((0.9..=1.01).contains(&(rate_bps / most_bps)), "{outcome:?}");
        let full_bps = outcome.processor_bps.unwrap();
        assert!((full_bps / most_bps - 1.0).abs() < 0.05, "{outcome:?}");
    }
    let outcome = shaped_by(Processor::Most(3e6));
    assert_eq!((outcome.end, outcome.rate_bps), (End::ProcessorFull, None));
}

#[test]
fn a_processor_that_is_full_and_holds_nothing_up_is_no_matter() {
    for processor in [Processor::Full, Processor::Most(60e6)] {
        let outcome = shaped_by(processor);
        assert_eq!((outcome.end, outcome.processor_bps), (End::Found, None));
        assert!((0.9..=1.0).contains(&(outcome.rate_bps.unwrap() / 30e6)));
    }
}
