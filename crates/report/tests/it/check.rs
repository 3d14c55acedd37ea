//! The text of a check over every Run that is kept: one screen, and nothing that only a program reads.

use std::fs::File;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use plumb_diagnose::{Case, Scope, diagnose};
use plumb_model::goal::{Asked, Effort, LinePlan};
use plumb_model::results::Outcome;
use plumb_model::run::Run;
use plumb_report::text::{Style, render_check};
use serde_json::Value;

fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(&folder).expect("a folder");
    let mut files: Vec<PathBuf> = files
        .map(|file| file.expect("a file").path())
        .filter(|file| file.to_string_lossy().ends_with(end))
        .collect();
    files.sort();
    files
}

/// Every recorded Run, as if it had been diagnosed today.
pub(crate) fn runs() -> Vec<(String, Run)> {
    let mut all = Vec::new();
    for file in files("../../corpus", ".json.gz") {
        let packed = GzDecoder::new(File::open(&file).expect("a record"));
        let record: Value = serde_json::from_reader(packed).expect("JSON");
        all.push((file, record["run"].to_string()));
    }
    for folder in ["../diagnose/fixtures", "../model/fixtures"] {
        for file in files(folder, ".json") {
            let text = std::fs::read_to_string(&file).expect("a Run");
            all.push((file, text));
        }
    }
    let judged = all.into_iter().map(|(file, text)| {
        let run = Run::from_json(&text).expect("a Run");
        (file.to_string_lossy().into_owned(), judged(run))
    });
    judged.collect()
}

pub(crate) fn judged(mut run: Run) -> Run {
    let (findings, verdict) = diagnose(&Case::of(&run), Scope::Path);
    (run.findings, run.verdict) = (findings, Some(verdict));
    run
}

fn text(run: &Run) -> String {
    let style = Style {
        color: false,
        width: 80,
    };
    render_check(run, &style)
}

#[test]
fn a_check_is_one_screen() {
    let runs = runs();
    assert!(runs.len() > 50, "{}", runs.len());
    for (name, run) in runs {
        let mut strict = run.clone();
        strict.asked = Some(Asked {
            effort: Effort::Quick,
            rate_bps: Some(9e9),
            rtt_s: Some(0.001),
            plan: Some(LinePlan {
                down_bps: 1e9,
                up_bps: 1e9,
            }),
            ..Asked::default()
        });
        for run in [run, judged(strict)] {
            let text = text(&run);
            assert!(text.lines().count() <= 22, "{name}:\n{text}");
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}\n{text}");
                assert!(!line.contains("result."), "{name}: {line}");
                assert!(!line.contains("…: "), "evidence is cut: {name}: {line}");
            }
        }
    }
}

#[test]
fn evidence_is_a_sentence_with_numbers_and_units() {
    let all = runs();
    let (_, cable) = all
        .iter()
        .find(|(name, _)| name.ends_with("/home-cable.json.gz"))
        .expect("a record");
    let text = text(cable);
    assert!(text.contains("· 95th percentile under upload: "), "{text}");
    assert!(text.contains(" ms above idle, limit 60 ms"), "{text}");
    assert!(
        text.contains("  call  bad  both: 95 of 100 packets back within "),
        "{text}"
    );
    assert!(text.contains("Fix on the router: "), "{text}");
}

#[test]
fn what_was_asked_for_is_compared_with_what_was_measured() {
    let all = runs();
    let (_, fibre) = all
        .iter()
        .find(|(name, _)| name.ends_with("/home-cable-managed.json.gz"))
        .expect("a record");
    let with = |down_bps, up_bps| {
        let mut run = fibre.clone();
        let plan = Some(LinePlan { down_bps, up_bps });
        run.asked = Some(Asked {
            plan,
            ..Asked::default()
        });
        judged(run)
    };
    let reached = with(95e6, 19e6);
    assert!(
        text(&reached).contains("Goal reached: down "),
        "{}",
        text(&reached)
    );
    let missed = with(500e6, 19e6);
    let words: Vec<_> = missed.findings.iter().map(|f| f.cause.name()).collect();
    assert!(words.contains(&"goal-missed"), "{words:?}");
}

