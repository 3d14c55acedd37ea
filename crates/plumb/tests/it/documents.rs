//! What plumb publishes agrees with what it does.

use std::collections::BTreeSet;

use crate::common::{plumb, repository, stderr, stdout};
use plumb_host::knobs::Catalogue;
use plumb_lab::list::ScenarioList;
use plumb_lab::stats::LabStats;
use plumb_model::calc::Calculation;
use plumb_model::run::Run;
use plumb_model::tune::{TunePlan, TuneStatus};
use plumb_report::compare::Comparison;
use schemars::schema_for;

/// Set to write the schemas anew instead of holding them against the types.
const UPDATE: &str = "PLUMB_UPDATE_SCHEMAS";

#[test]
fn schemas_are_those_of_the_types() {
    for (name, schema) in [
        ("run", schema_for!(Run).to_value()),
        ("compare", schema_for!(Comparison).to_value()),
        ("calc", schema_for!(Calculation).to_value()),
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
    assert_eq!(plumb(&["explain", "nothing"]).status.code(), Some(1));
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
    for (wrong, meant) in [
        ("tcp_rmen", "did you mean tcp_rmem?"),
        ("buferbloat", "did you mean bufferbloat?"),
        ("knob", "did you mean knobs?"),
        // Nothing is like it.
        ("numa", "'numa': the topics are"),
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
fn verbs() -> BTreeSet<String> {
    let help = stdout(&plumb(&["--help"]));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // The lines between them continue a description.
    let verbs = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let verbs: BTreeSet<_> = verbs
        .filter(|verb| !verb.is_empty())
        .map(str::to_owned)
        .collect();
    assert!(verbs.len() > 15 && verbs.contains("check"), "{verbs:?}");
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

/// The first words of the rows of README's table of verbs, and the topics in its last row.
#[test]
fn the_readme_lists_every_verb_and_topic_and_nothing_else() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let (_, table) = readme.split_once("## The verbs").unwrap();
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

/// The pages of the knowledge base, and those that `plumb explain` makes itself.
fn pages() -> BTreeSet<String> {
    let files = std::fs::read_dir(repository().join("kb")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let pages = names.filter_map(|name| Some(name.strip_suffix(".md")?.to_owned()));
    pages
        .chain(["cells", "scenario"].map(str::to_owned))
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
            .filter_map(|line| line.trim_start().strip_prefix("--"))
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
