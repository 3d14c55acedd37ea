//! `plumb path` where something is wrong on this host: what was learnt is shown, what is not the path's fault is
//! not called so, and the exit status is right.

use crate::common::network::Network;
use plumb_model::results::Outcome;
use plumb_model::results::path::PathResult;
use plumb_model::run::Run;

/// A router between two hosts; what a script prints in the first.
fn script(script: &str) -> String {
    let mut network = Network::default();
    network
        .node("a", "")
        .node("r", "forward = true")
        .node("b", "");
    network.link("l0", ["a", "r"], "");
    network.link(
        "l1",
        ["r", "b"],
        "up = [{ type = \"delay\", delay = \"20ms\" }]",
    );
    network.script(script).0
}

fn path(run: &Run) -> &PathResult {
    match &run.measurements[0].outcome {
        Outcome::Path(path) => path,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_interface_that_goes_down_in_mid_run_is_not_the_paths_loss() {
    let seen = script(
        "plumb path -4 -n --icmp --one-way b --cycles 40 --interval 25ms --json > /tmp/down.$$ & sleep 0.5
         ip link set l0 down; wait $!; echo $?; cat /tmp/down.$$; rm /tmp/down.$$
         if plumb path -4 -n b 2>&1; then exit 9; fi",
    );
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines[0], "0", "{seen}");
    let run = Run::from_json(lines[1]).expect(lines[1]);
    let found = path(&run);
    let addresses: Vec<_> = found
        .hops
        .iter()
        .map(|hop| hop.address.as_deref().unwrap_or("*"))
        .collect();
    assert_eq!(addresses, ["10.0.0.2", "10.0.1.2"], "{found:?}");
    assert!(
        found.reached && found.loss.is_none() && run.findings.is_empty(),
        "{found:?}"
    );
    let last = found.hops.last().unwrap();
    assert!(last.received > 0 && last.received < 40, "{last:?}");
    assert!(
        run.notes.iter().any(|note| note.contains("did not send")),
        "{:?}",
        run.notes
    );
    // Without a way out there is nothing to learn.
    assert!(lines[2].contains("ip route get"), "{seen}");
}

#[test]
fn broadcast_addresses_are_no_target() {
    let seen = script(
        "for t in 10.0.0.255 255.255.255.255 127.255.255.255 224.0.0.1 ff02::1%l0; do plumb path -n $t 2>&1; echo $?; done
         setpriv --reuid 65534 --clear-groups --inh-caps=-all --bounding-set=-all plumb path -n 10.0.0.255 2>&1; echo $?",
    );
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines.len(), 12, "{seen}");
    for pair in lines.chunks(2) {
        assert!(
            pair[0].contains("broadcast or multicast") && pair[1] == "1",
            "{pair:?}"
        );
    }
}

#[test]
fn who_is_not_on_the_link_is_said_by_this_host_and_no_router() {
    // The kernel looks for a neighbour for three seconds before it gives up.
    let seen = script(
        "plumb path -n --icmp --one-way 10.0.0.9 --cycles 6 --interval 1s -W 5s --json
         plumb path -n --icmp --one-way 10.0.0.9 --cycles 6 --interval 1s -W 5s",
    );
    let (json, text) = seen.split_once('\n').unwrap();
    let run = Run::from_json(json).expect(json);
    let hop = &path(&run).hops[0];
    assert_eq!(
        (
            hop.address.as_deref(),
            hop.annotation.as_deref(),
            hop.this_host
        ),
        (Some("10.0.0.1"), Some("!H"), true),
        "{hop:?}"
    );
    assert!(
        run.findings[0].summary.contains("do not leave this host"),
        "{json}"
    );
    assert!(text.contains("this host itself says so"), "{text}");
}
