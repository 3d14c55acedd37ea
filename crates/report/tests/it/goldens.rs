//! What a Run of the bloated cable line looks like, kept: a change of any page must be seen and
//! wanted. `cargo insta review`, or INSTA_UPDATE=always, takes a new one.

use std::collections::BTreeSet;

use plumb_model::run::{LabChange, Run};
use plumb_model::vocabulary::Vocabulary as _;
use plumb_report::export::svg::svg;
use plumb_report::text::{HostSection, Style};
use plumb_report::{compare, html, text};
use serde_json::Value;

const PLAIN: Style = Style {
    color: false,
    width: 80,
};

/// Without the style sheet and the course of the curves, which nobody can review as text.
fn skeleton(page: &str) -> String {
    let (before, rest) = page.split_once("<style>").expect("a style sheet");
    let (_, after) = rest.split_once("</style>").expect("its end");
    let mut kept = format!("{before}<style>…</style>");
    for (i, part) in after.split(" d=\"").enumerate() {
        match part.split_once('"') {
            Some((path, tail)) if i > 0 => {
                assert!(path.starts_with('M'), "{path}");
                kept.push_str(" d=\"…\"");
                kept.push_str(tail);
            }
            _ => kept.push_str(part),
        }
    }
    kept
}

#[test]
fn run_as_text() {
    insta::assert_snapshot!(
        "text-before",
        text::render(&crate::sample::before(), &PLAIN)
    );
    insta::assert_snapshot!("text-after", text::render(&crate::sample::after(), &PLAIN));
    insta::assert_snapshot!(
        "text-ping-and-port",
        text::render(&crate::sample::ping_and_port(), &PLAIN)
    );
    insta::assert_snapshot!(
        "brief-before",
        text::render_brief(&crate::sample::before(), &PLAIN)
    );
}

/// A Run of the first version with one measurement of each kind, every field of which has a value; the
/// values are made up.
const EVERY_KIND: &str = include_str!("runs/every-kind.json");

pub(crate) fn every_kind() -> Run {
    Run::from_json(EVERY_KIND).expect("a Run")
}

#[test]
fn every_kind_is_there() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../../schemas/run.schema.json")).expect("JSON");
    let kinds = schema.pointer("/$defs/Measurement/oneOf").expect("kinds");
    let kinds = kinds.as_array().into_iter().flatten().map(|kind| {
        let word = kind.pointer("/properties/kind/const").expect("a word");
        word.as_str().expect("a text").to_owned()
    });
    let kinds: BTreeSet<String> = kinds.collect();
    assert!(kinds.len() > 20, "{kinds:?}");
    let run: Value = serde_json::from_str(EVERY_KIND).expect("JSON");
    let measurements = run["measurements"].as_array().expect("a list");
    let there = measurements
        .iter()
        .map(|m| m["kind"].as_str().expect("a kind").to_owned());
    assert_eq!(there.collect::<BTreeSet<_>>(), kinds);
}

#[test]
fn every_kind_as_text() {
    insta::assert_snapshot!("text-every-kind", text::render(&every_kind(), &PLAIN));
    insta::assert_snapshot!(
        "brief-every-kind",
        text::render_brief(&every_kind(), &PLAIN)
    );
}

#[test]
fn every_kind_in_a_comparison() {
    let run = every_kind();
    let comparison = compare::compare(&run, &run);
    let rows = comparison.rows.iter().map(|row| {
        let direction = row.direction.map(|d| d.name());
        let protocol = row.protocol.map(|p| p.name());
        let of = [row.of.as_deref(), protocol, direction];
        let of: Vec<&str> = of.into_iter().flatten().collect();
        let (unit, value) = (row.unit, row.before.unwrap_or(f64::NAN));
        format!("{}: {} {of:?} = {value} {unit:?}\n", row.phase, row.name)
    });
    insta::assert_snapshot!("comparison-every-kind", rows.collect::<String>());
}

#[test]
fn facts_of_a_machine_as_text() {
    let run = crate::sample::machine::full();
    insta::assert_snapshot!("host-facts", text::render_host_sections(&run, None, &PLAIN));
    let wifi = text::render_host_sections(&run, Some(HostSection::Wifi), &PLAIN);
    assert!(wifi.contains("802.11ax") && !wifi.contains("MTU"), "{wifi}");
    // A machine that told nothing says so in every part.
    for (section, _) in HostSection::WORDS {
        let text =
            text::render_host_sections(&crate::sample::machine::silent(), Some(*section), &PLAIN);
        assert!(text.lines().count() >= 3, "{text}");
    }
}

