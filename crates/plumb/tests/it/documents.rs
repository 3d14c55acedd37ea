//! What plumb publishes agrees with what it does.

use std::collections::BTreeSet;

use crate::common::{plumb, repository, stderr, stdout};
use plumb_host::knobs::Catalogue;
use plumb_lab::list::ScenarioList;
use plumb_lab::stats::LabStats;
use plumb_model::calc::Calculation;
use plumb_model::run::Run;
use plumb_model::segments::Segments;
use plumb_model::shape::{ShapePlan, ShapeStatus};
use plumb_model::tune::{TunePlan, TuneStatus};
use plumb_report::compare::Comparison;
use schemars::schema_for;
use serde_json::Value;

/// Set to write the schemas anew instead of comparing them with the types.
const UPDATE: &str = "PLUMB_UPDATE_SCHEMAS";

#[test]
fn schemas_are_those_of_the_types() {
    for (name, schema) in [
        ("run", schema_for!(Run).to_value()),
        ("compare", schema_for!(Comparison).to_value()),
        ("segments", schema_for!(Segments).to_value()),
        ("calc", schema_for!(Calculation).to_value()),
        ("shape-plan", schema_for!(ShapePlan).to_value()),
        ("shape-status", schema_for!(ShapeStatus).to_value()),
        ("tune-plan", schema_for!(TunePlan).to_value()),
        ("tune-status", schema_for!(TuneStatus).to_value()),
        ("lab-list", schema_for!(ScenarioList).to_value()),
        ("lab-stats", schema_for!(LabStats).to_value()),
    ] {
        let file = repository().join(format!("schemas/{name}.schema.json"));
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&file, text).unwrap();
        } else {
            let published = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(
                published == text,
                "{} is not that of the types: run this test with {UPDATE}=1",
                file.display()
            );
        }
    }
}

#[test]
fn every_property_of_a_schema_is_described() {
    let mut faults = Vec::new();
    for file in std::fs::read_dir(repository().join("schemas")).unwrap() {
        let file = file.unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        let schema: Value = serde_json::from_str(&text).unwrap();
        let name = file.file_name().into_string().unwrap();
        find_faults(&schema, &name, &mut faults);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Adds the faults of every description inside a schema, each with its path.
fn find_faults(schema: &Value, path: &str, faults: &mut Vec<String>) {
    if text_of(schema).is_some_and(|text| text.contains("[`")) {
        faults.push(format!("{path}: a link of rustdoc"));
    }
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties.iter().filter(|(_, p)| !is_constant(p)) {
                    let fault = fault(text_of(property).unwrap_or_default(), may_be_null(property));
                    faults.extend(fault.map(|fault| format!("{path}/{name}: {fault}")));
                    find_faults(property, &format!("{path}/{name}"), faults);
                }
            }
            ("$defs", Value::Object(types)) => {
                for (name, of_type) in types {
                    find_faults(of_type, &format!("{path}/{name}"), faults);
                }
            }
            ("oneOf" | "anyOf", Value::Array(alternatives)) => {
                for alternative in alternatives {
                    find_faults(&described_within(alternative), path, faults);
                }
            }
            (_, inner) => find_faults(inner, path, faults),
        }
    }
}

/// An alternative whose only content, besides a constant tag, has the description of the alternative.
fn described_within(alternative: &Value) -> Value {
    let mut schema = alternative.clone();
    if let Some(text) = alternative.get("description")
        && let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut)
        && let [content] = properties
            .values_mut()
            .filter(|property| !is_constant(property))
            .collect::<Vec<_>>()
            .as_mut_slice()
        && let Some(content) = content.as_object_mut()
    {
        content.entry("description").or_insert(text.clone());
    }
    schema
}

fn is_constant(schema: &Value) -> bool {
    schema.get("const").is_some()
}

fn text_of(schema: &Value) -> Option<&str> {
    schema.get("description")?.as_str()
}

fn may_be_null(schema: &Value) -> bool {
    let alternatives = ["anyOf", "oneOf"].map(|keyword| schema.get(keyword));
    let mut alternatives = alternatives
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .flatten();
    let is_null = |schema: &Value| match schema.get("type") {
        Some(Value::String(kind)) => kind == "null",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
        _ => false,
    };
    is_null(schema) || alternatives.any(is_null)
}

/// What a reader of the description of a property misses.
fn fault(text: &str, may_be_null: bool) -> Option<&'static str> {
    let explains_null = ["null", "Null", "absent", "Absent", "none where"];
    if text.is_empty() {
        Some("no description")
    } else if text.split_whitespace().count() <= 3 {
        Some("three words or fewer")
    } else if !text.ends_with('.') {
        Some("no full stop at the end")
    } else if may_be_null && !explains_null.iter().any(|word| text.contains(word)) {
        Some("what null means is missing")
    } else {
        None
    }
}

