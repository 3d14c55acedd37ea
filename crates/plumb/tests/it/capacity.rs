//! `plumb capacity` on lines whose rates are known.
//!
//! Links of the laboratory are late by more or less as the machine is busy, so fast lines may be told
//! or bounded; what is told is right, and bounds hold.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::common::slots::{self, Weight};
use crate::common::{Checked, measured_in, plumb, side_by_side, stderr, stdout};
use plumb_model::finding::Cause;
use plumb_model::results::Outcome;
use plumb_model::results::capacity::{
    CapacityEnd, CapacityHop, CapacityResult, Doubt, RateEstimate, RateStatus, TrainMethod,
};

/// Rates are right to this share, as the program promises.
const TOLERANCE: f64 = 0.1;

/// Bounds are of 99 %, and there are dozens of them in these tests: truth may lie outside by this share.
const BOUNDS: f64 = 0.15;

/// What bounds of lines that are not told are good for here.
const MBIT: f64 = 1e6;

fn result(checked: &Checked) -> &CapacityResult {
    match &checked.run.measurements[0].outcome {
        Outcome::Capacity(capacity) => capacity,
        other => panic!("{other:?}"),
    }
}

/// A chain of lines with these rates in Mbit/s, there and back; a rate of 0 is a line without an emulated
/// link. `extra` is said of routers by number.
fn chain(rates: &[(f64, f64)], extra: &[(usize, &str)], more: &str) -> String {
    let mut text =
        "name = \"chain\"\nsummary = \"a chain of routers\"\nsource = \"none\"\n".to_owned();
    let last = rates.len();
    let name = |node: usize| match node {
        0 => "client".to_owned(),
        node if node == last => "server".to_owned(),
        router => format!("r{router}"),
    };
    for node in 0..=last {
        let forward = node > 0 && node < last;
        writeln!(
            text,
            "[[node]]\nname = \"{}\"\nforward = {forward}",
            name(node)
        )
        .unwrap();
        for (_, words) in extra.iter().filter(|(of, _)| *of == node) {
            writeln!(text, "{words}").unwrap();
        }
    }
    for (index, (there, back)) in rates.iter().enumerate() {
        let (from, to) = (name(index), name(index + 1));
        writeln!(
            text,
            "[[link]]\nname = \"l{index}\"\nbetween = [\"{from}\", \"{to}\"]"
        )
        .unwrap();
        if *there > 0.0 {
            let line = |rate: f64| {
                format!(
                    "[{{ type = \"shaper\", rate = \"{}kbit\" }}, {{ type = \"delay\", delay = \"1ms\" }}]",
                    rate * 1e3
                )
            };
            writeln!(text, "up = {}\ndown = {}", line(*there), line(*back)).unwrap();
        }
    }
    text + more
}

const SERVE: &str =
    "[[service]]\nnode = \"server\"\nrun = [\"plumb\", \"serve\", \"--quiet\"]\nport = 7586\n";

fn measured(scenario: &str, options: &[&str]) -> Checked {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chain.toml");
    std::fs::write(&file, scenario).unwrap();
    measured_in(
        file.to_str().unwrap(),
        &[&["capacity", "server"], options].concat(),
    )
}

/// What is told is right, and bounds hold.
fn holds(rate: &RateEstimate, truth_mbit: f64) {
    let truth = truth_mbit * MBIT;
    if let Some(bps) = rate.bps {
        assert!(
            (bps / truth - 1.0).abs() <= TOLERANCE,
            "{truth_mbit}: {rate:?}"
        );
    }
    if let Some(least) = rate.at_least_bps {
        assert!(least <= truth * (1.0 + BOUNDS), "{truth_mbit}: {rate:?}");
    }
    if let Some(most) = rate.at_most_bps {
        assert!(most >= truth * (1.0 - BOUNDS), "{truth_mbit}: {rate:?}");
    }
}

/// It is told, or doubted for nothing but this machine's timing, and then bounded this narrowly. That rates are told
/// is shown in virtual time (`probe/capacity/hops/tests.rs`).
const NARROW: f64 = 2.0;

fn told(rate: &RateEstimate) {
    if rate.status == RateStatus::Measured {
        return;
    }
    assert_eq!(rate.doubts, [Doubt::Timing], "{rate:?}");
    let bounds = rate.at_least_bps.zip(rate.at_most_bps);
    assert!(
        bounds.is_some_and(|(least, most)| most <= least * NARROW),
        "{rate:?}"
    );
}

