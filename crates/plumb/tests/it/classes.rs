//! `plumb load --shape rrul` on a line that is dealt out anew every few seconds and serves one class last.

use crate::common::network::Network;
use crate::common::words;
use plumb_model::results::{Outcome, PeriodicOf};

/// 3.2 s that are 1.6 s of 16 Mbit/s and 1.6 s of 6: what is a queue of 50 ms at one is one of 130 ms at the other, as where a
/// satellite system deals its capacity out every 15 s. Background (CS1) is sent when nobody else wants to.
const UP: &str = r#"
    { type = "shaper", period = "3200ms", schedule = [
        { at = "0s", rate = "16mbit" },
        { at = "1600ms", rate = "6mbit" },
    ], queue = { type = "priority", bands = [
        { dscp = [0, 40, 46], queue = { type = "fifo", limit = "100kB" } },
        { dscp = [8], queue = { type = "fifo", limit = "3p" } },
    ] } },
    { type = "delay", delay = "10ms" },
"#;

#[test]
fn a_period_is_found_and_a_class_that_gets_nothing_named() {
    let line = Network::served_line(UP, r#"{ type = "delay", delay = "10ms" }"#);
    let command = words("load server --shape rrul --up --duration 19s");
    let run = line.measured(&command).run;
    let loaded = run.measurements.iter().find_map(|m| match &m.outcome {
        Outcome::LoadedLatency(loaded) => Some(loaded),
        _ => None,
    });
    let loaded = loaded.expect("a load");

    let levels: Vec<_> = loaded
        .periodic
        .iter()
        .filter(|found| found.of == PeriodicOf::Level)
        .collect();
    for series in ["rtt", "up_bps"] {
        let found = levels.iter().find(|found| found.series == series);
        let found = found.unwrap_or_else(|| panic!("nothing in {series}: {:?}", loaded.periodic));
        assert!((found.period_s - 3.2).abs() < 0.15, "{found:?}");
        assert!(
            found.times_seen >= 3 && found.confidence > 0.95,
            "{found:?}"
        );
    }

    let starved = run.notes.iter().filter(|note| note.contains("starves"));
    let starved: Vec<_> = starved.collect();
    assert!(
        starved.len() == 1 && starved[0].contains("of the class BK"),
        "{:?}",
        run.notes
    );
    // The others came through, and the grade is theirs.
    for class in ["BE", "CS5", "EF"] {
        let class = &loaded.classes[class];
        assert!(class.loss_ratio.unwrap() < 0.5, "{class:?}");
    }
    assert!(loaded.grade.is_some());
}
