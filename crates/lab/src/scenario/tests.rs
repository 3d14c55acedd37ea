#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::load::BUILT_IN;
use super::{Scenario, ScenarioError, ServiceSpec, TrafficSpec};

const SMALL: &str =
    "name = \"x\"\nsummary = \"x\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n";

fn error(extra: &str) -> String {
    Scenario::parse(&format!("{SMALL}{extra}"), "x.toml")
        .unwrap_err()
        .to_string()
}

#[test]
fn built_in_ones_are_sound_named_as_their_files_and_explained() {
    let scenarios = Scenario::built_in().unwrap();
    assert!(scenarios.len() >= 5);
    for (scenario, (name, text)) in scenarios.iter().zip(BUILT_IN) {
        assert_eq!(scenario.name, *name);
        for words in [&scenario.summary, &scenario.about, &scenario.source] {
            assert!(!words.trim().is_empty(), "{name}");
        }
        assert!(!scenario.summary.contains('\n'), "{name}");
        assert!(text.lines().all(|line| line.len() <= 130), "{name}");
    }
}

#[test]
fn a_file_of_delays_is_read_from_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let link = "[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n";
    let up = "up = [{ type = \"delay\", delay = \"1ms\", distribution = { file = \"lte.txt\" } }]";
    let scenario = folder.path().join("x.toml");
    std::fs::write(&scenario, format!("{SMALL}{link}{up}")).unwrap();
    let load = || Scenario::load(scenario.to_str().unwrap());

    let missing = load().unwrap_err().to_string();
    assert!(
        missing.contains("lte.txt") && missing.contains("'delay' of link 'l'"),
        "{missing}"
    );
    std::fs::write(folder.path().join("lte.txt"), "12ms\n13\n").unwrap();
    let wrong = load().unwrap_err().to_string();
    assert!(wrong.contains("lte.txt: line 2"), "{wrong}");
    std::fs::write(folder.path().join("lte.txt"), "12ms\n13ms\n").unwrap();
    let inline = up.replace("file = \"lte.txt\"", "samples = [\"12ms\", \"13ms\"]");
    let expected = Scenario::parse(&format!("{SMALL}{link}{inline}"), "x.toml").unwrap();
    let up = |scenario: &Scenario| scenario.links.first().unwrap().up.clone();
    assert_eq!(up(&load().unwrap()), up(&expected));
}

#[test]
fn errors_name_file_line_and_what_is_allowed() {
    let typo = error("[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nupp = []\n");
    assert!(
        typo.contains("x.toml") && typo.contains("line 10") && typo.contains("`up`"),
        "{typo}"
    );
    let cell =
        error("[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nup = [{ type = \"shapper\" }]\n");
    assert!(
        cell.contains("shaper") && cell.contains("line 10"),
        "{cell}"
    );
    let node = error("[[link]]\nname = \"l\"\nbetween = [\"a\", \"c\"]\n");
    assert!(node.contains("'c'") && node.contains("a, b"), "{node}");
    assert!(error("[[node]]\nname = \"a\"\n").contains("two nodes named 'a'"));
    assert!(
        Scenario::load("quux")
            .unwrap_err()
            .to_string()
            .contains("home-cable")
    );
}

/// They would be the loopback, every route or an address, and not the node.
#[test]
fn names_that_mean_something_else_are_refused() {
    for name in ["all", "default", "lo", "localhost", "1", "0x10"] {
        let node = error(&format!("[[node]]\nname = \"{name}\"\n"));
        assert!(
            node.contains(&format!("'{name}' cannot name a node")),
            "{node}"
        );
        let lan = error(&format!(
            "[[lan]]\nname = \"{name}\"\nnodes = [\"a\", \"b\"]\n"
        ));
        assert!(lan.contains("cannot name a link"), "{lan}");
    }
    for name in ["10.1", "www.0x7f"] {
        let further = error(&format!("[[node]]\nname = \"c\"\nnames = [\"{name}\"]\n"));
        assert!(further.contains(&format!("the name '{name}'")), "{further}");
    }
}

