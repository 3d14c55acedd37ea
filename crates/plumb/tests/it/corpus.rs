//! Runs that were made in labs, each with its scenario and what the links recorded, kept in `corpus/`: what numbers mean
//! is tried on them without measuring again. `make record-corpus` makes them anew.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use plumb_diagnose::explanation::{Standing, explain};
use plumb_diagnose::facts::State;
use plumb_diagnose::weighing::accounts;
use plumb_diagnose::{Case, Scope, diagnose};
use plumb_lab::disturbance::Disturbance;
use plumb_lab::scenario::Scenario;
use plumb_lab::stats::LabStats;
use plumb_lab::truth::truth;
use plumb_model::finding::{Cause, Clearance, Finding, Severity};
use plumb_model::run::Run;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::common::network::scenario;
use crate::common::{measured_in, repository, side_by_side};
use crate::truth::{CHANGED, Changed};

/// Verbs whose findings follow from the Run alone.
const VERBS: [&str; 3] = ["check", "rate", "load"];

/// Checks by a protocol in a scenario whose truth is not measured so, and the cause that comes first: servers that are no
/// responder show as much. The responder speaks them all.
const CHECKED: [(&str, &str, Cause); 8] = [
    ("delay-varies", "iperf3", Cause::DelayVaries),
    ("delay-varies", "nq", Cause::DelayVaries),
    ("handover", "iperf3", Cause::Handover),
    ("home-cable", "ndt7", Cause::BufferbloatUp),
    ("long-fat-rcvbuf", "http", Cause::ReceiveBufferSmall),
    ("mtu-black-hole-down", "iperf3", Cause::PmtudBlackHole),
    ("mtu-black-hole-down", "nq", Cause::PmtudBlackHole),
    ("no-window-scale", "native", Cause::WindowScalingStripped),
];

/// A quick check in a network that is healthy.
const QUICK: &str = "fibre@quick";

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

/// A Run as if it had been diagnosed today, with the network in which it was made and what the links recorded.
pub(crate) struct Recorded {
    scenario: String,
    pub(crate) run: Run,
    stats: LabStats,
}

/// All that is recorded, by name. It is read once, which takes a processor for seconds: labs run beside it.
pub(crate) fn recorded() -> &'static BTreeMap<String, Recorded> {
    static ALL: OnceLock<BTreeMap<String, Recorded>> = OnceLock::new();
    ALL.get_or_init(|| {
        let files = std::fs::read_dir(folder()).expect("the corpus");
        let each = files.map(|file| {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let name = name.strip_suffix(".json.gz").expect("a record").to_owned();
            let mut text = String::new();
            let mut packed = GzDecoder::new(File::open(&path).unwrap());
            packed.read_to_string(&mut text).unwrap();
            let record: Record = serde_json::from_str(&text).unwrap();
            (name, record.diagnosed())
        });
        each.collect()
    })
}

impl Record {
    fn keep(&self, name: &str) {
        let file = File::create(folder().join(format!("{name}.json.gz"))).unwrap();
        let mut packed = GzEncoder::new(file, Compression::best());
        serde_json::to_writer(&mut packed, self).unwrap();
        packed.finish().unwrap();
    }

    fn diagnosed(self) -> Recorded {
        let mut run = Run::from_json(&self.run.to_string()).expect("a Run");
        let case = Case::of(&run);
        let scope = match run.command.iter().any(|word| word == "check") {
            true => Scope::Path,
            false => Scope::Part,
        };
        let (findings, verdict) = diagnose(&case, scope);
        (run.findings, run.verdict) = (findings, Some(verdict));
        Recorded {
            scenario: self.scenario,
            run,
            stats: self.stats,
        }
    }
}

impl Recorded {
    /// What deviates from the truth of a scenario.
    fn deviations(&self, scenario: &str) -> Vec<String> {
        let scenario = Scenario::parse(scenario, "the corpus").unwrap();
        let deviations = truth(&scenario, &self.run, &self.stats);
        deviations.iter().map(ToString::to_string).collect()
    }
}

