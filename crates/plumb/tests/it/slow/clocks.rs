//! Labs in real and in virtual time agree: what virtual time shows of plumb holds on a real machine.
//!
//! A lab in real time that the machine disturbed is void and measured again (`common/measured.rs`), never a pass.

use std::collections::BTreeSet;

use plumb_model::results::Outcome;
use plumb_model::run::{LabClock, Run};

use crate::common::network::Network;
use crate::common::{late_s, measured_by, words};

/// What a machine that kept up adds to a round trip: two schedulers and the wake-ups of both ends.
const WAKES_S: f64 = 0.001;

/// What it takes from a rate at most: a link that is late by a millisecond of a queue of tens.
const RATE_TOLERANCE: f64 = 0.03;

/// Round trips and rates of idle and of full lines, queues, losses and limits.
const CASES: [(&str, &str); 10] = [
    ("home-cable", "ping server -c 100 -i 20ms"),
    ("asymmetric-route", "ping server -c 100 -i 20ms"),
    ("geostationary", "ping server -c 40 -i 50ms"),
    ("loss-periodic", "ping server -c 200 -i 10ms"),
    ("reordering", "ping server -c 200 -i 10ms"),
    ("home-cable", "rate server --down --duration 8s"),
    ("home-cable", "rate server --up --duration 8s"),
    ("home-cable", "load server --up --duration 10s"),
    ("home-cable-managed", "load server --up --duration 10s"),
    ("limited-receiver", "rate server --down --duration 6s"),
];

/// The figures of a Run by name.
fn figures(run: &Run) -> Vec<(String, Figure)> {
    let mut figures = Vec::new();
    for (number, measurement) in run.measurements.iter().enumerate() {
        let mut add = |name: &str, figure| figures.push((format!("{number} {name}"), figure));
        match &measurement.outcome {
            Outcome::Ping(ping) => {
                let rtt = ping.rtt_s.expect("answers");
                add("least", Figure::Time(rtt.min));
                add("median", Figure::Time(rtt.p50));
                add("loss", Figure::Share(ping.loss_ratio.expect("sent")));
            }
            Outcome::Throughput(rate) => add("rate", Figure::Rate(rate.bps)),
            Outcome::LoadedLatency(load) => {
                add("loaded median", Figure::Loaded(load.rtt_s.p50));
            }
            _ => {}
        }
    }
    figures
}

#[derive(Debug, Clone, Copy)]
enum Figure {
    Time(f64),
    /// Under load, where it depends on how full the queue was.
    Loaded(f64),
    Share(f64),
    Rate(f64),
}

/// Whether what a real machine measured is what virtual time shows, but for what the machine was late by.
fn agree(real: Figure, exact: Figure, late_s: f64) -> bool {
    match (real, exact) {
        (Figure::Time(real), Figure::Time(exact)) => {
            real >= exact - 50e-6 && real <= exact + WAKES_S + late_s
        }
        (Figure::Loaded(real), Figure::Loaded(exact)) => {
            (real - exact).abs() <= 0.1 * exact + WAKES_S + late_s
        }
        (Figure::Share(real), Figure::Share(exact)) => (real - exact).abs() < 0.02,
        (Figure::Rate(real), Figure::Rate(exact)) => (real / exact - 1.0).abs() < RATE_TOLERANCE,
        _ => false,
    }
}

#[test]
#[ignore = "slow: ten measurements, each in real and in virtual time"]
fn real_and_virtual_time_agree() {
    let mut wrong = Vec::new();
    println!("| network | command | figure | real | virtual |\n|---|---|---|---|---|");
    for (scenario, command) in CASES {
        let [real, exact] = [LabClock::Real, LabClock::Virtual]
            .map(|clock| measured_by(clock, scenario, &words(command)).run);
        let late_s = late_s(&real);
        let (real, exact) = (figures(&real), figures(&exact));
        assert_eq!(real.len(), exact.len(), "{scenario} {command}");
        assert!(!real.is_empty(), "{scenario} {command}");
        for ((name, real), (_, exact)) in real.into_iter().zip(exact) {
            println!("| {scenario} | {command} | {name} | {real:?} | {exact:?} |");
            if !agree(real, exact, late_s) {
                wrong.push(format!(
                    "{scenario}, {command}, {name}: {real:?} of {exact:?}, late by {late_s}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "slow: a check in real and in virtual time"]
fn the_verdict_of_a_line_is_the_same_by_both_clocks() {
    let shaper =
        r#"{ type = "shaper", rate = "10mbit", queue = { type = "fifo", limit = "400ms" } }"#;
    let cells = format!(r#"{shaper}, {{ type = "delay", delay = "10ms" }}"#);
    let found = |clock| {
        let mut line = Network::served_line(&cells, &cells);
        if clock == LabClock::Real {
            line.in_real_time();
        }
        let run = line.measured(&["check", "server"]).run;
        let warnings = run
            .findings
            .into_iter()
            .filter(|f| f.severity.name() != "info");
        // Both directions are as bad: which comes first is chance.
        warnings
            .map(|finding| finding.cause.name())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(found(LabClock::Real), found(LabClock::Virtual));
}