#[test]
fn run_in_colour() {
    let text = text::render(
        &crate::sample::before(),
        &Style {
            color: true,
            width: 80,
        },
    );
    assert!(text.starts_with("\u{1b}[1mcable.example"));
    assert!(text.contains("Latency under load: \u{1b}[1m\u{1b}[31mF\u{1b}[0m"));
    // Colours aside, it is the same text.
    let mut plain = String::new();
    for (i, part) in text.split('\u{1b}').enumerate() {
        plain.push_str(if i == 0 {
            part
        } else {
            part.split_once('m').expect("the end of a colour").1
        });
    }
    assert_eq!(plain, text::render(&crate::sample::before(), &PLAIN));
}

#[test]
fn run_as_page() {
    insta::assert_snapshot!(
        "page-before",
        skeleton(&html::render(&crate::sample::before()))
    );
    insta::assert_snapshot!(
        "page-ping-and-port",
        skeleton(&html::render(&crate::sample::ping_and_port()))
    );
}

#[test]
fn losses_and_delays_of_udp_are_drawn_over_time() {
    let mut run = crate::sample::ping_and_port();
    let stream = serde_json::json!({
        "id": "m9", "kind": "udp", "at_s": 1.0, "duration_s": 2.0, "context": { "phase": "up" },
        "result": {
            "direction": "up", "stream": 0, "pattern": "constant", "payload_bytes": 1000, "gso_segments": 1,
            "gro": false, "cpu": { "local_ratio": 0.1 },
        },
        "series": {
            "bps": { "t_s": [0.1, 0.2, 0.3], "value_bps": [1e6, 0.0, 5e5] },
            "loss_ratio": { "t_s": [0.1, 0.2, 0.3], "value_ratio": [0.0, 1.0, 0.5] },
            "pdv_s": { "t_s": [0.1, 0.2, 0.3], "value_s": [0.001, null, 0.005] },
        },
    });
    run.measurements
        .push(serde_json::from_value(stream).expect("a measurement"));
    let page = html::render(&run);
    for title in ["UDP packets lost, %", "UDP delay above the smallest, ms"] {
        assert!(page.contains(title), "{title}");
    }
    // What arrived, what was lost and how long it took, of one direction; of two stretches one lost all. Each is drawn for
    // a wide page and for a phone.
    assert_eq!(page.matches("class=\"line up\" d=").count(), 2 * 3);
    // Where nothing was lost there is nothing to draw.
    let measurement = run.measurements.last_mut().expect("the stream");
    let losses = measurement
        .series
        .get_mut("loss_ratio")
        .expect("the losses");
    losses.values = vec![Some(0.0); 3];
    assert!(!html::render(&run).contains("UDP packets lost"));
    let svg = svg(&run).expect("a chart");
    assert!(svg.contains("UDP delay above the smallest, ms"));
}

#[test]
fn comparison() {
    let (before, after) = (crate::sample::before(), crate::sample::after());
    let comparison = compare::compare(&before, &after);
    insta::assert_snapshot!(
        "comparison-json",
        serde_json::to_string_pretty(&comparison).expect("JSON")
    );
    insta::assert_snapshot!(
        "comparison-text",
        text::render_comparison(&comparison, &PLAIN)
    );
    insta::assert_snapshot!(
        "comparison-page",
        skeleton(&html::render_comparison(&before, &after, &comparison))
    );
}

#[test]
fn summary_says_what_changed() {
    let summary = |a, b| compare::compare(a, b).summary;
    let (before, after) = (crate::sample::before(), crate::sample::after());
    assert_eq!(
        summary(&before, &after),
        "Latency under upload: 703 ms → 24.5 ms (grade F → A), under download: 250 ms → 25.8 ms (grade D → A); \
         upload 18.9 → 17.9 Mbit/s, download 94.1 → 89.4 Mbit/s."
    );
    assert_eq!(
        summary(&before, &before),
        "Nothing changed beyond what two measurements of the same path differ by."
    );
}

