//! Hosts along one path: in a lab, loss and a queue between two routers are between them; of saved checks, text and JSON, and a
//! clear word for what is no path.

use std::fs;
use std::path::{Path, PathBuf};

use plumb_model::finding::Cause;
use plumb_model::run::Run;
use plumb_model::segments::Segments;

use crate::common::network::Network;
use crate::common::{refused, stderr, stdout};
use crate::corpus::recorded;

/// Client, two routers with responders, and a server; these cells in each direction between the routers.
fn chain(up: &str, down: &str) -> Network {
    let mut network = Network::default();
    let fast = r#"{ type = "shaper", rate = "60mbit", queue = { type = "fifo", limit = "20ms" } }, { type = "delay", delay = "2ms" }"#;
    network
        .node("client", "")
        .node("edge", "forward = true")
        .serves("edge")
        .node("transit", "forward = true")
        .serves("transit")
        .node("server", "")
        .serves("server")
        .link(
            "access",
            ["client", "edge"],
            &format!("up = [{fast}]\ndown = [{fast}]"),
        )
        .link(
            "peering",
            ["edge", "transit"],
            &format!("up = [{up}]\ndown = [{down}]"),
        )
        .link("last", ["transit", "server"], "");
    network
}

/// Three quick checks, one after the other.
pub(crate) fn a_queue_between_two_middles_is_between_them() {
    let queue =
        r#"{ type = "shaper", rate = "15mbit", queue = { type = "fifo", limit = "200ms" } }"#;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("path");
    let said = chain(queue, "").run(&[
        "plumb",
        "check",
        "--quick",
        "server",
        "--via",
        "edge,transit",
        "--json",
        "-o",
        place.to_str().unwrap(),
    ]);
    assert!(said.status.success(), "{}", stderr(&said));
    let found: Segments = serde_json::from_str(&stdout(&said)).unwrap();
    let names: Vec<&str> = found.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["edge", "transit", "server"]);
    let mut all = found.findings.iter();
    let bloat = all.find(|finding| finding.cause == Cause::BufferbloatUp);
    assert_eq!(bloat.unwrap().segments, [1], "{found:?}");
    let mut steps = found.steps.iter();
    let up = steps.find(|step| step.of == plumb_model::segments::StepOf::Up);
    assert_eq!(up.unwrap().segments, [1], "{found:?}");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 3);
}

/// A recorded check as one of a host at this address.
fn of(run: &Run, host: &str, address: &str, folder: &Path) -> PathBuf {
    let mut run = run.clone();
    run.id = format!("{host}-{}", run.id);
    let target = run.target.as_mut().unwrap();
    (target.name, target.address) = (host.to_owned(), Some(address.to_owned()));
    let file = folder.join(format!("{host}.json"));
    fs::write(&file, serde_json::to_string(&run).unwrap()).unwrap();
    file
}

#[test]
fn saved_checks_along_a_path_are_read_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let records = recorded();
    let (good, bad) = (
        &records["home-cable-managed"].run,
        &records["home-cable"].run,
    );
    let files = [
        of(good, "near", "192.0.2.1", folder.path()),
        of(bad, "middle", "198.51.100.1", folder.path()),
        of(bad, "far", "203.0.113.1", folder.path()),
    ];
    let files = files.each_ref().map(|file| file.to_str().unwrap());
    let said = refused(&[&["diagnose", "--via"], files.as_slice()].concat());
    let text = stdout(&said)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        text.contains("bufferbloat-up (critical, uplink): between near and middle. Has it: middle, far. Lacks it: near."),
        "{text}\n{}",
        stderr(&said)
    );
    let json = refused(&[&["diagnose", "--via", "--json"], files.as_slice()].concat());
    let found: Segments = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(found.hosts.len(), 3);
    for (arguments, why) in [
        (
            &["diagnose", "--via", files[0], files[0]][..],
            "given twice",
        ),
        (
            &["diagnose", "--via", "--places", files[0]],
            "cannot be used with",
        ),
        (
            &["check", "a.example", "b.example", "--via", "m.example"],
            "name one HOST",
        ),
        (&["check", "--via", "m.example"], "required"),
        (
            &["check", "a.example", "--via", "m.example", "--details"],
            "--details is for one host",
        ),
    ] {
        let answer = refused(arguments);
        assert!(
            stderr(&answer).contains(why),
            "{arguments:?}: {}",
            stderr(&answer)
        );
        assert!(!answer.status.success());
    }
}
