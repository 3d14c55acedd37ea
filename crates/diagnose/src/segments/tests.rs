#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::finding::{Cause, Evidence};
use plumb_model::results::{Outcome, PathPlace, PathQueueing, PlaceLatency, PlaceMethod};
use proptest::prelude::*;

use super::*;

/// A healthy check of a host on a path.
fn healthy(name: &str) -> Run {
    let mut run = Run::from_json(include_str!("../../fixtures/home-cable-managed.json")).unwrap();
    run.id = name.to_owned();
    let number = name.bytes().last().unwrap();
    let target = run.target.as_mut().unwrap();
    (target.name, target.address) = (name.to_owned(), Some(format!("192.0.{number}.1")));
    run
}

fn with(mut run: Run, cause: Cause, place: Place) -> Run {
    let beside = |m: &&plumb_model::run::Measurement| matches!(&m.outcome, Outcome::LoadedLatency(l) if l.direction == Direction::Up);
    let measurement = run.measurements.iter().find(beside).unwrap().id.clone();
    run.findings.push(Finding {
        cause,
        place,
        severity: Severity::Warning,
        confidence: 0.9,
        matters_for: Vec::new(),
        summary: "It is there.".to_owned(),
        evidence: vec![Evidence {
            measurement,
            field: "result.increase_s.p95".to_owned(),
            value: 0.5.into(),
            rule: "at most".to_owned(),
            threshold: 0.1.into(),
        }],
        fixes: Vec::new(),
        kb: "bufferbloat".to_owned(),
    });
    run
}

/// With so many idle probes of which so many were lost, and found where they are many.
fn losing(mut run: Run, sent: u64, lost: u64) -> Run {
    for measurement in &mut run.measurements {
        if let Outcome::Ping(ping) = &mut measurement.outcome {
            (ping.sent, ping.received, ping.dropped_here) = (sent, sent - lost, 0);
        }
    }
    match lost * 50 > sent {
        true => with(run, Cause::PathLoss, Place::Path),
        false => run,
    }
}

/// With a queue beside an upload of so many bit/s.
fn queued(mut run: Run, bps: f64, increase_s: f64) -> Run {
    for measurement in &mut run.measurements {
        match &mut measurement.outcome {
            Outcome::Throughput(load) if load.direction == Direction::Up => {
                (load.bps, load.steady_bps) = (bps, Some(bps));
            }
            Outcome::LoadedLatency(loaded) if loaded.direction == Direction::Up => {
                loaded.increase_s.p95 = increase_s;
            }
            _ => {}
        }
    }
    match increase_s > 0.1 {
        true => with(run, Cause::BufferbloatUp, Place::Uplink),
        false => run,
    }
}

/// One that answers pings alone.
fn pinged(mut run: Run) -> Run {
    run.measurements
        .retain(|m| m.context.load.is_none() && !matches!(m.outcome, Outcome::LoadedLatency(_)));
    run
}

fn of(runs: &[Run], cause: Cause) -> Vec<(Vec<usize>, Option<usize>)> {
    let all = segments(runs).findings.into_iter();
    let all = all.filter(|finding| finding.cause == cause);
    all.map(|finding| (finding.segments, finding.only_at))
        .collect()
}

#[test]
fn a_queue_is_before_the_first_host_that_has_it() {
    let [a, b, c] = ["a", "b", "c"].map(healthy);
    let [fast, queue] = [(90e6, 0.01), (20e6, 0.3)];
    let set = |run: &Run, (bps, s): (f64, f64)| queued(run.clone(), bps, s);
    let at = |of_a, of_b, of_c| {
        let runs = [set(&a, of_a), set(&b, of_b), set(&c, of_c)];
        of(&runs, Cause::BufferbloatUp)
    };
    assert_eq!(at(queue, queue, queue), [(vec![0], None)]);
    assert_eq!(at(fast, queue, queue), [(vec![1], None)]);
    assert_eq!(at(fast, fast, queue), [(vec![2], None)]);
    // Near the threshold: a rule misses it, and most of it is there.
    assert_eq!(at(fast, (20e6, 0.09), (20e6, 0.12)), [(vec![1], None)]);
    // A slow responder reaches no queue.
    let slow = (5e6, 0.01);
    assert_eq!(at(fast, slow, queue), [(vec![1, 2], None)]);
    assert_eq!(at(slow, slow, queue), [(vec![0, 1, 2], None)]);
    // A queue that the end does not have is of the middle itself.
    assert_eq!(at(fast, queue, fast), [(vec![], Some(1))]);
    // A longer one beyond one that is there already.
    let two = at(fast, (20e6, 0.3), (20e6, 1.5));
    assert_eq!(two, [(vec![2], None), (vec![1], None)]);
}

#[test]
fn a_load_that_passes_a_host_shows_its_queue_there() {
    let mut end = queued(healthy("c"), 20e6, 0.3);
    let beside = |run: &mut Run, increase_s: f64| {
        for measurement in &mut run.measurements {
            if let Outcome::LoadedLatency(loaded) = &mut measurement.outcome {
                let (mut increase, rtt_s) = (loaded.increase_s, loaded.rtt_s);
                increase.p95 = increase_s;
                let place = PlaceLatency {
                    place: PathPlace::FirstHopBeyond,
                    address: "192.0.97.1".to_owned(),
                    method: PlaceMethod::Echo,
                    idle_rtt_s: loaded.idle_rtt_s,
                    rtt_s,
                    increase_s: increase,
                    loss_ratio: 0.0,
                };
                loaded.path = Some(PathQueueing {
                    places: vec![place],
                    local_increase_s: increase,
                    beyond_increase_s: increase,
                    local_ratio: None,
                });
            }
        }
    };
    beside(&mut end, 0.002);
    let of_end = |end: &Run| of(&[pinged(healthy("a")), end.clone()], Cause::BufferbloatUp);
    assert_eq!(of_end(&end), [(vec![1], None)]);
    beside(&mut end, 0.29);
    assert_eq!(of_end(&end), [(vec![0], None)]);
    let unseen = [pinged(healthy("b")), end];
    assert_eq!(of(&unseen, Cause::BufferbloatUp), [(vec![0, 1], None)]);
    let why = &segments(&unseen).findings[0].shares[0];
    assert_eq!(why.share, Share::Unsure);
    assert_eq!(why.why.as_deref(), Some("it was not looked for there"));
}

