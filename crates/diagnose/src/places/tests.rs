#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::LazyLock;

use plumb_model::finding::Evidence;
use plumb_model::results::Outcome;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::measurement;

/// A healthy check of a host at this address.
fn healthy(address: &str) -> Run {
    static RUN: LazyLock<Run> = LazyLock::new(|| {
        Run::from_json(include_str!("../../fixtures/home-cable-managed.json")).unwrap()
    });
    let mut run = RUN.clone();
    run.id = address.to_owned();
    let target = run.target.as_mut().unwrap();
    target.name = format!("host-{address}");
    target.address = Some(address.to_owned());
    run
}

/// The same over these routers.
fn over(address: &str, routers: &[&str]) -> Run {
    let mut run = healthy(address);
    let all = routers.iter().chain([&address]);
    let hop = |(ttl, address): (usize, &&str)| {
        json!({
            "ttl": ttl, "address": address, "addresses": [address], "sent": 3, "received": 3,
            "unanswered_ratio": 0.0, "answers": "well", "mpls": [], "notes": [],
        })
    };
    let hops: Vec<serde_json::Value> = (1..).zip(all).map(hop).collect();
    let path = json!({ "kind": "path", "result": {
        "protocol": "icmp", "address": address, "reached": true, "cycles": 3, "hops": hops, "routes": [],
        "changes": [], "alterations": [],
    }});
    let mut path = measurement(serde_json::from_value(path).unwrap());
    path.id = "path".to_owned();
    run.measurements.push(path);
    run
}

/// With a finding that rests on the round trips beside an upload.
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

fn bloated(run: Run) -> Run {
    with(run, Cause::BufferbloatUp, Place::Uplink)
}

/// Where the worst is.
fn worst(runs: &[Run]) -> Whereabouts {
    let hosts = hosts(runs);
    place(&hosts).first().unwrap().whereabouts.clone()
}

fn is_theirs(whereabouts: &Whereabouts, hosts: &[usize]) -> bool {
    let expected: BTreeSet<usize> = hosts.iter().copied().collect();
    matches!(whereabouts, Whereabouts::Theirs(network) if network.hosts == expected)
}

const A: &str = "192.0.2.1";
const B: &str = "198.51.100.1";
const C: &str = "203.0.113.1";
const D: &str = "203.0.113.2";

#[test]
fn what_all_have_is_near_what_one_network_has_theirs_and_what_one_has_far() {
    let [a, b, c, d] = [A, B, C, D].map(healthy);
    let [x, y, z] = [A, B, C].map(|address| bloated(healthy(address)));
    assert_eq!(worst(&[x.clone(), y.clone(), z.clone()]), Whereabouts::Near);
    assert_eq!(worst(&[x.clone(), b.clone(), c.clone()]), Whereabouts::Far);
    assert_eq!(worst(&[a.clone(), y.clone()]), Whereabouts::Far);
    let theirs = worst(&[a.clone(), b.clone(), z.clone(), bloated(d.clone())]);
    assert!(is_theirs(&theirs, &[2, 3]), "{theirs:?}");
    // Another host of the network lacks it.
    assert_eq!(worst(&[a, b, z, d]), Whereabouts::Far);
    let apart = worst(&[x, y, c, healthy("233.252.0.1")]);
    assert_eq!(apart, Whereabouts::Open(Why::NothingShared));
    assert!(place(&hosts(&[healthy(A), healthy(B)])).is_empty());
}

#[test]
fn a_router_that_only_some_pass_is_a_network() {
    let near = ["10.0.0.1", "10.1.0.1"];
    let transit = [near[0], near[1], "10.2.0.1"];
    let runs = [
        over(A, &near),
        bloated(over(B, &transit)),
        bloated(over(C, &transit)),
    ];
    let hosts = hosts(&runs);
    let placed = place(&hosts);
    assert!(is_theirs(&placed[0].whereabouts, &[1, 2]), "{placed:?}");
    let parted = split_after(&hosts, &placed[0].found(), &placed[0].absent());
    assert_eq!(
        parted.map(|hop| (hop.ttl, hop.address)),
        Some((2, near[1].to_owned()))
    );
    // Where one path was not seen, it is unknown whether it leads over the same router.
    let runs = [healthy(A), runs[1].clone(), runs[2].clone()];
    assert_eq!(worst(&runs), Whereabouts::Open(Why::NothingShared));
}

#[test]
fn what_a_check_places_by_itself_stays_there() {
    let here = with(healthy(A), Cause::SendBufferSmall, Place::ThisHost);
    assert_eq!(worst(&[here, healthy(B)]), Whereabouts::Near);
    let there = [A, B].map(|a| with(healthy(a), Cause::ReceiveBufferSmall, Place::FarHost));
    assert_eq!(worst(&there), Whereabouts::Far);
    // One check saw that it is on this side of the gateway.
    let wifi = with(healthy(A), Cause::BufferbloatUp, Place::LocalSegment);
    assert_eq!(
        worst(&[bloated(healthy(B)), wifi, healthy(C)]),
        Whereabouts::Near
    );
    let far_away = [A, B].map(|a| with(healthy(a), Cause::Distance, Place::Path));
    assert!(place(&hosts(&far_away)).is_empty());
}

