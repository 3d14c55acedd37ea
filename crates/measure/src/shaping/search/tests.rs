#![allow(clippy::unwrap_used)]

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use super::*;

/// A line of 20 Mbit/s with 700 ms of queue, of which a part of the blocks shows the opposite of what is true.
fn searched(seed: u64, wrong_ratio: f64) -> Outcome {
    const LINE_BPS: f64 = 20e6;
    let mut random = Pcg64::seed_from_u64(seed);
    let mut search = Search::default();
    while let Some(next) = search.next() {
        let rate_bps = match next {
            Try::Off => None,
            Try::Rate(rate_bps) => Some(rate_bps),
        };
        let passes = rate_bps.is_some_and(|rate_bps| rate_bps <= LINE_BPS);
        let wrong = rate_bps.is_some() && random.random::<f64>() < wrong_ratio;
        search.record(Block {
            rate_bps,
            carried_bps: rate_bps.unwrap_or(LINE_BPS).min(LINE_BPS),
            added_p95_s: if passes != wrong { 0.004 } else { 0.2 },
            busiest_ratio: None,
        });
    }
    search.finish()
}

#[test]
fn without_noise_it_needs_few_blocks() {
    let outcome = searched(1, 0.0);
    let ratio = outcome.rate_bps.unwrap() / 20e6;
    assert!((0.93..=1.0).contains(&ratio), "{outcome:?}");
    assert_eq!(outcome.end, End::Found);
    assert!(outcome.blocks.len() <= 14, "{outcome:?}");
    let trade = outcome.trade.unwrap();
    assert_eq!((trade.off_added_s, trade.on_added_s), (0.2, 0.004));
    assert!(trade.on_bps < trade.off_bps);
}

#[test]
fn a_block_in_twelve_that_lies_moves_it_little() {
    let close = |seed: &u64| {
        let ratio = searched(*seed, 1.0 / 12.0).rate_bps.unwrap() / 20e6;
        (0.9..=1.05).contains(&ratio)
    };
    let right = (0..200).filter(close).count();
    assert!(right >= 180, "{right} of 200");
}

#[test]
fn off_and_on_take_turns_before_it_ends() {
    let blocks = searched(3, 0.0).blocks;
    let off: Vec<usize> = (0..blocks.len())
        .filter(|number| blocks.get(*number).unwrap().rate_bps.is_none())
        .collect();
    assert_eq!(off.len(), OFF_BLOCKS);
    // The later one stands between two of the rate that was found.
    assert_eq!(off.get(1), Some(&(blocks.len() - 2)), "{blocks:?}");
}

#[test]
fn nothing_carried_ends_it_too() {
    let mut search = Search::default();
    let mut blocks = 0;
    while search.next().is_some() {
        blocks += 1;
        search.record(Block {
            rate_bps: None,
            carried_bps: 0.0,
            added_p95_s: f64::INFINITY,
            busiest_ratio: None,
        });
    }
    assert!(blocks <= MOST_BLOCKS);
    assert_eq!(search.finish().rate_bps, None);
}

/// A line of 100 Mbit/s: what is shaped to more than that adds little in a block, as TCP has yet to fill the queue, and carries
/// no more than the line.
#[test]
fn a_rate_above_the_lines_does_not_pass_because_its_queue_is_not_full_yet() {
    const LINE_BPS: f64 = 100e6;
    let mut search = Search::default();
    while let Some(next) = search.next() {
        let (rate_bps, added_p95_s) = match next {
            Try::Off => (None, 0.25),
            Try::Rate(rate_bps) if rate_bps <= LINE_BPS => (Some(rate_bps), 0.001),
            Try::Rate(rate_bps) if rate_bps <= 1.1 * LINE_BPS => (Some(rate_bps), 0.026),
            Try::Rate(rate_bps) => (Some(rate_bps), 0.042),
        };
        search.record(Block {
            rate_bps,
            carried_bps: rate_bps.unwrap_or(LINE_BPS).min(LINE_BPS),
            added_p95_s,
            busiest_ratio: None,
        });
    }
    let outcome = search.finish();
    let ratio = outcome.rate_bps.unwrap() / LINE_BPS;
    assert!((0.9..=1.02).contains(&ratio), "{outcome:?}");
}