#[test]
fn loss_is_absent_only_where_enough_was_sent() {
    let [a, b, c] = ["a", "b", "c"].map(healthy);
    let at = |counts: [(u64, u64); 3]| {
        let runs = [&a, &b, &c].into_iter().zip(counts);
        let runs: Vec<Run> = runs
            .map(|(run, (sent, lost))| pinged(losing(run.clone(), sent, lost)))
            .collect();
        of(&runs, Cause::PathLoss)
    };
    assert_eq!(at([(1000, 0), (1000, 40), (1000, 50)]), [(vec![1], None)]);
    assert_eq!(at([(1000, 1), (1000, 2), (1000, 50)]), [(vec![2], None)]);
    assert_eq!(at([(20, 0), (20, 0), (1000, 50)]), [(vec![0, 1, 2], None)]);
    assert_eq!(at([(1000, 0), (20, 0), (1000, 50)]), [(vec![1, 2], None)]);
    // Under the threshold of the rule, and as much.
    assert_eq!(at([(1000, 0), (1000, 19), (1000, 25)]), [(vec![1], None)]);
    // A router that answers seldom is no loss of the path.
    assert_eq!(at([(1000, 0), (1000, 300), (1000, 0)]), [(vec![], Some(1))]);
    // What is lost before a middle, and more beyond.
    assert_eq!(
        at([(1000, 30), (1000, 30), (1000, 200)]),
        [(vec![2], None), (vec![0], None)]
    );
}

#[test]
fn what_a_check_places_by_itself_stays_there() {
    let here = with(healthy("a"), Cause::SendBufferSmall, Place::ThisHost);
    assert_eq!(
        of(&[here, healthy("b")], Cause::SendBufferSmall),
        [(vec![0], None)]
    );
    let there = with(healthy("b"), Cause::ReceiveBufferSmall, Place::FarHost);
    assert_eq!(
        of(&[healthy("a"), there], Cause::ReceiveBufferSmall),
        [(vec![], Some(1))]
    );
    assert_eq!(segments(&[]).hosts, []);
}

#[test]
fn rates_fall_where_the_narrowest_segment_is() {
    let at = |values: &[Option<f64>]| {
        let step = fall(StepOf::Up, values, SAME_RATE_RATIO).unwrap();
        (step.segments, step.before)
    };
    assert_eq!(at(&[Some(20e6), Some(21e6), Some(19e6)]), (vec![0], None));
    assert_eq!(
        at(&[Some(90e6), Some(21e6), Some(19e6)]),
        (vec![1], Some(90e6))
    );
    assert_eq!(
        at(&[Some(90e6), None, Some(19e6)]),
        (vec![1, 2], Some(90e6))
    );
    // A slow responder says nothing.
    assert_eq!(
        at(&[Some(90e6), Some(2e6), Some(19e6)]),
        (vec![1, 2], Some(90e6))
    );
    let size = |values: &[f64]| {
        let values: Vec<Option<f64>> = values.iter().map(|v| Some(*v)).collect();
        fall(StepOf::PacketSize, &values, 1.0).map(|step| step.segments)
    };
    assert_eq!(size(&[1500.0, 1400.0, 1400.0]), Some(vec![1]));
    assert!(fall(StepOf::Up, &[None, None], SAME_RATE_RATIO).is_none());
    let trip = longest(&[Some(0.01), None, Some(0.08), Some(0.09)]).unwrap();
    assert_eq!((trip.segments, trip.before), (vec![1, 2], Some(0.01)));
    assert!(longest(&[Some(0.03), Some(0.06), Some(0.09)]).is_none());
}

#[test]
fn the_end_is_that_of_the_last_run() {
    let mut alias = healthy("b");
    alias.id = "alias".to_owned();
    let runs = [alias, healthy("a"), healthy("b")];
    let names: Vec<String> = segments(&runs)
        .hosts
        .into_iter()
        .map(|host| host.name)
        .collect();
    assert_eq!(names, ["a", "b"]);
}

proptest! {
    /// Whatever hosts have: some place is named, each in the path, and the shares are one a host.
    #[test]
    fn every_finding_has_a_place(all in proptest::collection::vec((0_u64..60, 0_u8..3, 0.0..0.5_f64), 1..6)) {
        let runs: Vec<Run> = all.iter().enumerate().map(|(number, (lost, kind, queue_s))| {
            let run = losing(healthy(&number.to_string()), 500, *lost);
            match kind {
                0 => pinged(run),
                1 => queued(run, 20e6, *queue_s),
                _ => queued(run, 90e6, *queue_s),
            }
        }).collect();
        let segments = segments(&runs);
        for finding in &segments.findings {
            prop_assert!(!finding.segments.is_empty() || finding.only_at.is_some());
            prop_assert!(finding.segments.iter().all(|at| *at < runs.len()));
            prop_assert_eq!(finding.shares.len(), runs.len());
        }
    }
}
