//! Several hosts, drawn from the recorded checks: a fault is put near, into one network, or before one host, and named so.

use std::collections::{BTreeMap, BTreeSet};

use plumb_diagnose::places::{Host, Whereabouts, hosts, is_of_distance, place};
use plumb_model::finding::{Finding, Place, Severity};
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::{Measurement, Run};
use plumb_report::places::places;
use plumb_report::text::{Style, render_places};

use crate::baseline::Draw;
use crate::check::runs;

const PATHS: usize = 60;
/// The share that has to be named right.
const RIGHT_RATIO: f64 = 0.95;
/// How often a check of a host that has nothing is one of another fault: as often as rules may be wrong.
const WRONG_EVERY: usize = 50;

/// Where a fault is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Put {
    Near,
    Theirs,
    Far,
}

/// A recorded check of a fault on the way, and the fault.
pub(crate) struct Faulty {
    pub(crate) file: String,
    pub(crate) run: Run,
}

impl Faulty {
    pub(crate) fn finding(&self) -> Option<&Finding> {
        let of_path = [Place::Uplink, Place::Downlink, Place::Path];
        let mut findings = self.run.findings.iter();
        findings.find(|finding| {
            finding.severity > Severity::Info
                && of_path.contains(&finding.place)
                && !is_of_distance(finding.cause)
        })
    }
}

pub(crate) fn recorded() -> (Vec<Run>, Vec<Faulty>) {
    let is_check = |run: &Run| run.command.iter().any(|word| word == "check");
    let checks = runs().into_iter().filter(|(_, run)| is_check(run));
    let (mut healthy, mut faulty) = (Vec::new(), Vec::new());
    for (file, run) in checks {
        let worth = |finding: &Finding| finding.severity > Severity::Info;
        if !run.findings.iter().any(worth) {
            healthy.push(run);
            continue;
        }
        let one = Faulty { file, run };
        if one.finding().is_some() {
            faulty.push(one);
        }
    }
    // What recordings of before there was a search for the largest packet lack, one of after it lends.
    let is_search = |m: &&Measurement| matches!(m.outcome, Outcome::Mtu(_));
    let whole = |run: &Run| {
        run.findings
            .is_empty()
            .then(|| run.measurements.iter().find(is_search).cloned())
    };
    let lent = healthy
        .iter()
        .find_map(|run| whole(run)?)
        .expect("a search");
    for run in &mut healthy {
        if run.measurements.iter().find(is_search).is_none() {
            let id = "sizes".to_owned();
            run.measurements.push(Measurement { id, ..lent.clone() });
        }
    }
    (healthy, faulty)
}

/// The check as one of that host, over those routers.
fn towards(
    run: &Run,
    number: usize,
    address: &str,
    routers: &[&str],
    template: &Measurement,
) -> Run {
    let mut run = run.clone();
    run.id = format!("{number}-{}", run.id);
    run.started = format!("2026-11-27T10:0{number}:00Z");
    let target = run.target.as_mut().expect("a far end");
    (target.name, target.address) = (format!("host{number}"), Some(address.to_owned()));
    run.measurements
        .retain(|m| !matches!(m.outcome, Outcome::Path(_)));
    if !routers.is_empty() {
        let mut path = template.clone();
        let mut of_path = serde_json::to_value(&path.outcome).expect("JSON");
        let hops = of_path["result"]["hops"].as_array_mut().expect("hops");
        let hop = hops.last().cloned().expect("a hop");
        let all = routers.iter().copied().chain([address]);
        *hops = (1..)
            .zip(all)
            .map(|(ttl, address)| {
                let mut hop = hop.clone();
                hop["ttl"] = ttl.into();
                hop["address"] = address.into();
                hop["addresses"] = [address].as_slice().into();
                hop
            })
            .collect();
        path.outcome = serde_json::from_value(of_path).expect("a path");
        path.id = "path".to_owned();
        run.measurements.push(path);
    }
    run
}

