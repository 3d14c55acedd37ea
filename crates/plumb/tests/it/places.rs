//! Several hosts: in a lab, a queue that all share is near and one before a host is far; of saved checks, the same text, and
//! a clear word for what are no checks of several hosts.

use std::fs;
use std::path::{Path, PathBuf};

use plumb_model::finding::{Cause, Place};
use plumb_model::run::Run;

use crate::common::network::Network;
use crate::common::{refused, stderr, stdout, words};
use crate::corpus::recorded;

/// Cells of a line with a queue that takes so long.
fn shaper(rate: &str, queue: &str) -> String {
    format!(
        r#"{{ type = "shaper", rate = "{rate}", queue = {{ type = "fifo", limit = "{queue}" }} }}, {{ type = "delay", delay = "5ms" }}"#
    )
}

fn links(up: &str, down: &str) -> String {
    format!("up = [{up}]\ndown = [{down}]")
}

/// A line of 20 Mbit/s with a long queue up, and behind its router two servers, of which one has a slower link with a long queue
/// towards the line.
fn two_servers() -> Network {
    let mut network = Network::default();
    network
        .node("client", "")
        .node("router", "forward = true")
        .node("isp", "forward = true");
    let line = links(&shaper("20mbit", "150ms"), &shaper("20mbit", "30ms"));
    network.link("home", ["client", "router"], "");
    network.link("line", ["router", "isp"], &line);
    for (server, cells) in [
        ("quick", String::new()),
        ("slow", links("", &shaper("10mbit", "200ms"))),
    ] {
        network.node(server, "").serves(server);
        network.link(&format!("to-{server}"), ["isp", server], &cells);
    }
    network
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The sentences under a title, as one line.
fn part<'a>(text: &'a str, title: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!(" {title} · ")).unwrap_or_default();
    let ends = ["Near", "Theirs", "Far", "Open", "Hosts"].into_iter();
    let ends = ends.filter_map(|end| rest.find(&format!(" {end} ")));
    ends.min().map_or(rest, |end| &rest[..end])
}

#[test]
fn a_queue_before_all_is_near_and_one_before_a_host_far() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("checks");
    let said = two_servers().run(&[
        "plumb",
        "check",
        "--quick",
        "quick",
        "slow",
        "-o",
        place.to_str().unwrap(),
        "--fail-on",
        "warning",
    ]);
    let text = in_one_line(&stdout(&said));
    assert_eq!(said.status.code(), Some(3), "{text}\n{}", stderr(&said));
    let near = part(&text, "Near");
    assert!(
        near.contains("bufferbloat-up") && near.contains("towards quick and slow"),
        "{text}"
    );
    let far = part(&text, "Far");
    assert!(
        far.contains("bufferbloat-down") && far.contains("towards slow, and not towards quick"),
        "{text}"
    );
    let files = fs::read_dir(&place).unwrap();
    let files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 2);
    let files: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let again = refused(&[&["diagnose", "--places"], files.as_slice()].concat());
    assert_eq!(in_one_line(&stdout(&again)), text, "{}", stderr(&again));
}

/// Two servers behind a router whose link loses packets, and two elsewhere, by checks that see the paths: two minutes.
pub(crate) fn loss_before_one_network_is_theirs() {
    let line = shaper("20mbit", "30ms");
    let loss = r#"{ type = "loss", ratio = "6%" }"#;
    let mut network = Network::default();
    network
        .node("client", "")
        .node("isp", "forward = true")
        .node("transit", "forward = true")
        .link("line", ["client", "isp"], &links(&line, &line))
        .link("peer", ["isp", "transit"], &links(loss, loss));
    for (server, router) in [
        ("a", "isp"),
        ("b", "transit"),
        ("c", "transit"),
        ("d", "isp"),
    ] {
        network.node(server, "").serves(server);
        network.link(&format!("to-{server}"), [router, server], "");
    }
    let said = network.run(&words("plumb check --duration 2s a b c d"));
    let text = in_one_line(&stdout(&said));
    let theirs = part(&text, "Theirs");
    assert!(
        theirs.contains("path-loss") && theirs.contains("towards b and c, and not towards a and d"),
        "{text}\n{}",
        stderr(&said)
    );
    assert!(theirs.contains("They are behind hop 2"), "{text}");
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
fn saved_checks_of_several_hosts_are_read_together() {
    let folder = tempfile::tempdir().unwrap();
    let records = recorded();
    let (good, bad) = (
        &records["home-cable-managed"].run,
        &records["home-cable"].run,
    );
    assert_eq!(
        (bad.findings[0].cause, bad.findings[0].place),
        (Cause::BufferbloatUp, Place::Uplink)
    );
    let files = [
        of(good, "a", "192.0.2.1", folder.path()),
        of(bad, "b", "198.51.100.1", folder.path()),
        of(bad, "c", "198.51.100.2", folder.path()),
        of(good, "alias", "192.0.2.1", folder.path()),
    ];
    let files = files.each_ref().map(|file| file.to_str().unwrap());
    let said = refused(&[&["diagnose", "--places"], files.as_slice()].concat());
    let text = in_one_line(&stdout(&said));
    assert!(
        part(&text, "Theirs")
            .contains("bufferbloat-up (critical, uplink): towards b and c, and not towards a"),
        "{text}\n{}",
        stderr(&said)
    );
    assert!(text.contains("in the network 198.51.100.0/24"), "{text}");
    assert!(
        text.contains("a and alias are one host, of the address 192.0.2.1"),
        "{text}"
    );
    for (arguments, why) in [
        (
            &["diagnose", "--places", files[0], files[0]][..],
            "given twice",
        ),
        (
            &["diagnose", "--places", "--repeats", files[0]],
            "cannot be used with",
        ),
        (
            &["check", "a.example", "b.example", "a.example"],
            "named twice",
        ),
        (
            &["check", "a.example", "b.example", "--json"],
            "--json is for one host",
        ),
        (
            &[
                "check",
                "a.example",
                "b.example",
                "--repeat",
                "2",
                "--every",
                "1h",
                "-o",
                "x",
            ],
            "--repeat is for one host",
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