/// Every line holds; those up to `told_mbit` are told.
fn lines_hold(capacity: &CapacityResult, rates: &[(f64, f64)], told_mbit: f64) {
    assert_eq!(capacity.hops.len(), rates.len(), "{capacity:?}");
    assert!(capacity.reached);
    for (hop, (there, back)) in capacity.hops.iter().zip(rates) {
        if *there > 0.0 {
            holds(&hop.rate, *there);
            if let Some(told) = &hop.back_rate {
                holds(told, *back);
            }
        }
        if *there > 0.0 && *there <= told_mbit {
            told(&hop.rate);
        }
        if *there == 0.0 || *there > 400.0 {
            // Beyond what timing supports: a bound, no guess.
            assert_eq!(hop.rate.bps, None, "{hop:?}");
            let least = hop.rate.at_least_bps;
            assert!(least.is_some_and(|bps| bps > 20.0 * MBIT), "{hop:?}");
        }
    }
}

const EVEN: fn(f64) -> (f64, f64) = |rate| (rate, rate);

/// Looks at the hops of a scenario for so long.
fn hops_measured(scenario: &str, time: &str, more: &[&str]) -> Checked {
    let options = ["--only", "hops", "--interval", "2ms", "--time", time];
    measured(scenario, &[&options, more].concat())
}

#[test]
fn lines_in_varied_orders_are_what_they_are() {
    crate::common::need_root();
    // What is told in seconds on a busy machine is slow, and not behind what is slower.
    let of = |rates: &[f64], told_mbit: f64, time: &str, options: &[&str]| {
        let rates: Vec<_> = rates.iter().copied().map(EVEN).collect();
        let checked = hops_measured(&chain(&rates, &[], ""), time, options);
        lines_hold(result(&checked), &rates, told_mbit);
    };
    side_by_side(&[
        &|| of(&[10.0, 100.0, 1.0, 50.0], 10.0, "9s", &[]),
        // Behind 1 Mbit/s only seven probes a second reach the last hop: as long as both others.
        &|| of(&[1.0, 50.0, 10.0, 0.0], 1.0, "18s", &[]),
        &|| of(&[1000.0, 5.0, 100.0], 5.0, "9s", &["-6"]),
    ]);
}

#[test]
fn routers_that_answer_seldom_or_never_and_other_traffic() {
    crate::common::need_root();
    side_by_side(&[
        &|| {
            let rates = [20.0, 10.0].map(EVEN);
            // Four tenths of the narrower line, in full packets that come as they like. It ends when it
            // is sure, which takes longer on a busy machine.
            let other = "[[traffic]]\nnode = \"client\"\nrun = [\"plumb\", \"lab\", \"flood\", \"server\", \"--rate\", \"4mbit\", \"--duration\", \"20s\"]\n";
            let checked = hops_measured(&chain(&rates, &[], other), "18s", &[]);
            let hops = &result(&checked).hops;
            for (hop, (there, _)) in hops.iter().zip(&rates) {
                holds(&hop.rate, *there);
            }
            told(&hops[1].rate);
        },
        &|| {
            // The second router answers ten probes a second.
            let rates = [10.0, 10.0, 5.0].map(EVEN);
            let seldom = "[node.sysctl]\n\"net.ipv4.icmp_ratelimit\" = \"100\"";
            let limited = chain(&rates, &[(2, seldom)], "");
            let checked = hops_measured(&limited, "9s", &[]);
            let capacity = result(&checked);
            let hop: &CapacityHop = &capacity.hops[1];
            assert!(
                hop.received * 4 > hop.sent,
                "{} of {}",
                hop.received,
                hop.sent
            );
            for (hop, (there, _)) in capacity.hops.iter().zip(&rates) {
                holds(&hop.rate, *there);
            }
            let notes = checked.run.notes.join(" ");
            assert!(notes.contains("limit how many probes"), "{notes}");
        },
        &|| {
            let rates = [10.0, 10.0, 5.0].map(EVEN);
            let checked = hops_measured(&chain(&rates, &[(2, "silent = true")], ""), "9s", &[]);
            let hops = &result(&checked).hops;
            assert_eq!(
                (&hops[1].address, hops[1].rate.status),
                (&None, RateStatus::Unknown)
            );
            assert_eq!((hops[2].lines, hops[2].rate.bps), (2, None));
            assert!(hops[2].rate.doubts.contains(&Doubt::SeveralLines));
            // 1 / (1/10 + 1/5).
            let least = hops[2].rate.at_least_bps.unwrap();
            assert!((2.5..=3.6).contains(&(least / MBIT)), "{least}");
            holds(&hops[0].rate, 10.0);
        },
    ]);
}