#[test]
fn without_a_responder_the_next_step_is_to_run_one() {
    let all = runs();
    let (_, healthy) = all
        .iter()
        .find(|(name, _)| name.ends_with("/home-cable-managed.json.gz"))
        .expect("a record");
    let mut run = healthy.clone();
    run.findings.clear();
    let next = "Next: run `plumb serve` on a machine at the far end";
    assert!(!text(&run).contains(next), "{}", text(&run));
    run.target.as_mut().expect("a target").host = None;
    assert!(text(&run).contains(next), "{}", text(&run));
    assert!(text(&run).contains("`plumb explain far-end`"));
    run.target = None;
    assert!(text(&run).contains("Next: plumb check HOST"));
}

/// A recorded Run, as if it had been diagnosed today.
pub(crate) fn recorded(name: &str) -> Run {
    let file = format!("../../corpus/{name}.json.gz");
    let packed = GzDecoder::new(File::open(&file).expect("a record"));
    let record: Value = serde_json::from_reader(packed).expect("JSON");
    judged(Run::from_json(&record["run"].to_string()).expect("a Run"))
}

fn details(run: &Run) -> String {
    let style = Style {
        color: false,
        width: 10_000,
    };
    plumb_report::text::render(run, &style)
}

#[test]
fn a_quick_check_names_what_is_missing_and_why_there_is_no_grade() {
    let quick = recorded("fibre@quick");
    let short = text(&quick).replace('\n', " ");
    for words in [
        "Not measured either: latency with both directions loaded, loss while idle.",
        "Half of the packets: too few probes for 95 of 100.",
    ] {
        assert!(short.contains(words), "{words}: {short}");
    }
    let all = details(&quick);
    let all = all.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "download: no grade, and no better than A+, because not all was measured (latency under upload and latency under download,";
    assert!(all.contains(why), "{all}");
    // A queue that a short load shows was measured; how long it gets was not.
    let bloated = recorded("home-wifi-bloated");
    let missing = bloated.verdict.expect("a verdict").not_measured;
    let what: Vec<&str> = missing.iter().map(|one| one.what.as_str()).collect();
    assert!(
        what.contains(&"the most that latency under upload reaches"),
        "{what:?}"
    );
}

#[test]
fn what_is_lost_of_round_trips_is_lost_in_both_directions_together() {
    let lossy = recorded("home-lossy");
    let short = text(&lossy).replace('\n', " ");
    for words in [
        "(11.6 % in both directions together,",
        "call  bad  upload: 15 % lost, up and down together; bad from 3 %",
    ] {
        assert!(short.contains(words), "{words}: {short}");
    }
    assert!(!details(&lossy).contains("why was not found out"));
}

#[test]
fn a_sentence_has_figures_of_one_run() {
    let mut both = recorded("home-cable");
    let mut older = both.measurements.clone();
    for measurement in &mut older {
        measurement.context.run = Some("older".to_owned());
        if let Outcome::LoadedLatency(latency) = &mut measurement.outcome {
            latency.increase_s.p95 = 0.001;
        }
    }
    for measurement in &mut both.measurements {
        measurement.context.run = Some("newer".to_owned());
    }
    both.measurements.splice(0..0, older);
    let all = details(&both);
    for words in ["other packets' by 1.0 ms", "other packets' by 698 ms"] {
        assert!(all.contains(words), "{words}: {all}");
    }
}

#[test]
fn no_two_rows_of_a_table_have_one_name() {
    let copy = recorded("copy-near");
    let all = details(&copy);
    for title in ["UDP\n", "UDP packets\n", "Round-trip time by probe"] {
        let mut tables = all.split("\n\n");
        let table = tables.find(|table| table.starts_with(title)).expect(title);
        let rows = table.lines().skip(2).filter(|row| row.starts_with("  "));
        let names: Vec<Vec<&str>> = rows
            .map(|row| {
                row.trim()
                    .split("  ")
                    .filter(|cell| !cell.is_empty())
                    .take(2)
                    .collect()
            })
            .collect();
        let mut once = names.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), names.len(), "{table}");
    }
}