#[test]
fn a_description_that_explains_nothing_is_a_fault() {
    let schema = serde_json::json!({
        "description": "Links to [`Run`].",
        "properties": {
            "kind": { "const": "ping" },
            "bare": { "type": "number" },
            "short": { "description": "Median." },
            "open": { "description": "Names of the probes: `m1` …" },
            "lost": { "description": "Round-trip times in seconds.", "type": ["number", "null"] },
            "far": { "description": "The far end, by name.", "anyOf": [{ "type": "null" }] },
            "good": { "description": "Time in seconds. Null where none came.", "type": ["number", "null"] },
        },
        "oneOf": [
            { "description": "Round trips of probes.", "properties": { "kind": { "const": "a" }, "one": {} } },
            { "description": "Round trips of probes.", "properties": { "two": {}, "three": {} } },
        ],
        "$defs": { "Result": { "properties": { "inner": {} } } },
    });
    let mut faults = Vec::new();
    find_faults(&schema, "x", &mut faults);
    let expected = [
        "x: a link of rustdoc",
        "x/bare: no description",
        "x/short: three words or fewer",
        "x/open: no full stop at the end",
        "x/lost: what null means is missing",
        "x/far: what null means is missing",
        "x/two: no description",
        "x/three: no description",
        "x/Result/inner: no description",
    ];
    assert_eq!(faults, expected);
}

#[test]
fn every_page_that_findings_name_is_written() {
    for topic in [
        "bufferbloat",
        "tcp-buffers",
        "host",
        "tcp-counters",
        "udp",
        "lab",
        "scenario",
        "cells",
    ] {
        assert!(
            stdout(&plumb(&["explain", topic])).starts_with("# "),
            "{topic}"
        );
    }
    assert_eq!(plumb(&["explain", "nothing"]).status.code(), Some(2));
    // Knobs, and the pages that they name.
    for knob in ["tcp_rmem", "net.ipv4.tcp_tw_recycle", "autotuninglevel"] {
        assert!(
            stdout(&plumb(&["explain", knob])).starts_with("# "),
            "{knob}"
        );
    }
    for knob in Catalogue::built_in().unwrap().knobs {
        if let Some(page) = knob.page {
            let file = repository().join(format!("kb/{page}.md"));
            assert!(file.exists(), "{}: {page}", knob.name);
        }
    }
}

#[test]
fn what_people_call_things_leads_to_them() {
    let explain = |words: &[&str]| plumb(&[&["explain"], words].concat());
    for (words, title) in [
        (&["fq"][..], "# qdisc fq (linux)"),
        (&["gro"], "# offload gro (linux)"),
        (&["ring", "rx"], "# ring rx (linux)"),
        (&["bbr"], "# net.ipv4.tcp_congestion_control (linux)"),
        (&["TcpRetransSegs"], "# TcpRetransSegs (counter)"),
        (&["retranssegs"], "# TcpRetransSegs (counter)"),
        (&["bufferbloat"], "# "),
    ] {
        let page = stdout(&explain(words));
        assert!(page.starts_with(title), "{words:?}: {page}");
    }
    // One name of a topic and a knob, or of several systems: all of them.
    let mtu = stdout(&explain(&["mtu"]));
    assert!(mtu.contains("\n# mtu (linux)"), "{mtu}");
    let ecn = stdout(&explain(&["ecn"]));
    for os in ["(linux)", "(macos)", "(windows)"] {
        assert!(ecn.contains(os), "{os}: {ecn}");
    }
    // A word has two sentences, a command and a page; of several, each has its own.
    for (words, wanted) in [
        (
            &["vpn"][..],
            &["# vpn", "plumb mtu HOST", "plumb explain mtu"][..],
        ),
        (&["slow", "wifi"], &["# speed", "# wifi", "plumb host"]),
        (&["buffer", "bloat"], &["# bufferbloat", "# Bufferbloat"]),
        (
            &["Zoom", "dies", "here"],
            &["# zoom", "No page for: dies, here."],
        ),
        (&["ring", "rx", "wifi"], &["# ring rx (linux)", "# wifi"]),
    ] {
        let page = stdout(&explain(words));
        for wanted in wanted {
            assert!(page.contains(wanted), "{words:?}: {wanted}: {page}");
        }
    }
    let vpn = stdout(&explain(&["vpn"]));
    assert!(vpn.lines().count() < 10, "{vpn}");
    let topics = stdout(&explain(&[]));
    assert!(topics.contains("Measuring:\n  ping "), "{topics}");
    for (wrong, meant) in [
        ("tcp_rmen", "did you mean tcp_rmem?"),
        ("buferbloat", "did you mean bufferbloat?"),
        ("knob", "did you mean knobs?"),
        // Nothing is like it.
        ("numa", "'numa'\n"),
        ("rmem", "tcp_rmem, rmem_max, rmem_default"),
    ] {
        let said = stderr(&explain(&[wrong]));
        assert!(said.contains(meant), "{said}");
    }
}

