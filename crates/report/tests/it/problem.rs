//! The case that is handed over: over every recorded Run it fits, names what it rests on, and holds the Run.

use plumb_model::goal::{Asked, LinePlan};
use plumb_model::run::Run;
use plumb_report::html;
use plumb_report::problem::Said;
use plumb_report::text::{Style, render_problem};

use crate::check::runs;
use crate::goldens::every_kind;

const PLAIN: Style = Style {
    color: false,
    width: 80,
};

fn recorded(name: &str) -> Run {
    let mut all = runs().into_iter();
    let file = format!("/{name}.json.gz");
    all.find(|(of, _)| of.ends_with(&file)).expect("a record").1
}

#[test]
fn every_case_fits_and_its_page_holds_the_run() {
    let mut all = runs();
    all.push(("every kind".to_owned(), every_kind()));
    assert!(all.len() > 60);
    for (name, run) in all {
        let text = render_problem(&run, &Said::default(), &PLAIN);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
        }
        for finding in &run.findings {
            assert!(
                text.contains(finding.cause.name()),
                "{name}: {}",
                finding.cause
            );
        }
        let page = html::render_problem(&run, &Said::default()).expect("a page");
        assert_eq!(Run::from_json(&page).expect("its Run"), run, "{name}");
    }
}

#[test]
fn the_parts_of_a_problem_report_are_there() {
    let mut run = recorded("home-cable");
    run.asked = Some(Asked {
        plan: Some(LinePlan {
            down_bps: 1e8,
            up_bps: 2e7,
        }),
        ..Asked::default()
    });
    let said = Said {
        who: Some("noc@example.net".to_owned()),
        since: Some("Monday".to_owned()),
        expected: None,
    };
    let text = render_problem(&run, &said, &PLAIN);
    let parts = [
        "Problem report: server",
        "Reported by  noc@example.net",
        "Since        Monday",
        "Expected     what is paid for",
        "Expected and measured",
        "From where to where",
        "● this host",
        "● hop 1: ",
        // No load's packets wait before it.
        "● hop 2: ",
        "│ ! bufferbloat-up",
        "● server (",
        "What was measured",
        "Excluded, and by what",
        "What remains",
        "Proven if ",
        "The findings with their evidence",
    ];
    let mut rest = text.as_str();
    for part in parts {
        let at = rest.find(part);
        let at = at.unwrap_or_else(|| panic!("no '{part}' in its place:\n{text}"));
        rest = &rest[at + part.len()..];
    }
    let row = |name: &str| {
        let row = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        row.expect(name)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(
        row("upload rate").starts_with("upload rate 20.0 Mbit/s 19.0"),
        "{text}"
    );
    // What is excluded is excluded by something that was measured.
    let looked = run.verdict.as_ref().and_then(|v| v.looked_for.as_ref());
    for cause in &looked.expect("what was looked for").absent {
        assert!(text.contains(cause.name()), "{cause}");
    }
}

#[test]
fn a_loss_on_the_way_stands_at_its_hop() {
    let mut at_a_hop = 0;
    for (name, run) in runs() {
        let text = render_problem(&run, &Said::default(), &PLAIN);
        let map = text.split_once("From where to where\n").expect("a map").1;
        let map = map.split_once("\n\n").expect("its end").0;
        let nodes: Vec<&str> = map.lines().filter(|line| line.contains('●')).collect();
        assert!(nodes[0].contains("this host"), "{name}: {map}");
        at_a_hop += usize::from(map.contains("loss of "));
    }
    assert!(at_a_hop > 0);
}