#[test]
fn an_unknown_word_comes_with_the_nearest_one() {
    for (text, near) in [
        ("[[node]]\nname = \"c\"\nforwrd = true\n", "forward"),
        ("[[node]]\nnam = \"c\"\n", "name"),
        ("[[links]]\nname = \"l\"\n", "link"),
        ("[[link]]\nname = \"l\"\nupp = []\n", "up"),
        ("[[route]]\nnode = \"a\"\ntoo = \"b\"\n", "to"),
        ("[truth]\nmeasur = [\"true\"]\n", "measure"),
        (
            "[truth]\nfindings = [\"bufferblot-up\"]\n",
            "bufferbloat-up",
        ),
        ("[truth]\nfirst_finding_where = \"farhost\"\n", "far-host"),
        (
            "[[truth.value]]\nwhat = \"w\"\nfield = \"x\"\nmeasurement = { kind = \"pong\" }\n",
            "ping",
        ),
        (
            "[[truth.value]]\nwhat = \"w\"\nfield = \"x\"\nmeasurement = { kid = \"ping\" }\n",
            "kind",
        ),
    ] {
        let error = error(text);
        let hint = format!("(did you mean '{near}'?)");
        assert!(error.contains(&hint), "{error}");
    }
    let one = Scenario::load("home-cabel").unwrap_err().to_string();
    assert!(
        one.contains("did you mean 'home-cable'") && !one.contains("starlink"),
        "{one}"
    );
}

#[test]
fn what_is_hardly_meant_is_refused() {
    let cells = |cells: &str| error(&link(cells));
    for (error, words) in [
        (error(""), "no [[link]] and no [[lan]] joins the node 'a'"),
        (cells("mtu = 1279"), "1280 is the least for IPv6"),
        (cells("mtu = 65536"), "65535 is the most"),
        (
            cells(
                "up = [{ type = \"shaper\", rate = \"1mbit\", queue = { type = \"codel\", target = \"200ms\" } }]",
            ),
            "the target of 200ms is above the interval of 100ms",
        ),
        (
            cells(
                "up = [{ type = \"shaper\", rate = \"1mbit\", queue = { type = \"fq_codel\", interval = \"1ms\" } }]",
            ),
            "the target of 5ms is above the interval of 1ms",
        ),
        (
            error("[[node]]\nname = \"c\"\n[node.sysctl]\n\"vm.swappiness\" = \"1\"\n"),
            "node 'c': vm.swappiness belongs to the whole machine",
        ),
    ] {
        assert!(error.contains(words), "{error}");
    }
    let small = |top: &str| {
        let text = format!(
            "{top}{SMALL}{}",
            link("up = [{ type = \"mtu\", bytes = 1000 }]")
        );
        super::contradictions::doubts(&Scenario::parse(&text, "x.toml").unwrap())
    };
    assert!(
        small("")
            .concat()
            .contains("l.up takes no more than 1000 bytes")
    );
    assert!(small("ipv6 = false\n").is_empty());
}

#[test]
fn built_in_ones_answer_plumb_and_stay_as_loaded_as_they_say() {
    for scenario in Scenario::built_in().unwrap() {
        let responds =
            |service: &ServiceSpec| service.run.get(1).is_some_and(|verb| verb == "serve");
        assert!(scenario.services.iter().any(responds), "{}", scenario.name);
        let floods = |traffic: &&TrafficSpec| traffic.run.iter().any(|word| word == "flood");
        for traffic in scenario.traffic.iter().filter(floods) {
            assert!(!traffic.once, "{}", scenario.name);
        }
    }
}

#[test]
fn names_and_lans_are_held_to_what_is_possible() {
    let named = |name: &str| error(&format!("[[node]]\nname = \"c\"\nnames = [\"{name}\"]\n"));
    assert!(named("Www").contains("a-z, 0-9 and -"));
    assert!(named("www..x").contains("labels"));
    assert!(named("a").contains("'a' is given twice"));
    assert!(named("localhost").contains("twice"));
    let lan = |nodes: &str| error(&format!("[[lan]]\nname = \"l\"\nnodes = {nodes}\n"));
    assert!(lan("[\"a\"]").contains("joins 1 nodes"));
    assert!(lan("[\"a\", \"a\"]").contains("'a' twice"));
    assert!(lan("[\"a\", \"x\"]").contains("the nodes are a, b"));
}