#[test]
fn every_counter_with_a_meaning_is_on_its_page() {
    let page = stdout(&plumb(&["explain", "tcp-counters"]));
    for counter in plumb_model::counter::COUNTERS {
        let line = format!(
            "| `{}` | {} | {} |",
            counter.name,
            counter.sense.name(),
            counter.meaning
        );
        assert!(page.contains(&line), "{line}");
    }
}

/// The verbs that `plumb --help` lists.
pub(crate) fn verbs() -> BTreeSet<String> {
    let help = stdout(&plumb(&["--help"]));
    let listed = help
        .lines()
        .skip_while(|line| !line.starts_with("Measure  "));
    let listed = listed.take_while(|line| !line.is_empty());
    // Behind the names of groups, which take nine columns.
    let verbs = listed.filter_map(|line| line.get(9..)?.split(' ').next());
    let verbs: BTreeSet<String> = verbs.map(str::to_owned).collect();
    assert!(verbs.len() > 15 && verbs.contains("check"), "{verbs:?}");
    verbs
}

/// The commands that the help of a verb lists.
pub(crate) fn listed_under(verb: &[&str]) -> BTreeSet<String> {
    let help = stdout(&plumb(&[verb, &["--help"]].concat()));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // The lines between them continue a description.
    let verbs = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let verbs: BTreeSet<_> = verbs
        .filter(|verb| !verb.is_empty())
        .map(str::to_owned)
        .collect();
    verbs.into_iter().filter(|verb| verb != "help").collect()
}

#[test]
fn every_verb_explains_itself() {
    for verb in verbs() {
        let output = plumb(&[&verb, "--help"]);
        assert!(
            output.status.success() && stdout(&output).contains("Usage"),
            "{verb}"
        );
    }
    assert!(stdout(&plumb(&["--version"])).starts_with("plumb "));
}

/// The first words of the rows of the table of verbs, and the topics in its last row.
#[test]
fn the_documentation_lists_every_verb_and_topic_and_nothing_else() {
    let readme = std::fs::read_to_string(repository().join("docs/README.md")).unwrap();
    let (_, table) = readme.split_once("## The commands").unwrap();
    let (table, _) = table.split_once("\n\n`HOST`").unwrap();
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `plumb "));
    let listed: BTreeSet<_> = rows
        .map(|row| row.split([' ', '`']).next().unwrap().to_owned())
        .collect();
    assert_eq!(listed, verbs());

    let (_, topics) = table.split_once("a counter (`TcpRetransSegs`): ").unwrap();
    let topics = topics.split('`').skip(1).step_by(2);
    let topics: BTreeSet<_> = topics.map(str::to_owned).collect();
    assert_eq!(topics, pages());
}

#[test]
fn the_documentation_lists_every_command_of_these_verbs_and_nothing_else() {
    let readme = std::fs::read_to_string(repository().join("docs/README.md")).unwrap();
    for verb in ["lab", "shape", "tune"] {
        let start = format!("| `plumb {verb} ");
        let rows = readme.lines().filter(|line| line.starts_with(&start));
        let of_verb = format!("{verb} ");
        let spans = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
        let commands = spans.filter_map(|span| {
            let span = span.strip_prefix("plumb ").unwrap_or(span);
            let span = span.strip_prefix(&of_verb).unwrap_or(span);
            span.split(' ').next().filter(|word| !word.starts_with('-'))
        });
        let listed: BTreeSet<String> = commands.map(str::to_owned).collect();
        assert_eq!(listed, listed_under(&[verb]), "{verb}");
    }
}

/// The pages of the knowledge base, and those that `plumb explain` makes itself.
fn pages() -> BTreeSet<String> {
    let files = std::fs::read_dir(repository().join("kb")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let pages = names.filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()));
    pages
        .chain(["cells", "far-end", "scenario"].map(str::to_owned))
        .collect()
}

#[test]
fn options_stand_under_the_heading_that_they_belong_to() {
    let under = |verb: &str, heading: &str| -> Vec<String> {
        let help = stdout(&plumb(&[verb, "--help"]));
        let of_heading = help.lines().skip_while(|line| !line.starts_with(heading));
        of_heading
            .skip(1)
            .take_while(|line| line.is_empty() || line.starts_with(' '))
            .filter_map(|line| {
                let option = line.trim_start();
                let letter = option.len() - option.trim_start_matches(['-', ',']).len() == 1;
                let long = if letter { option.get(4..)? } else { option };
                long.strip_prefix("--")
            })
            .map(|option| option.split([' ', '[']).next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(under("rate", "Sharing"), ["flows", "background"]);
    assert_eq!(under("load", "Sharing"), ["flows", "background"]);
    let udp = under("rate", "UDP");
    assert_eq!(udp.first().map(String::as_str), Some("udp"));
    assert_eq!(udp.last().map(String::as_str), Some("receive-buffer"));
    let stamp = under("serve", "STAMP");
    assert!(
        stamp.iter().all(|option| option.contains("stamp")),
        "{stamp:?}"
    );
}
