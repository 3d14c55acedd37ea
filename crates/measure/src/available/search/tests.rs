//! The search on simulated paths, in virtual time.

#![allow(clippy::indexing_slicing)]
use super::*;

/// Seconds of a step.
const STEP_S: f64 = 1.5;

/// A path as fluid: a policer with a bucket, or a queue in front of a rate, and losses by chance.
#[derive(Clone, Copy)]
struct Path {
    rate_bps: f64,
    /// What passes above the rate before anything is lost; refilled between steps.
    buffer_bits: f64,
    /// Whether what is in the buffer waits (a queue) or went ahead (a bucket).
    queues: bool,
    random_loss: f64,
    sender_most_bps: f64,
    receiver_most_bps: f64,
}

impl Path {
    fn queue(rate_bps: f64, queue_s: f64) -> Self {
        Self {
            rate_bps,
            buffer_bits: rate_bps * queue_s,
            queues: true,
            random_loss: 0.0,
            sender_most_bps: f64::INFINITY,
            receiver_most_bps: f64::INFINITY,
        }
    }

    fn step(&self, asked_bps: f64) -> Seen {
        let sent_bps = asked_bps.min(self.sender_most_bps);
        let reaching_bps = sent_bps * (1.0 - self.random_loss);
        let excess_bits = (reaching_bps - self.rate_bps).max(0.0) * STEP_S;
        let overflow_bits = (excess_bits - self.buffer_bits).max(0.0);
        let held_bits = if self.queues {
            excess_bits - overflow_bits
        } else {
            0.0
        };
        let sent_bits = sent_bps * STEP_S;
        let arriving_bits = sent_bits * (1.0 - self.random_loss) - overflow_bits - held_bits;
        let taken_bits = arriving_bits.min(self.receiver_most_bps * STEP_S);
        Seen {
            asked_bps,
            duration_s: STEP_S,
            sent_bps,
            received_bps: taken_bits / STEP_S,
            loss_ratio: self.random_loss + overflow_bits / sent_bits,
            dropped_here_ratio: (arriving_bits - taken_bits) / sent_bits,
            queued_ratio: held_bits / self.rate_bps / STEP_S,
        }
    }

    fn search(&self, tcp_bps: f64) -> Outcome {
        let mut search = Search::from_tcp(tcp_bps);
        while let Some(bps) = search.next_bps() {
            search.record(&self.step(bps));
        }
        search.finish()
    }
}

/// Within what is found: 1 % may be lost, and the bracket is as wide.
fn finds(path: Path, tcp_bps: f64, most_steps: usize) {
    let outcome = path.search(tcp_bps);
    let found = outcome.bps.unwrap_or(0.0) / path.rate_bps;
    assert!(
        outcome.ended == SearchEnd::Found && (0.98..1.02).contains(&found),
        "{found} of the rate, from {tcp_bps}: {outcome:?}"
    );
    assert!(
        outcome.steps.len() <= most_steps,
        "{} steps from {tcp_bps}: {outcome:?}",
        outcome.steps.len()
    );
    let mut before = f64::INFINITY;
    for step in &outcome.steps {
        assert!(step.asked_bps <= before * 2.0 + 1.0, "{outcome:?}");
        before = step.asked_bps;
    }
}

#[test]
fn a_line_is_found_from_what_tcp_had() {
    for rate_bps in [1e6, 50e6, 1e9] {
        // A TCP that used the line, and ones that were held back.
        finds(Path::queue(rate_bps, 0.05), 0.95 * rate_bps, 5);
        finds(Path::queue(rate_bps, 0.05), 0.7 * rate_bps, 8);
        finds(Path::queue(rate_bps, 0.05), 0.1 * rate_bps, 10);
        // One that had been carried faster than the line is now.
        finds(Path::queue(rate_bps, 0.05), 1.6 * rate_bps, 6);
    }
}

