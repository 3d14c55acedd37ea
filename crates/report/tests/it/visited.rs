//! What the page of a responder shows of a visit.

use plumb_model::finding::{Clearance, NotMeasured};
use plumb_model::run::Run;
use plumb_report::visited::visited;
use serde_json::{Value, json};

fn shown(run: &Run) -> Value {
    serde_json::to_value(visited(run)).unwrap()
}

/// A healthy line whose all-clear needs more than a browser measures.
fn healthy() -> Run {
    let mut run = crate::sample::after();
    run.findings.clear();
    let verdict = run.verdict.as_mut().unwrap();
    verdict.headline = "Not measured: something. Not measured either: more.".to_owned();
    verdict.clearance = Some(Clearance::NotMeasured);
    verdict.latency_grade = None;
    verdict.not_measured = vec![NotMeasured {
        what: "latency under both".to_owned(),
        why: "there was no load".to_owned(),
        option: Some("plumb check".to_owned()),
    }];
    run
}

#[test]
fn a_healthy_line_begins_with_the_answer_and_ends_with_what_is_open() {
    let shown = shown(&healthy());
    let headline = shown["headline"].as_str().unwrap();
    assert!(
        headline
            .starts_with("No fault seen: 89.4 Mbit/s down and 17.9 Mbit/s up, round trips grow by"),
        "{headline}"
    );
    assert_eq!(shown["grade"], "A");
    let open = ["Latency under both: there was no load (plumb check would measure it)."];
    assert_eq!(shown["not_excluded"], json!(open));
    let outcomes = shown["outcomes"].as_array().unwrap();
    let call = outcomes.iter().find(|one| one["what"] == "Calls").unwrap();
    assert_eq!(call["fares"], "good", "{call}");
}

#[test]
fn what_was_found_or_not_measured_is_not_called_healthy() {
    assert_eq!(
        shown(&crate::sample::before())["headline"],
        crate::sample::before().verdict.unwrap().headline
    );
    let mut without_upload = healthy();
    without_upload.measurements.truncate(2);
    let shown = shown(&without_upload);
    assert!(
        shown["headline"]
            .as_str()
            .unwrap()
            .starts_with("Not measured"),
        "{shown}"
    );
}
