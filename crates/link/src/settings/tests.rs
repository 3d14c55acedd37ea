//! Settings as scenarios and commands write them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::cell::shaper::ShaperSpec;
use crate::queue::QueueSpec;
use crate::spec::{CellSpec, ChainSpec};
use proptest::prelude::*;

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct File {
    down: ChainSpec,
}

fn read(text: &str) -> Result<File, toml::de::Error> {
    toml::from_str(text)
}

#[test]
fn a_chain_in_a_scenario() {
    let file = read(
        r#"
        down = [
            { type = "shaper", name = "modem", rate = "20mbit", framing = "docsis", queue = { type = "fifo", limit = "700ms" } },
            { type = "delay", delay = "9ms" },
            { type = "shaper", rate = "19mbit", framing = { overhead = 22, cells = "ptm" }, queue = "fq_codel" },
        ]"#,
    )
    .unwrap();
    let names: Vec<_> = file.down.0.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["modem", "delay", "shaper"]);
    let CellSpec::Shaper(ShaperSpec { queue, .. }) = &file.down.0[2].cell else {
        panic!()
    };
    assert_eq!(*queue, QueueSpec::FqCodel(Default::default()));
    let again = read(&toml::to_string(&file).unwrap()).unwrap();
    assert_eq!(again.down, file.down);
}

#[test]
fn mistakes_in_a_scenario_are_named_with_their_line() {
    for (cell, says) in [
        (
            r#"{ type = "shaper", rate = "20mbit", quue = "fifo" }"#,
            "did you mean 'queue'?",
        ),
        (
            r#"{ type = "delay", delay = "9ms", rate = "1mbit" }"#,
            "rate",
        ),
        (r#"{ type = "shaper", rate = "0mbit" }"#, "at least 1 bit/s"),
        (
            r#"{ type = "shaper", rate = "1mbit", queue = { type = "rod" } }"#,
            "fq_codel",
        ),
        (
            r#"{ type = "shaper", rate = "1mbit", queue = { type = "fifo", target = "5ms" } }"#,
            "target",
        ),
        (
            r#"{ type = "shaper", rate = "1mbit", queue = { type = "fq_codel", flows = 0 } }"#,
            "flows are 1 to 65536",
        ),
        (
            r#"{ type = "shaper", rate = "1mbit", queue = { type = "fq_codel", quantum = 0 } }"#,
            "at least 1 byte",
        ),
        (
            r#"{ type = "shaper", rate = "1mbit", queue = { limit = "5ms" } }"#,
            "needs a type",
        ),
        (r#"{ type = "shaper" }"#, "rate"),
        (r#"{ delay = "1ms" }"#, "a cell needs a type"),
        (
            r#"{ type = "delay", delay = "1ms", name = "a.b" }"#,
            "cannot name a cell",
        ),
    ] {
        let text = format!("down = [\n  {{ type = \"delay\", delay = \"1ms\" }},\n  {cell},\n]");
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("line 3"), "{error}");
    }
}

#[test]
fn pairs_in_any_order_reach_into_the_queue() {
    let pairs = [
        ("target", "10ms"),
        ("queue", "fq_codel"),
        ("rate", "19mbit"),
        ("queue.flows", "32"),
        ("framing", "docsis"),
    ];
    let cell = CellSpec::from_pairs("shaper", &pairs).unwrap();
    let written = cell.to_table();
    assert_eq!(written["queue"]["target"].as_str(), Some("10ms"));
    assert_eq!(written["queue"]["flows"].as_integer(), Some(32));
    // All or none, and the queue that is there keeps its other settings.
    assert!(cell.with(&[("rate", "1mbit"), ("flow", "1")]).is_err());
    let changed = cell.with(&[("flows", "64"), ("rate", "5mbit")]).unwrap();
    assert_eq!(changed.to_table()["queue"]["target"].as_str(), Some("10ms"));
    let error = CellSpec::from_pairs("shaper", &[("queue", "fifo")]).unwrap_err();
    assert!(error.to_string().contains("rate"), "{error}");
}

#[test]
fn what_differs_is_told_by_its_key() {
    let cell = CellSpec::from_pairs("shaper", &[("rate", "19mbit"), ("queue", "codel")]).unwrap();
    assert_eq!(cell.differences(&cell), []);
    let changed = cell.with(&[("target", "7ms"), ("rate", "5mbit")]).unwrap();
    let differences = changed.differences(&cell);
    let told: Vec<_> = differences
        .iter()
        .map(|d| (d.key.as_str(), d.before.as_deref(), d.after.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("queue.target", Some("5ms"), "7ms"),
            ("rate", Some("19000000"), "5000000")
        ]
    );
}

#[test]
fn pairs_give_a_queue_what_it_cannot_do_without() {
    let cell = CellSpec::from_pairs("shaper", &[("rate", "19mbit")]).unwrap();
    for pairs in [
        vec![("queue", "host_fair"), ("by", "source"), ("buckets", "4")],
        vec![
            ("by", "source"),
            ("queue.buckets", "4"),
            ("queue", "host_fair"),
        ],
        vec![
            ("queue.by", "source"),
            ("queue", "host_fair"),
            ("buckets", "4"),
        ],
    ] {
        let written = cell.with(&pairs).unwrap().to_table();
        assert_eq!(written["queue"]["by"].as_str(), Some("source"), "{pairs:?}");
        assert_eq!(written["queue"]["buckets"].as_integer(), Some(4));
    }
    let bands = [("bands", "[{ ports = [53] }, {}]"), ("queue", "priority")];
    let written = cell.with(&bands).unwrap().to_table();
    assert_eq!(written["queue"]["bands"].as_array().map(Vec::len), Some(2));
    for (pairs, says) in [
        (vec![("queue", "host_fair")], "missing field `by`"),
        (vec![("by", "source")], "unknown field `by`"),
        (vec![("queue", "host_fair"), ("by", "colour")], "colour"),
        (
            vec![("queue", "fifo"), ("by", "source")],
            "unknown field `by`",
        ),
    ] {
        let error = cell.with(&pairs).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

proptest! {
    #[test]
    fn nothing_written_panics(key in "[a-z.]{0,12}", value in "\\PC{0,12}") {
        let cell = CellSpec::from_pairs("shaper", &[("rate", "1mbit")]).unwrap();
        let _ = cell.with(&[(&key, &value)]);
        let _ = CellSpec::from_pairs("delay", &[(&key, &value), ("delay", &value)]);
    }
}