/// How long its loads lasted, in seconds.
fn loads_s(run: &Run) -> Vec<f64> {
    let rates = run.measurements.iter().filter(|m| {
        let outcome = &m.outcome;
        matches!(outcome, Outcome::Throughput(_)) && m.context.experiment.is_none()
    });
    rates.map(|m| m.duration_s).collect()
}

/// Whether both are of checks made alike: what the fault rests on was measured in the other too, for as long.
pub(crate) fn is_alike(run: &Run, fault: &Faulty) -> bool {
    let has = |kind| run.measurements.iter().any(|m| m.outcome.kind() == kind);
    let evidence = fault.finding().map_or(&[][..], |finding| &finding.evidence);
    let measurements = evidence
        .iter()
        .filter_map(|evidence| fault.run.measurement(&evidence.measurement));
    let shortest = loads_s(run).into_iter().fold(f64::MAX, f64::min);
    let longest = loads_s(&fault.run).into_iter().fold(0.0, f64::max);
    measurements.map(|m| m.outcome.kind()).all(has) && shortest >= 0.95 * longest
}

pub(crate) fn bps(run: &Run, direction: Direction) -> f64 {
    let of_one = hosts(std::slice::from_ref(run));
    of_one
        .first()
        .and_then(|host: &Host<'_>| host.bps(direction))
        .unwrap_or(0.0)
}

#[test]
fn a_fault_of_drawn_paths_is_named_near_theirs_or_far() {
    let (healthy, faulty) = recorded();
    // Through one line near, a host whose path has no fault of its own is no slower.
    let clean = |fault: &Faulty| -> Vec<&Run> {
        let carries = |run: &&Run| {
            let mut directions = [Direction::Up, Direction::Down].into_iter();
            directions.all(|direction| bps(run, direction) >= 0.8 * bps(&fault.run, direction))
        };
        let alike = healthy.iter().filter(|run| is_alike(run, fault));
        alike.filter(carries).collect()
    };
    let traced = faulty
        .iter()
        .find(|one| one.file.ends_with("/delay-varies@nq.json.gz"));
    let mut all = traced.expect("a check").run.measurements.iter();
    let is_path = |m: &&Measurement| matches!(m.outcome, Outcome::Path(_));
    let template = all.find(is_path).expect("a path").clone();
    let faulty: Vec<&Faulty> = faulty.iter().filter(|one| !clean(one).is_empty()).collect();
    assert!(faulty.len() > 15, "{}", faulty.len());
    let mut causes = BTreeSet::new();
    let mut draw = Draw(21);
    let mut right: BTreeMap<Put, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for path in 0..PATHS {
        let fault = &faulty[draw.below(faulty.len())];
        let finding = fault.finding().expect("a fault");
        causes.insert(finding.cause.name());
        let clean = clean(fault);
        let mut count = 2 + draw.below(5);
        let put = [Put::Near, Put::Theirs, Put::Far][path % 3];
        if put == Put::Theirs {
            count = count.max(3);
        }
        let first = draw.below(count);
        let size = match put {
            Put::Near => count,
            Put::Theirs => 2 + draw.below(count - 2),
            Put::Far => 1,
        };
        // Quick checks see no path; then a network is one of addresses.
        let (are_seen, by_router) = (draw.below(3) > 0, draw.below(2) == 0);
        let checks: Vec<Run> = (0..count)
            .map(|number| {
                let has = (number + count - first) % count < size;
                let address = match (put, has, by_router && are_seen) {
                    (Put::Theirs, true, false) => format!("203.0.113.{}", number + 1),
                    _ => format!("198.51.{}.1", number + 1),
                };
                let routers = ["10.0.0.1", "10.1.0.1", "10.2.0.1"];
                let routers = match (are_seen, put == Put::Theirs && has) {
                    (false, _) => &routers[..0],
                    (true, false) => &routers[..2],
                    (true, true) => &routers[..],
                };
                let run = match (has, draw.below(WRONG_EVERY)) {
                    (true, _) => &fault.run,
                    (false, 0) => &faulty[draw.below(faulty.len())].run,
                    (false, _) => clean[draw.below(clean.len())],
                };
                towards(run, number, &address, routers, &template)
            })
            .collect();
        let all = hosts(&checks);
        let placed = place(&all);
        let at = placed
            .iter()
            .find(|p| (p.finding.cause, p.finding.place) == (finding.cause, finding.place))
            .map(|placed| &placed.whereabouts);
        let is_right = match at {
            Some(Whereabouts::Near) => put == Put::Near,
            Some(Whereabouts::Theirs(network)) => put == Put::Theirs && network.hosts.len() == size,
            Some(Whereabouts::Far) => put == Put::Far,
            _ => false,
        };
        let (good, of) = right.entry(put).or_default();
        *good += usize::from(is_right);
        *of += 1;
        if !is_right {
            wrong.push(format!(
                "{put:?} of {count}: {} {} as {at:?} in {:?}",
                fault.file,
                finding.cause,
                checks
                    .iter()
                    .map(|run| run
                        .findings
                        .iter()
                        .map(|f| f.cause.name())
                        .collect::<Vec<_>>())
                    .collect::<Vec<_>>()
            ));
        }
        let style = Style {
            color: false,
            width: 80,
        };
        let text = render_places(&places(&checks), &style);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(text.contains(finding.cause.name()), "{text}");
    }
    let good: usize = right.values().map(|(good, _)| good).sum();
    println!("{right:?} of {causes:?}");
    assert!(causes.len() > 8, "{causes:?}");
    assert!(
        good as f64 >= RIGHT_RATIO * PATHS as f64,
        "{right:?}\n{}",
        wrong.join("\n")
    );
}

fn shown(checks: &[Run]) -> String {
    let style = Style {
        color: false,
        width: 80,
    };
    let mut places = places(checks);
    places.leave_out("silent.example", "no answer came");
    let text = render_places(&places, &style);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn checks_that_do_not_go_together_are_called_so() {
    let (healthy, faulty) = recorded();
    let mut all = faulty.iter().flat_map(|one| &one.run.measurements);
    let template = all.find(|m| matches!(m.outcome, Outcome::Path(_)));
    let template = template.expect("a path");
    let check =
        |number, address, router| towards(&healthy[0], number, address, &[router], template);
    let good = [
        check(0, "192.0.2.1", "10.0.0.1"),
        check(1, "198.51.100.1", "10.0.0.1"),
    ];
    let text = shown(&good);
    assert!(text.starts_with("Nothing worth fixing was found towards any of 2 hosts. ! Nothing was measured towards silent.example"), "{text}");
    assert!(
        !text.contains("first routers") && !text.contains("versions"),
        "{text}"
    );
    let mut bad = good.to_vec();
    bad[1] = check(1, "198.51.100.1", "10.9.0.1");
    bad[1].plumb = "0.0.9".to_owned();
    bad[1].started = "2026-11-28T10:00:00Z".to_owned();
    bad.push(check(0, "203.0.113.1", "10.0.0.1"));
    bad[2].measurements.clear();
    bad[2].target.as_mut().expect("a far end").name = "host1".to_owned();
    let text = shown(&bad);
    for part in [
        "host1 had several addresses (198.51.100.1, 203.0.113.1)",
        "No answer came from host1.",
        "The first routers are not the same (10.0.0.1, 10.9.0.1)",
        "several versions of plumb (0.0.9, 0.1.0)",
        "looks like what one host has",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    bad[0].started = "yesterday".to_owned();
    assert!(shown(&bad).contains("When one of the checks was made is unknown"));
    bad.iter_mut().for_each(|run| run.measurements.clear());
    assert!(shown(&bad).starts_with("No host answers."));
}