#[test]
fn recorded_runs_are_diagnosed_as_their_truth_has_it() {
    let mut wrong = Vec::new();
    for (name, record) in recorded() {
        // A changed network is none of its truth, and what is measured otherwise does not show all of it.
        if !name.contains(['.', '@']) {
            let deviations = record.deviations(&record.scenario).into_iter();
            wrong.extend(deviations.map(|deviation| format!("{name}: {deviation}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn recorded_checks_by_a_protocol_come_to_their_first_finding() {
    let records = recorded();
    let mut wrong = Vec::new();
    for (scenario, protocol, cause) in CHECKED {
        let run = &records[&format!("{scenario}@{protocol}")].run;
        let causes: Vec<_> = run.findings.iter().map(|f| f.cause).collect();
        if causes.first() != Some(&cause) {
            wrong.push(format!("{scenario}@{protocol}: {causes:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Nothing is wrong with the network, and 4 s of load are too few to say so.
#[test]
fn a_recorded_quick_check_settles_nothing() {
    let run = &recorded()[QUICK].run;
    let verdict = run.verdict.as_ref().unwrap();
    let clearance = verdict.clearance;
    assert_eq!(clearance, Some(Clearance::NotMeasured), "{verdict:?}");
    assert!(verdict.headline.starts_with("Inconclusive:"), "{verdict:?}");
    let warns = |finding: &Finding| finding.severity > Severity::Info;
    assert!(!run.findings.iter().any(warns), "{:?}", run.findings);
    let looked = verdict.looked_for.as_ref().unwrap();
    assert!(!looked.absent.is_empty() && !looked.not.is_empty());
}

/// What `--explain` prints of each finding adds up to its confidence; signs that nothing explains have no rule, and no sum.
#[test]
fn the_confidence_of_every_recorded_finding_can_be_followed() {
    for (name, record) in recorded() {
        let run = &record.run;
        let weighed = run.findings.iter();
        let weighed = weighed.filter(|finding| finding.cause != Cause::Unexplained);
        let accounts = accounts(&Case::of(run), &run.findings);
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

/// A rule that records facts and found nothing has one that is not as a finding needs it, or was not measured.
#[test]
fn every_rule_that_records_its_facts_says_why_it_found_nothing() {
    for (name, record) in recorded() {
        let run = &record.run;
        let case = Case::of(run);
        for (cause, _) in plumb_diagnose::causes::all() {
            let explanation = explain(&case, &run.findings, cause);
            let is_not_found = matches!(
                explanation.standing,
                Standing::Absent | Standing::NotLookedFor(_)
            );
            let mut facts = explanation.facts.iter();
            let says_why = facts.any(|fact| fact.state != State::Met);
            if is_not_found && !explanation.facts.is_empty() {
                assert!(says_why, "{name}: {cause:?} {:?}", explanation.facts);
            }
        }
    }
}

/// The truth of a network is not that of the same one with one parameter changed.
#[test]
fn recorded_runs_of_changed_networks_deviate() {
    let records = recorded();
    for change in &CHANGED {
        let record = &records[&recorded_as(change)];
        let original = &records[change.scenario].scenario;
        change.is_seen(&record.run, &record.deviations(original));
    }
}

fn recorded_as(change: &Changed) -> String {
    format!("{}.{}", change.scenario, change.what)
}

/// Measures in a network, by name or file, whose text is given. What a late lab measured is of the machine and not kept:
/// lines of 10 Gbit/s take more than two processors.
fn record(name: &str, network: &str, text: &str, command: &[&str]) {
    let measured = measured_in(network, command);
    let mark = measured.run.local.lab.as_ref().expect("made in a lab");
    let disturbances = Disturbance::of_run(mark);
    if !disturbances.is_empty() {
        eprintln!("{name} is not kept: {disturbances:?}");
        return;
    }
    let record = Record {
        scenario: text.to_owned(),
        run: measured.json,
        stats: measured.stats,
    };
    record.keep(name);
}

/// A check with more options than the scenario's own.
fn check(scenario: &str, name: &str, options: &[&str]) {
    let text = Scenario::text(scenario).unwrap();
    let command = [&["check", "server"], options].concat();
    record(name, scenario, &text, &command);
}

/// A check by a protocol.
fn by_protocol(scenario: &str, protocol: &str) {
    let mut options = vec!["--protocol", protocol];
    if !["iperf3", "native"].contains(&protocol) {
        options.push("--insecure");
    }
    check(scenario, &format!("{scenario}@{protocol}"), &options);
}

/// Records all, or those named in the environment: PLUMB_RECORD=fibre,home-cable@ndt7.
#[test]
#[ignore = "writes the corpus"]
fn record_all() {
    std::fs::create_dir_all(folder()).unwrap();
    let only = std::env::var("PLUMB_RECORD").ok();
    let wanted = |name: &str| {
        let mut names = only.iter().flat_map(|names| names.split(','));
        only.is_none() || names.any(|wanted| wanted == name)
    };
    type Job = Box<dyn Fn() + Sync>;
    let mut jobs: Vec<Job> = Vec::new();
    for scenario in Scenario::built_in().unwrap() {
        let command = scenario.truth.measure[1..].to_vec();
        if VERBS.contains(&command[0].as_str()) && wanted(&scenario.name) {
            jobs.push(Box::new(move || {
                let text = Scenario::text(&scenario.name).unwrap();
                let command: Vec<&str> = command.iter().map(String::as_str).collect();
                record(&scenario.name, &scenario.name, &text, &command);
            }));
        }
    }
    for (name, protocol, _) in CHECKED {
        if !wanted(&format!("{name}@{protocol}")) {
            continue;
        }
        jobs.push(Box::new(move || by_protocol(name, protocol)));
    }
    if wanted(QUICK) {
        jobs.push(Box::new(|| check("fibre", QUICK, &["--quick"])));
    }
    for change in CHANGED.iter().filter(|change| wanted(&recorded_as(change))) {
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