#[test]
fn a_queue_longer_than_a_step_hides_nothing() {
    finds(Path::queue(20e6, 5.0), 18e6, 6);
    finds(Path::queue(20e6, 0.0), 18e6, 6);
}

#[test]
fn a_policer_is_found_by_what_it_drops() {
    let policer = Path {
        queues: false,
        ..Path::queue(10e6, 30e3 * 8.0 / 10e6)
    };
    let outcome = policer.search(9e6);
    let found = outcome.bps.unwrap_or(0.0) / 10e6;
    // The bucket of 30 kB lets 1.6 % more pass in 1.5 s.
    assert!((0.99..1.03).contains(&found), "{outcome:?}");
}

#[test]
fn losses_by_chance_below_the_threshold_do_not_matter() {
    let path = Path {
        random_loss: 0.005,
        ..Path::queue(50e6, 0.05)
    };
    finds(path, 10e6, 10);
}

#[test]
fn losses_that_do_not_come_from_the_rate_are_told() {
    let path = Path {
        random_loss: 0.03,
        ..Path::queue(50e6, 0.05)
    };
    let outcome = path.search(4e6);
    assert_eq!(
        (outcome.bps, outcome.ended),
        (None, SearchEnd::LossAtAnyRate)
    );
    assert!(outcome.steps.len() <= 6, "{outcome:?}");
}

#[test]
fn hosts_that_are_too_slow_are_not_taken_for_the_path() {
    let path = Path::queue(10e9, 0.01);
    let sender = Path {
        sender_most_bps: 3e9,
        ..path
    }
    .search(2e9);
    assert_eq!(sender.ended, SearchEnd::SenderTooSlow);
    assert_eq!((sender.bps, sender.above_bps), (None, None));
    assert_eq!(sender.at_least_bps, Some(3e9));
    // One that was held up in a single step is not slow.
    for held_up_in in [1, 3] {
        let mut search = Search::from_tcp(48e6);
        let mut steps = 0;
        let path = Path::queue(50e6, 0.25);
        while let Some(bps) = search.next_bps() {
            steps += 1;
            let part = if steps == held_up_in { 0.8 } else { 1.0 };
            let seen = path.step(bps * part);
            search.record(&Seen {
                asked_bps: bps,
                ..seen
            });
        }
        let held_up = search.finish();
        let verdict = held_up.steps[held_up_in - 1].verdict;
        assert!(
            held_up.ended == SearchEnd::Found && verdict == StepVerdict::SenderTooSlow,
            "{held_up:?}"
        );
    }
    let path = Path::queue(10e9, 0.01);
    let receiver = Path {
        receiver_most_bps: 3e9,
        ..path
    }
    .search(2e9);
    assert_eq!(receiver.ended, SearchEnd::ReceiverTooSlow);
    assert_eq!((receiver.bps, receiver.above_bps), (None, None));
    // All of the 3 Gbit/s that it took had come without loss.
    assert_eq!(receiver.at_least_bps, Some(3e9));
}

#[test]
fn a_receiver_that_takes_less_than_tcp_had_is_no_end_without_a_number() {
    let path = Path {
        receiver_most_bps: 3e9,
        ..Path::queue(40e9, 0.01)
    };
    let outcome = path.search(30e9);
    assert_eq!(outcome.ended, SearchEnd::ReceiverTooSlow, "{outcome:?}");
    assert_eq!((outcome.bps, outcome.above_bps), (None, None));
    let known = outcome.at_least_bps.unwrap_or(0.0);
    assert!((2.9e9..=3e9).contains(&known), "{outcome:?}");
    // One that never keeps up, behind a path that loses.
    let path = Path {
        random_loss: 0.009,
        receiver_most_bps: 1e6,
        ..Path::queue(40e9, 0.01)
    };
    let outcome = path.search(30e9);
    assert_eq!(outcome.ended, SearchEnd::ReceiverTooSlow, "{outcome:?}");
    assert_eq!(outcome.at_least_bps, Some(1e6));
    // What the path certainly lost is the path's, whatever the receiver drops.
    let path = Path {
        random_loss: 0.03,
        receiver_most_bps: 1e6,
        ..Path::queue(40e9, 0.01)
    };
    let outcome = path.search(30e9);
    assert_eq!(outcome.ended, SearchEnd::LossAtAnyRate, "{outcome:?}");
}

