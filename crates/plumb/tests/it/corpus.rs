//! Runs that were made in labs, each with its scenario and what the links recorded, kept in `corpus/`: what numbers mean
//! is tried on them without measuring again. `make record-corpus` makes them anew.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use plumb_diagnose::weighing::accounts;
use plumb_diagnose::{Case, Scope, diagnose};
use plumb_lab::scenario::Scenario;
use plumb_lab::stats::LabStats;
use plumb_lab::truth::truth;
use plumb_model::finding::{Cause, Finding};
use plumb_model::run::Run;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::common::network::scenario;
use crate::common::{measured_in, repository, side_by_side};
use crate::truth::{CHANGED, Changed};

/// Verbs whose findings follow from the Run alone.
const VERBS: [&str; 3] = ["check", "rate", "load"];

/// Scenarios, and protocols of servers that are no responder: a check with them comes to the same first finding. The responder
/// speaks them all.
const WITH_OTHERS: [(&str, &str); 7] = [
    ("delay-varies", "iperf3"),
    ("delay-varies", "nq"),
    ("handover", "iperf3"),
    ("home-cable", "ndt7"),
    ("long-fat-rcvbuf", "http"),
    ("mtu-black-hole-down", "iperf3"),
    ("mtu-black-hole-down", "nq"),
];

#[derive(Serialize, Deserialize)]
struct Record {
    /// The network in which it was made, as TOML; its truth is in it.
    scenario: String,
    run: Value,
    stats: LabStats,
}

fn folder() -> PathBuf {
    repository().join("corpus")
}

impl Record {
    fn all() -> BTreeMap<String, Self> {
        let files = std::fs::read_dir(folder()).expect("the corpus");
        let each = files.map(|file| {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let name = name.strip_suffix(".json.gz").expect("a record").to_owned();
            let packed = GzDecoder::new(File::open(&path).unwrap());
            (name, serde_json::from_reader(packed).unwrap())
        });
        each.collect()
    }

    fn keep(&self, name: &str) {
        let file = File::create(folder().join(format!("{name}.json.gz"))).unwrap();
        let mut packed = GzEncoder::new(file, Compression::best());
        serde_json::to_writer(&mut packed, self).unwrap();
        packed.finish().unwrap();
    }

    /// As if it had been diagnosed today.
    fn run(&self) -> Run {
        let mut run = Run::from_json(&self.run.to_string()).expect("a Run");
        let case = Case::of(&run);
        let scope = match run.command.iter().any(|word| word == "check") {
            true => Scope::Path,
            false => Scope::Part,
        };
        let (findings, verdict) = diagnose(&case, scope);
        (run.findings, run.verdict) = (findings, Some(verdict));
        run
    }

    /// What deviates from the truth of a scenario.
    fn deviations(&self, scenario: &str) -> Vec<String> {
        let scenario = Scenario::parse(scenario, "the corpus").unwrap();
        let deviations = truth(&scenario, &self.run(), &self.stats);
        deviations.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn recorded_runs_are_diagnosed_as_their_truth_has_it() {
    let mut wrong = Vec::new();
    for (name, record) in Record::all() {
        // A changed network is none of its truth, and others' servers do not show all of it.
        if !name.contains(['.', '@']) {
            let deviations = record.deviations(&record.scenario).into_iter();
            wrong.extend(deviations.map(|deviation| format!("{name}: {deviation}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn recorded_checks_with_others_servers_come_to_the_same_first_finding() {
    let records = Record::all();
    let mut wrong = Vec::new();
    for (scenario, protocol) in WITH_OTHERS {
        let record = &records[&format!("{scenario}@{protocol}")];
        let truth = Scenario::parse(&record.scenario, scenario).unwrap().truth;
        let run = record.run();
        let first = run.findings.first().map(|finding| finding.cause);
        if first.is_none() || first != truth.first_finding {
            let causes: Vec<_> = run.findings.iter().map(|f| f.cause).collect();
            wrong.push(format!("{scenario}@{protocol}: {causes:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What `--explain` prints of each finding adds up to its confidence; signs that nothing explains have no rule, and no sum.
#[test]
fn the_confidence_of_every_recorded_finding_can_be_followed() {
    for (name, record) in Record::all() {
        let run = record.run();
        let weighed = run.findings.iter();
        let weighed = weighed.filter(|finding| finding.cause != Cause::Unexplained);
        let accounts = accounts(&Case::of(&run), &run.findings);
        assert_eq!(accounts.len(), weighed.clone().count(), "{name}");
        for (finding, account) in weighed.zip(&accounts) {
            let odds = account.bits().exp2();
            let sure = (odds / (1.0 + odds)).min(0.99);
            let found = (finding.cause, finding.confidence);
            assert_eq!(found.0, account.cause, "{name}");
            assert!(
                (found.1 - sure).abs() < 1e-9,
                "{name}: {found:?} {account:?}"
            );
        }
    }
}

/// The truth of a network is not that of the same one with one parameter changed.
#[test]
fn recorded_runs_of_changed_networks_deviate() {
    let records = Record::all();
    for change in &CHANGED {
        let record = &records[&recorded_as(change)];
        let original = &records[change.scenario].scenario;
        change.is_seen(&record.run(), &record.deviations(original));
    }
}

fn recorded_as(change: &Changed) -> String {
    format!("{}.{}", change.scenario, change.what)
}

/// Measures in a network, by name or file, whose text is given. What a late lab measured is of the machine and not kept:
/// lines of 10 Gbit/s take more than two processors.
fn record(name: &str, network: &str, text: &str, command: &[&str]) {
    let measured = measured_in(network, command);
    let is_stolen = |finding: &Finding| finding.cause == Cause::VmSteal;
    let disturbed = measured.run.findings.iter().any(is_stolen);
    if disturbed || measured.run.local.lab.is_none_or(|lab| lab.overrun) {
        eprintln!("{name} is not kept: the machine was late");
        return;
    }
    let record = Record {
        scenario: text.to_owned(),
        run: measured.json,
        stats: measured.stats,
    };
    record.keep(name);
}

/// The same check with a server that is no responder.
fn with_others(scenario: &str, protocol: &str) {
    let text = Scenario::text(scenario).unwrap();
    let mut command = vec!["check", "server", "--protocol", protocol];
    if protocol != "iperf3" {
        command.push("--insecure");
    }
    record(&format!("{scenario}@{protocol}"), scenario, &text, &command);
}

#[test]
#[ignore = "writes the corpus"]
fn record_all() {
    std::fs::create_dir_all(folder()).unwrap();
    type Job = Box<dyn Fn() + Sync>;
    let mut jobs: Vec<Job> = Vec::new();
    for scenario in Scenario::built_in().unwrap() {
        let command = scenario.truth.measure[1..].to_vec();
        if VERBS.contains(&command[0].as_str()) {
            jobs.push(Box::new(move || {
                let text = Scenario::text(&scenario.name).unwrap();
                let command: Vec<&str> = command.iter().map(String::as_str).collect();
                record(&scenario.name, &scenario.name, &text, &command);
            }));
        }
    }
    for (name, protocol) in WITH_OTHERS {
        jobs.push(Box::new(move || with_others(name, protocol)));
    }
    for change in &CHANGED {
        jobs.push(Box::new(|| {
            let (text, name) = (change.text(), recorded_as(change));
            let file = scenario(&text);
            let network = file.path().to_str().unwrap();
            record(&name, network, &text, &change.command());
        }));
    }
    let jobs: Vec<&(dyn Fn() + Sync)> = jobs.iter().map(|job| &**job as _).collect();
    side_by_side(&jobs);
}