#[test]
fn what_is_not_like_with_like_is_said() {
    use plumb_model::context::Phase;
    use plumb_model::results::Outcome;
    let (before, mut after) = (crate::sample::before(), crate::sample::after());
    assert_eq!(
        compare::compare(&before, &after).notes,
        Vec::<String>::new()
    );
    after.target.as_mut().expect("a target").name = "other.example".into();
    after.local.lab.as_mut().expect("a lab").overrun = true;
    for measurement in &mut after.measurements {
        if measurement.context.phase == Some(Phase::Up) {
            measurement.duration_s = 10.0;
        }
        if let Outcome::Throughput(t) = &mut measurement.outcome
            && measurement.context.phase == Some(Phase::Down)
        {
            t.cc = "bbr".into();
        }
    }
    let notes = compare::compare(&before, &after).notes;
    assert_eq!(
        notes,
        [
            "Not like with like: the target was cable.example before and other.example after.",
            "Not like with like: what loaded the down phase was 4 × cubic down before and 4 × bbr down after.",
            "Not like with like: the length of the up phase was 20.00 s before and 10.00 s after.",
            "In the Run after the machine could not keep up with the laboratory.",
        ]
    );
}

#[test]
fn findings_come_and_go() {
    let (before, after) = (crate::sample::before(), crate::sample::after());
    let fixed = compare::compare(&before, &after).findings;
    assert_eq!(
        (fixed.gone.len(), fixed.new.len(), fixed.still.len()),
        (1, 0, 0)
    );
    let broken = compare::compare(&after, &before).findings;
    assert_eq!(
        (broken.gone.len(), broken.new.len(), broken.still.len()),
        (0, 1, 0)
    );
    let same = compare::compare(&before, &before).findings;
    assert_eq!(
        (same.gone.len(), same.new.len(), same.still.len()),
        (0, 0, 1)
    );
}

#[test]
fn an_overrun_stands_on_top() {
    let mut run = crate::sample::before();
    run.local.lab.as_mut().expect("a lab").overrun = true;
    let text = text::render(&run, &PLAIN);
    let at = |what: &str| {
        text.find(what)
            .unwrap_or_else(|| panic!("{what} is missing"))
    };
    assert!(at("! The machine could not keep up") < at("CRITICAL"));
    let page = html::render(&run);
    assert!(page.contains("class=\"warning\">The machine could not keep up"));
}

#[test]
fn another_network_than_the_scenario_is_told() {
    let (before, mut after) = (crate::sample::before(), crate::sample::after());
    let lab = after.local.lab.as_mut().expect("a lab");
    let setting = "line.up.delay.delay".to_owned();
    lab.drawn.insert(setting.clone(), "7ms".into());
    lab.changes.push(LabChange {
        at: "2026-10-01T00:00:00.000Z".into(),
        setting,
        before: Some("7ms".into()),
        after: "40ms".into(),
    });
    let text = text::render(&after, &PLAIN).replace('\n', " ");
    for says in [
        "seed 1 of --vary (line.up.delay.delay=7ms)",
        "Changed at 2026-10-01T00:00:00.000Z: line.up.delay.delay from 7ms to 40ms.",
    ] {
        assert!(text.contains(says), "{text}");
    }
    let notes = compare::compare(&before, &after).notes.join(" ");
    for says in [
        "bloated-cable (seed 1, varied) after",
        "Changed only in the laboratory of the Run after: line.up.delay.delay 40ms.",
    ] {
        assert!(notes.contains(says), "{notes}");
    }
}

#[test]
fn comparison_reads_back() {
    let comparison = compare::compare(&crate::sample::before(), &crate::sample::after());
    let json = serde_json::to_string(&comparison).expect("JSON");
    let read: compare::Comparison = serde_json::from_str(&json).expect("a comparison");
    assert_eq!(
        (&read.summary, &read.grades, &read.findings),
        (
            &comparison.summary,
            &comparison.grades,
            &comparison.findings
        )
    );
    for (a, b) in read.rows.iter().zip(&comparison.rows) {
        // Reading JSON may lose the last bit of a number.
        let close = |a: Option<f64>, b: Option<f64>| {
            a.is_some() == b.is_some()
                && a.zip(b)
                    .is_none_or(|(a, b)| (a - b).abs() <= 1e-9 * b.abs())
        };
        assert!(
            close(a.before, b.before) && close(a.after, b.after) && close(a.change, b.change),
            "{a:?} {b:?}"
        );
        assert_eq!(
            (&a.name, &a.phase, a.direction, a.protocol, a.better),
            (&b.name, &b.phase, b.direction, b.protocol, b.better)
        );
    }
    assert_eq!(read.rows.len(), comparison.rows.len());
}
