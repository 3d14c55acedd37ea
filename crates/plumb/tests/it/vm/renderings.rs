//! What plumb renders for the kernel, taken by the kernel.

use plumb_lab::scenario::Scenario;
use plumb_model::direction::OneDirection;

use super::network::{ScenarioFile, TWO, kinds};
use crate::common::{plumb, stderr};

#[test]
#[ignore = "runs in the virtual machine"]
fn the_kernel_takes_every_rendering() {
    let shaper = |rest: &str| format!(r#"{{ type = "shaper", rate = "10mbit", {rest} }}"#);
    let delay = r#"{ type = "delay", delay = "9ms" }"#;
    let cases = [
        (
            shaper(r#"queue = { type = "fifo", limit = "700ms" }"#),
            vec!["tbf"],
        ),
        (
            shaper(r#"queue = { type = "fifo", limit = "50kB" }"#),
            vec!["tbf"],
        ),
        (
            shaper(r#"queue = { type = "fifo", limit = "100p" }"#),
            vec!["tbf", "pfifo"],
        ),
        (
            shaper(r#"queue = { type = "codel", ecn = true }"#),
            vec!["tbf", "codel"],
        ),
        (
            shaper(r#"queue = { type = "fq_codel", flows = 64 }"#),
            vec!["tbf", "fq_codel"],
        ),
        (
            shaper(r#"burst = "100kB", peak_rate = "50mbit""#),
            vec!["tbf"],
        ),
        (
            shaper(r#"queue = { type = "fifo", limit = "9p", drop = "head" }"#),
            vec!["tbf", "pfifo_head_drop"],
        ),
        (
            shaper(r#"queue = { type = "red", ecn = true, harddrop = true }"#),
            vec!["tbf", "red"],
        ),
        (
            shaper(r#"queue = { type = "pie", ecn = true }"#),
            vec!["tbf", "pie"],
        ),
        (
            shaper(
                r#"framing = "pppoe-ptm", queue = { type = "cake", isolation = "dual-srchost", ack_filter = "ack-filter" }"#,
            ),
            vec!["cake"],
        ),
        (
            shaper(r#"queue = { type = "cake", tins = "besteffort", memory_limit = "1MB" }"#)
                + ", "
                + delay,
            vec!["netem", "cake"],
        ),
        (shaper(r#"framing = "pppoe-llcsnap""#), vec!["tbf"]),
        (shaper(r#"framing = "ethernet""#), vec!["tbf"]),
        (shaper(r#"framing = "overhead -20""#), vec!["tbf"]),
        (delay.to_owned(), vec!["netem"]),
        (
            r#"{ type = "gilbert_elliott", p = "1%", r = "25%", loss_good = "0.1%" }"#.to_owned(),
            vec!["netem"],
        ),
        (
            r#"{ type = "markov4", p13 = "1%", p31 = "30%", p14 = "2%" }"#.to_owned(),
            vec!["netem"],
        ),
        (
            r#"{ type = "duplicate", ratio = "1%" }, { type = "corrupt", ratio = "2%" }"#.to_owned(),
            vec!["netem"],
        ),
        (
            r#"{ type = "delay", delay = "9ms", jitter = "2ms", reordering = true, distribution = "pareto" }"#.to_owned(),
            vec!["netem"],
        ),
        (
            r#"{ type = "loss", ratio = "0.1%" }"#.to_owned(),
            vec!["netem"],
        ),
        (
            shaper(r#"queue = { type = "fq_codel" }"#) + ", " + delay,
            vec!["netem", "tbf", "fq_codel"],
        ),
    ];
    let mut text = TWO.to_owned();
    for (number, (cells, _)) in cases.iter().enumerate() {
        text += &format!(
            "[[link]]\nname = \"l{number}\"\nbetween = [\"client\", \"server\"]\nup = [{cells}]\n"
        );
    }
    let file = ScenarioFile::new(&text);
    file.run("kernel", &["true"]);
    let stats = file.stats();
    for (number, (cells, wanted)) in cases.iter().enumerate() {
        let ways = &stats.kernel[&format!("l{number}")];
        assert_eq!(&kinds(&ways[&OneDirection::Up]), wanted, "{cells}");
        assert_eq!(kinds(&ways[&OneDirection::Down]), ["noqueue"], "{cells}");
    }
    assert!(stats.links.is_empty(), "nothing is plumb's own");
}

/// Every scenario of plain links that comes with plumb either runs on the kernel, or names the cell
/// that cannot. Bridges, shared routes and multicast ask for modules that this machine is not given,
/// and have nothing to do with a backend.
#[test]
#[ignore = "runs in the virtual machine"]
fn every_scenario_runs_or_says_why_not() {
    let mut ran = 0;
    for scenario in Scenario::built_in().unwrap() {
        let plain = scenario.lans.is_empty()
            && scenario.routes.is_empty()
            && scenario.multicasts.is_empty()
            && scenario
                .services
                .iter()
                .all(|s| s.run.get(1).is_some_and(|verb| verb == "serve"));
        if !plain {
            continue;
        }
        let name = scenario.name.as_str();
        let output = plumb(&["lab", "run", name, "--backend", "kernel", "--", "true"]);
        if output.status.success() {
            ran += 1;
        } else {
            assert_eq!(output.status.code(), Some(125));
            let said = stderr(&output);
            assert!(
                said.contains("cannot be the cell") && said.contains("--backend emulated"),
                "{name}: {said}"
            );
        }
    }
    assert!(ran >= 5, "only {ran} ran");
}
