//! CAKE under flows that answer to it: what its authors publish of it.

#![allow(clippy::indexing_slicing)]

use crate::queue::sim::{Flow, Outcome, cubic, reno, run, sparse};

/// The outcomes of the flows at 20 Mbit/s with these settings of the queue.
fn outcomes(settings: &[(&str, &str)], flows: &[Flow]) -> Vec<Outcome> {
    let mut pairs = vec![("rate", "20mbit"), ("queue", "cake")];
    pairs.extend(settings);
    run(&pairs, flows, 60, 1)
}

#[test]
fn a_sparse_flow_hardly_waits_beside_two_greedy_ones() {
    let flows = [reno(1, 40), reno(2, 40), sparse(3)];
    let out = outcomes(&[], &flows);
    let (a, b, call) = (&out[0], &out[1], &out[2]);
    let worst = call.quantile_wait_ms(1.0);
    assert!(worst <= 5.0 && call.lost == 0, "{worst} ms");
    let share = a.bytes as f64 / (a.bytes + b.bytes) as f64;
    assert!((share - 0.5).abs() < 0.05, "{share}");
    // The line is used, in the 40 s after the warm-up.
    let used = (a.bytes + b.bytes + call.bytes) as f64 * 8.0 / 40.0 / 20e6;
    assert!(used > 0.9, "{used}");
}

#[test]
fn capable_flows_are_marked_and_lose_nothing() {
    let capable = Flow {
        ecn: 2,
        ..reno(1, 40)
    };
    let out = outcomes(&[], &[capable, reno(2, 40)]);
    assert!(out[0].marked > 0 && out[0].lost == 0);
    assert!(out[1].marked == 0 && out[1].lost > 0);
}

/// The share of a host with one flow beside a host with three, over a round trip at which one
/// flow under COBALT can use half of the line: at 40 ms it could not, were it alone.
fn share_of_one_beside_three(isolation: &str) -> f64 {
    let flows = [cubic(1, 20), cubic(2, 20), cubic(2, 20), cubic(2, 20)];
    let out = outcomes(&[("isolation", isolation)], &flows);
    let bytes: u64 = out.iter().map(|outcome| outcome.bytes).sum();
    out[0].bytes as f64 / bytes as f64
}

#[test]
fn hosts_get_equal_shares_however_many_flows_they_have() {
    for isolation in ["dual-srchost", "dual-dsthost", "triple-isolate", "hosts"] {
        let share = share_of_one_beside_three(isolation);
        assert!((share - 0.5).abs() < 0.01, "{isolation}: {share}");
    }
    let share = share_of_one_beside_three("flows");
    assert!((share - 0.25).abs() < 0.01, "flows: {share}");
}