#[test]
fn too_few_hosts_leave_it_open() {
    assert_eq!(
        worst(&[bloated(healthy(A))]),
        Whereabouts::Open(Why::OneHost)
    );
    // Both are of one network.
    let one = worst(&[C, D].map(|address| bloated(healthy(address))));
    assert!(
        matches!(one, Whereabouts::Open(Why::OneNetwork(_))),
        "{one:?}"
    );
    let idle = |address| {
        let mut run = healthy(address);
        run.measurements
            .retain(|m| m.context.load.is_none() && m.id == "m1");
        run
    };
    let alone = [bloated(healthy(A)), idle(B)];
    assert_eq!(worst(&alone), Whereabouts::Open(Why::OneHost));
    assert_eq!(place(&hosts(&alone))[0].seen[1], Seen::NotLookedFor);
    let rest = worst(&[healthy(A), bloated(healthy(C)), idle(D)]);
    assert!(
        matches!(rest, Whereabouts::Open(Why::RestOfNetwork(_))),
        "{rest:?}"
    );
}

#[test]
fn a_slower_path_or_another_name_hides_what_is_near() {
    let routers = ["10.0.0.1"];
    let slow = |address| {
        let mut run = over(address, &routers);
        for measurement in &mut run.measurements {
            if let Outcome::Throughput(load) = &mut measurement.outcome {
                load.bps /= 4.0;
                load.steady_bps = load.steady_bps.map(|bps| bps / 4.0);
            }
        }
        run
    };
    let [x, y] = [A, B].map(|address| bloated(over(address, &routers)));
    let hidden = [x.clone(), y.clone(), slow(C)];
    assert_eq!(worst(&hidden), Whereabouts::Near);
    assert_eq!(place(&hosts(&hidden))[0].seen[2], Seen::NotReached);
    // Where no path was seen, the first two may share what the third does not use.
    let unseen = [A, B].map(|address| bloated(healthy(address)));
    let [u, v] = unseen;
    assert_eq!(worst(&[u, v, slow(C)]), Whereabouts::Open(Why::NotAll));
    // A queue at a lower rate is none of those that carried more.
    assert_eq!(
        worst(&[healthy(A), healthy(B), bloated(slow(C))]),
        Whereabouts::Far
    );
    let other = with(over(C, &routers), Cause::Unexplained, Place::Uplink);
    let named = [x, y, other.clone()];
    assert_eq!(worst(&named), Whereabouts::Near);
    let seen = place(&hosts(&named))[0].seen[2];
    assert_eq!(seen, Seen::LooksAlike(Cause::Unexplained));
    // What all have besides is a matter of its own.
    let besides = |run| with(run, Cause::Unexplained, Place::Uplink);
    let two = [besides(healthy(A)), besides(healthy(B)), bloated(other)];
    let hosts = hosts(&two);
    let placed = place(&hosts);
    let of = |cause| placed.iter().find(|p| p.finding.cause == cause).unwrap();
    assert_eq!(of(Cause::Unexplained).whereabouts, Whereabouts::Near);
    assert_eq!(of(Cause::BufferbloatUp).whereabouts, Whereabouts::Far);
}

#[test]
fn checks_of_one_address_are_of_one_host() {
    let mut again = healthy(A);
    again.target.as_mut().unwrap().name = "alias".to_owned();
    let runs = [bloated(healthy(A)), again, healthy(B)];
    let hosts = hosts(&runs);
    assert_eq!(hosts.len(), 2);
    assert_eq!(hosts[0].names, ["host-192.0.2.1", "alias"]);
    let placed = place(&hosts);
    assert_eq!(placed[0].seen, [Seen::ComesAndGoes, Seen::Absent]);
    assert_eq!(placed[0].whereabouts, Whereabouts::Open(Why::ComesAndGoes));
    let mut nowhere = healthy(A);
    nowhere.target = None;
    assert!(super::hosts(&[nowhere]).is_empty());
}

proptest! {
    /// Whatever hosts have: what is near no host lacks, what is far one has, and what is theirs no host outside has.
    #[test]
    fn every_answer_agrees_with_what_was_seen(
        all in proptest::collection::vec((0_u8..4, 0_u8..3, 0_u8..3, any::<bool>()), 1..7)
    ) {
        let runs: Vec<Run> = all.iter().enumerate().map(|(number, (network, route, kind, other))| {
            let address = format!("198.51.{network}.{}", number % 5);
            let transit = format!("10.9.0.{route}");
            let routers = ["10.0.0.1", &transit];
            let run = match route {
                0 => healthy(&address),
                _ => over(&address, &routers),
            };
            let run = match kind {
                0 => run,
                1 => bloated(run),
                _ => with(run, Cause::PathLoss, Place::Path),
            };
            match other {
                true => with(run, Cause::Unexplained, Place::Downlink),
                false => run,
            }
        }).collect();
        let hosts = hosts(&runs);
        for placed in place(&hosts) {
            let (found, absent) = (placed.found(), placed.absent());
            prop_assert_eq!(placed.seen.len(), hosts.len());
            match &placed.whereabouts {
                Whereabouts::Near => prop_assert!(found.len() > 1 && absent.is_empty()),
                Whereabouts::Far => prop_assert!(found.len() == 1 && !absent.is_empty()),
                Whereabouts::Theirs(network) => {
                    prop_assert!(found.len() > 1 && !absent.is_empty());
                    prop_assert!(found.is_subset(&network.hosts) && absent.is_disjoint(&network.hosts));
                }
                Whereabouts::Open(_) => {}
            }
        }
    }
}