#[test]
fn the_format_is_described_with_keys_that_there_are() {
    let text = include_str!("../../../../scenarios/README.md");
    let blocks: Vec<&str> = text
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(blocks.len() > 5, "{}", blocks.len());
    for block in blocks {
        let text = if block.starts_with("name") {
            format!("{block}[[node]]\nname = \"x\"\n")
        } else {
            format!("{SMALL}{block}")
        };
        // Names are explained apart from each other; keys and values must be right.
        let wrong = Scenario::parse(&text, "README.md").err();
        let syntax = wrong.filter(|e| matches!(e, ScenarioError::Syntax { .. }));
        assert!(syntax.is_none(), "{}", syntax.unwrap());
    }
}

/// A link with these cells, from the tenth line on.
fn link(cells: &str) -> String {
    format!("[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n{cells}\n")
}

#[test]
fn a_mistake_in_a_cell_is_shown_where_the_cell_is() {
    let among = |cell: &str| {
        error(&link(&format!(
            "up = [\n{{ type = \"delay\", delay = \"1ms\" }},\n{cell},\n]"
        )))
    };
    for (cell, says) in [
        (r#"{ type = "shapper" }"#, "did you mean 'shaper'"),
        (r#"{ type = "shaper", rate = "0mbit" }"#, "at least 1 bit/s"),
        (
            r#"{ type = "shaper", rate = "1mbit", queue = { type = "fifo", limit = "0" } }"#,
            "more than none",
        ),
        (r#"{ type = "delay" delay = "1ms" }"#, "comma"),
        (r#""delay""#, "expected a cell such as"),
    ] {
        let error = among(cell);
        assert!(error.contains(says) && error.contains("line 12"), "{error}");
    }
    let table = error(&link(
        "[[link.up]]\ntype = \"delay\"\ndelay = \"1ms\"\n[[link.up]]\ntype = \"delay\"\nrate = 1",
    ));
    assert!(
        table.contains("line 13") && table.contains("`rate`"),
        "{table}"
    );
}

#[test]
fn a_mistake_in_a_list_is_shown_where_its_element_is() {
    let delayed = |samples: &str| {
        format!("{{ type = \"delay\", delay = \"1ms\", distribution = {{ samples = {samples} }} }}")
    };
    let route =
        |via: &str| link("") + &format!("[[route]]\nnode = \"a\"\nto = \"b\"\nvia = {via}\n");
    for (text, line, says) in [
        // The cell is on line 11.
        (
            link(&format!(
                "up = [\n{},\n]",
                delayed("[\n\"1ms\",\n\"2\",\n\"3ms\",\n]")
            )),
            "line 13",
            "250ms",
        ),
        (
            link("[[link.up]]\ntype = \"index_loss\"\npackets = [\n1,\n2,\n-3,\n]"),
            "line 15",
            "-3",
        ),
        (
            link(
                "down = [{ type = \"shaper\", schedule = [\n{ at = \"0s\", rate = \"1mbit\" },\n{ at = \"1s\", rate = \"no\" },\n] }]",
            ),
            "line 12",
            "'no' is not",
        ),
        (route("[\n\"b\",\n3,\n]"), "line 16", "expected a string"),
        (
            route("[\n\"b\",\n\"c\",\n]"),
            "line 16",
            "'c' is no neighbour",
        ),
    ] {
        let error = error(&text);
        assert!(error.contains(says), "{text}: {error}");
        assert!(error.contains(line), "{line}: {error}");
    }
}

#[test]
fn a_contradiction_is_shown_where_it_is() {
    let node = "[[node]]\nname = \"c\"\n";
    for (text, place) in [
        (
            "[[node]]\nname = \"a\"".to_owned(),
            ", line 8: there are two",
        ),
        (link("mtu = 1"), ", line 10: link 'l' has an mtu"),
        (
            "[[link]]\nname = \"l\"\nbetween = [\n\"a\",\n\"x\",\n]".to_owned(),
            ", line 11: link 'l' names",
        ),
        (
            link("") + "[[lan]]\nname = \"n\"\nnodes = [\n\"a\",\n\"b\",\n\"b\",\n]",
            ", line 16: lan 'n' names 'b' twice",
        ),
        (
            node.to_owned() + "names = [\n\"d\",\n\"d\",\n]",
            ", line 11: the name 'd'",
        ),
        (
            node.to_owned() + "[node.sysctl]\n\"net.a\" = \"1\"\n\"vm.b\" = \"1\"",
            ", line 11: node 'c'",
        ),
        (
            link("") + "[[service]]\nnode = \"a\"\nport = 0\nrun = [\"true\"]",
            ", line 13: a service",
        ),
        (
            link("") + "[[traffic]]\nnode = \"x\"\nrun = [\"true\"]",
            ", line 12: [[traffic]] names",
        ),
        (
            link("") + "[vary]\n\"l.up.delay.delay\" = [\"1ms\", \"2ms\"]",
            ", line 12: vary.",
        ),
        (
            link("") + "[router_shaper]\nup = \"l.up\"\ndown = \"m.down\"",
            ", line 12: router_shaper",
        ),
        (
            link("") + "[[truth.link]]\nwhat = \"w\"\nlink = \"m.up\"\nfield = \"/x\"",
            ", line 13: truth.link",
        ),
        (link("") + node, ", line 11: no [[link]]"),
        (
            link("")
                + "[[multicast]]\ngroup = \"239.1.2.3\"\nfrom = \"a\"\nto = [\n\"b\",\n\"x\",\n]",
            ", line 16: multicast to",
        ),
        (
            link("up = [\n{ type = \"trace\", file = \"none\" },\n]"),
            ", line 11: cell 'trace'",
        ),
    ] {
        let error = error(&text);
        assert!(error.contains(place), "{place}: {error}");
    }
    // Of the whole there is no line.
    let nothing =
        Scenario::parse("name = \"x\"\nsummary = \"x\"\nnode = []", "x.toml").unwrap_err();
    assert_eq!(nothing.to_string(), "x.toml: it has no [[node]]");
}

#[test]
fn services_and_traffic_are_programs_on_nodes() {
    for (program, what) in [
        ("port = 80\n[[service]]", "service"),
        ("[[traffic]]", "traffic"),
    ] {
        let (port, table) = program.rsplit_once('\n').unwrap_or(("", program));
        let with = |node: &str, run: &str| {
            error(&format!(
                "{table}\nnode = \"{node}\"\nrun = {run}\n{port}\n"
            ))
        };
        assert!(with("a", "[]").contains(&format!("the {what} on 'a' has nothing to run")));
        let unknown = with("c", "[\"true\"]");
        assert!(unknown.contains("'c'") && unknown.contains("the nodes are a, b"));
    }
}

#[test]
fn a_truth_is_about_emulated_links_and_their_cells() {
    let cells = "up = [{ type = \"loss\", ratio = \"1%\" }]\n[[link]]\nname = \"cable\"\nbetween = [\"a\", \"b\"]";
    let says = |truth: &str| error(&(link(cells) + truth));
    let value = |reference: &str| {
        says(&format!(
            "[[truth.value]]\nwhat = \"w\"\nmeasurement = {{}}\nfield = \"x\"\n{reference}\n"
        ))
    };
    let recorded = |link: &str, field: &str| {
        says(&format!(
            "[[truth.link]]\nwhat = \"w\"\nlink = \"{link}\"\nfield = \"{field}\"\n"
        ))
    };
    for (error, words) in [
        (
            value("payload_rate = \"m.up\""),
            "truth.value 'w' names the link 'm'",
        ),
        (
            value("payload_rate = \"cable.up\""),
            "needs emulated = true",
        ),
        (
            value("queue_delay = { cell = \"l.up.los\", quantile = 0.5 }"),
            "names the cell 'los' of l.up: did you mean 'loss'?",
        ),
        (
            value("queue_delay = { cell = \"l.loss\", quantile = 0.5 }"),
            "names no cell: write LINK.up.CELL",
        ),
        (
            recorded("m.down", "/offered/packets"),
            "truth.link 'w' names the link 'm'",
        ),
        (
            recorded("l.down", "/cells/loss/dropped/loss"),
            "names the cell 'loss' of l.down",
        ),
    ] {
        assert!(error.contains(words), "{error}");
    }
    let sound = link(cells)
        + "[[truth.link]]\nwhat = \"w\"\nlink = \"l.up\"\nfield = \"/cells/loss/dropped/loss\"\nper = \"/offered/packets\"\n";
    Scenario::parse(&format!("{SMALL}{sound}"), "x.toml").unwrap();
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,200}") {
        let _ = Scenario::parse(&text, "x");
        let _ = Scenario::parse(&format!("{SMALL}{text}"), "x");
    }
}