#[test]
fn trains_tell_the_narrowest_place_and_a_token_bucket() {
    crate::common::need_root();
    let trains = ["--only", "trains"];
    side_by_side(&[
        &|| {
            let rates = [(100.0, 100.0), (50.0, 2.0)];
            let checked = measured(&chain(&rates, &[], SERVE), &trains);
            let capacity = result(&checked);
            let train = capacity.train.as_ref().unwrap();
            assert_eq!(
                (train.method, capacity.ended),
                (TrainMethod::Native, CapacityEnd::NotBegun)
            );
            assert_eq!(train.rate.status, RateStatus::Measured, "{train:?}");
            holds(&train.rate, 50.0);
        },
        &|| {
            // Nobody serves: echoes, which come back over 5 Mbit/s.
            let rates = [(10.0, 5.0), (100.0, 100.0)];
            let checked = measured(&chain(&rates, &[], ""), &trains);
            let train = result(&checked).train.clone().unwrap();
            assert_eq!(train.method, TrainMethod::Echo);
            assert_eq!(train.rate.status, RateStatus::Measured, "{train:?}");
            holds(&train.rate, 5.0);
        },
        &|| {
            let checked = measured_in(
                "token-bucket-burst",
                &["capacity", "server", "--only", "trains"],
            );
            let train = result(&checked).train.clone().unwrap();
            holds(&train.rate, 5.0);
            let burst = train.burst.expect("a token bucket");
            assert!(burst.first_bps > 4.0 * burst.later_bps, "{burst:?}");
            assert!((30e3..600e3).contains(&burst.bucket_bytes), "{burst:?}");
            assert!(train.rate.doubts.contains(&Doubt::TokenBucket));
            if train.rate.doubts == [Doubt::TokenBucket] {
                let findings = &checked.run.findings;
                assert!(findings.iter().any(|f| f.cause == Cause::TokenBucket));
            }
        },
    ]);
}

#[test]
fn without_privileges_it_says_what_is_missing() {
    crate::common::need_root();
    let rates = [10.0, 5.0].map(EVEN);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chain.toml");
    std::fs::write(&file, chain(&rates, &[], "")).unwrap();
    let script = "setpriv --reuid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
                  plumb capacity server --only hops --interval 5ms --time 6s --json";
    let output = plumb(&[
        "lab",
        "run",
        "--virtual",
        file.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        script,
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let run = plumb_model::run::Run::from_json(&stdout(&output)).unwrap();
    let notes = run.notes.join(" ");
    assert!(
        notes.contains("CAP_NET_RAW") && notes.contains("setcap"),
        "{notes}"
    );
    let Outcome::Capacity(capacity) = &run.measurements[0].outcome else {
        panic!("{run:?}");
    };
    for (hop, (there, _)) in capacity.hops.iter().zip(&rates) {
        holds(&hop.rate, *there);
        told(&hop.rate);
    }
}

#[test]
fn what_cannot_be_measured_is_said() {
    crate::common::need_root();
    let says = |arguments: &[&str], status: i32, expected: &str| {
        let output = plumb(arguments);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    };
    says(&["capacity", "224.0.0.1"], 1, "no single host");
    says(
        &["capacity", "224.0.0.1", "--only", "trains"],
        1,
        "many hosts",
    );
    says(
        &["capacity", "no.such.host.invalid"],
        1,
        "no.such.host.invalid",
    );
    says(&["capacity", "localhost", "--train", "5000"], 2, "5000");
    says(&["capacity", "localhost", "--interval", "10us"], 2, "load");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("silent.toml");
    std::fs::write(&file, chain(&[(10.0, 10.0)], &[(1, "silent = true")], "")).unwrap();
    let silent = file.to_str().unwrap();
    let short = ["-m", "3", "-W", "100ms", "--time", "1s"];
    let arguments = [
        &[
            "lab",
            "run",
            "--virtual",
            silent,
            "--",
            "plumb",
            "capacity",
            "server",
        ],
        short.as_slice(),
    ];
    says(&arguments.concat(), 1, "nothing came back");
    let _slot = slots::take(Weight::Slow);
    let nowhere = "ip route add 10.99.0.9 via 10.0.0.2; plumb capacity --time 3s 10.99.0.9";
    let begun = Instant::now();
    let routed = folder.path().join("routed.toml");
    std::fs::write(&routed, chain(&[(0.0, 0.0), (0.0, 0.0)], &[], "")).unwrap();
    let routed = routed.to_str().unwrap();
    let arguments = ["lab", "run", "--virtual", routed, "--", "sh", "-c", nowhere];
    says(
        &arguments,
        1,
        "router 10.0.0.2 says that it has no route there",
    );
    assert!(begun.elapsed() < Duration::from_secs(10));
    let begun = Instant::now();
    let impatient = "timeout --foreground --preserve-status -s INT 1 plumb capacity server -W 20s";
    let arguments = [
        "lab",
        "run",
        "--virtual",
        silent,
        "--",
        "sh",
        "-c",
        impatient,
    ];
    says(&arguments, 130, "stopped before anything");
    assert!(begun.elapsed() < Duration::from_secs(15));
}