#[test]
fn a_sender_that_leaves_out_slots_gets_there_all_the_same() {
    // Each step sends another part of what it was asked for, as on a machine with other work.
    let parts = [0.988, 0.995, 0.97, 1.0, 0.982, 0.991, 0.976];
    for first in 0..parts.len() {
        for tcp_bps in [8e6, 48e6] {
            let path = Path::queue(50e6, 0.25);
            let mut search = Search::from_tcp(tcp_bps);
            let mut parts = parts.iter().cycle().skip(first);
            while let (Some(bps), Some(part)) = (search.next_bps(), parts.next()) {
                let seen = path.step(bps * part);
                search.record(&Seen {
                    asked_bps: bps,
                    ..seen
                });
            }
            let outcome = search.finish();
            let found = outcome.bps.unwrap_or(0.0) / path.rate_bps;
            assert!(
                outcome.ended == SearchEnd::Found && (0.98..1.02).contains(&found),
                "{found}: {outcome:?}"
            );
            assert!(outcome.steps.len() <= 12, "{outcome:?}");
        }
    }
}

#[test]
fn a_machine_that_stands_still_in_one_step_moves_nothing() {
    // What the sender is late by waits in the path too, or is lost there.
    for (stall_s, is_lost) in [(0.06, false), (0.06, true), (0.2, false), (0.4, true)] {
        for stalled_in in 0..12 {
            for tcp_bps in [8e6, 48e6] {
                let path = Path::queue(50e6, 0.25);
                let mut search = Search::from_tcp(tcp_bps);
                let mut steps = 0;
                while let Some(bps) = search.next_bps() {
                    let part = if steps == stalled_in {
                        1.0 - stall_s / STEP_S
                    } else {
                        1.0
                    };
                    let mut seen = path.step(bps * part);
                    if steps == stalled_in {
                        let more = stall_s / STEP_S;
                        *(if is_lost {
                            &mut seen.loss_ratio
                        } else {
                            &mut seen.queued_ratio
                        }) += more;
                    }
                    search.record(&Seen {
                        asked_bps: bps,
                        ..seen
                    });
                    steps += 1;
                }
                let outcome = search.finish();
                let found = outcome.bps.unwrap_or(0.0) / path.rate_bps;
                assert!(
                    outcome.ended == SearchEnd::Found && (0.97..1.02).contains(&found),
                    "{stall_s} s in step {stalled_in} from {tcp_bps}: {found}: {outcome:?}"
                );
            }
        }
    }
}

#[test]
fn a_search_can_be_stopped() {
    let path = Path::queue(50e6, 0.05);
    let begun = || {
        let mut search = Search::from_tcp(10e6);
        assert_eq!(search.next_bps(), Some(9.5e6));
        search.record(&path.step(9.5e6));
        search
    };
    for why in [SearchEnd::OutOfBudget, SearchEnd::FarEndLost] {
        let mut search = begun();
        search.stop(why);
        assert_eq!(search.next_bps(), None);
        let outcome = search.finish();
        // Nothing has failed: there is no bracket, and what passed is the least that is carried.
        assert_eq!((outcome.bps, outcome.above_bps), (None, None));
        assert_eq!((outcome.at_least_bps, outcome.ended), (Some(9.5e6), why));
    }
    // One that failed makes one, however wide.
    let mut search = begun();
    search.record(&path.step(80e6));
    search.stop(SearchEnd::Cancelled);
    let outcome = search.finish();
    assert_eq!((outcome.bps, outcome.above_bps), (Some(9.5e6), Some(80e6)));
    assert_eq!(outcome.ended, SearchEnd::Cancelled);
}
