//! `--from`: by which interface, and from which address, the probes of each verb leave this host.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::common::network::Network;
use crate::common::slots::{self, Weight};
use plumb_lab::stats::LabStats;
use plumb_model::direction::OneDirection;
use plumb_model::results::Outcome;
use plumb_model::run::Run;

/// Two lines from `a` to a router, 10.0.0.0/24 and 10.0.1.0/24, and one from there to `b`, 10.0.2.0/24;
/// the first is the usual one.
fn network() -> Network {
    let mut net = Network::default();
    net.node("a", "forward = false")
        .node("r", "forward = true")
        .node("b", "");
    net.sysctl("a", "net.ipv4.ping_group_range", "0 65534");
    net.link("l0", ["a", "r"], "")
        .link("l1", ["a", "r"], "")
        .link(
            "line",
            ["r", "b"],
            "up = [{ type = \"delay\", delay = \"1ms\" }]",
        );
    net.serves("b").without_ipv6();
    net
}

/// Who sent what the far line carried towards `b`, but for the router, which answers when `b` traces the reverse path.
fn senders(stats: &LabStats) -> BTreeSet<IpAddr> {
    let hosts = &stats.links["line"][&OneDirection::Up].chain.hosts;
    let sent = hosts.iter().filter(|(_, host)| host.sent.packets > 0);
    let router = IpAddr::from([10, 0, 2, 1]);
    sent.map(|(address, _)| *address)
        .filter(|address| *address != router)
        .collect()
}

const UNPRIVILEGED: &str =
    "setpriv --reuid 65534 --clear-groups --inh-caps=-all --bounding-set=-all";

/// Every verb that takes `--from`, and each way that it has of sending.
const VERBS: [&str; 14] = [
    "ping -c 2 b",
    "ping -c 2 b r",
    "ping -c 2 --protocol tcp --port 7586 b",
    "ping -c 2 --protocol udp b",
    "ping -c 2 --protocol udp-port b",
    "path -n --both b",
    "path -n --udp --one-way b",
    "path -n --tcp=7586 --one-way b",
    "mtu b",
    "owd -c 5 b",
    "owd -c 5 --protocol stamp b",
    "capacity --only trains b",
    "capacity --only hops --time 2s b",
    "port b 7586",
];

#[test]
fn packets_bear_the_address_that_was_asked_for() {
    // No verb among them fills the line for longer than a train of packets.
    let _slot = slots::take(Weight::Slow);
    let mut script = "set -e\n".to_owned();
    for verb in VERBS {
        script += &format!(
            "plumb {verb} --from 10.0.1.1 >/dev/null 2>$HOME/.err || {{ cat $HOME/.err; echo failed: {verb}; exit 9; }}\n"
        );
    }
    for verb in ["path -n --udp --one-way b", "path -n --icmp --one-way b"] {
        script += &format!("{UNPRIVILEGED} plumb {verb} --from 10.0.1.1 >/dev/null\n");
    }
    let script = script.replace("$HOME/.err", "/tmp/way-out.$$") + "rm -f /tmp/way-out.$$\n";
    let (_, stats) = network().script(&script);
    assert_eq!(senders(&stats), BTreeSet::from([[10, 0, 1, 1].into()]));
}

#[test]
fn packets_leave_by_the_interface_that_was_asked_for() {
    let (seen, stats) = network().script(
        "ip route add 10.0.2.0/24 via 10.0.1.2 dev l1 metric 900
         plumb path -n --one-way b -a l1 --json
         plumb path -n --one-way b --json
         ip link set l0 mtu 1400
         plumb mtu b --from l1 --json
         plumb port b 7586 --from l1 --json
         plumb ping -c 2 b -I l1 --json",
    );
    let runs: Vec<Run> = seen
        .lines()
        .map(|line| Run::from_json(line).unwrap())
        .collect();
    let first_hop = |run: &Run| match &run.measurements[0].outcome {
        Outcome::Path(path) => path.hops[0].address.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(first_hop(&runs[0]).as_deref(), Some("10.0.1.2"));
    assert_eq!(first_hop(&runs[1]).as_deref(), Some("10.0.0.2"));
    let Outcome::Mtu(mtu) = &runs[2].measurements[0].outcome else {
        panic!("{seen}")
    };
    // What the interface sends that was asked for, and not the other one.
    assert_eq!(
        (mtu.interface_mtu_bytes, mtu.path_mtu_bytes),
        (Some(1500), Some(1500))
    );
    // The second Run alone went by the usual way.
    let both = BTreeSet::from([[10, 0, 0, 1].into(), [10, 0, 1, 1].into()]);
    assert_eq!(senders(&stats), both);
}

#[test]
fn a_way_out_that_is_not_there_is_a_clear_error_of_every_verb() {
    let mut script = String::new();
    for verb in [
        "ping -c 1",
        "ping -c 1 r",
        "path",
        "mtu",
        "owd",
        "capacity",
        "port",
    ] {
        for from in ["no-such0", "192.0.2.77", "::1"] {
            let port = if verb == "port" { "80" } else { "" };
            script += &format!("plumb {verb} b {port} --from {from} 2>&1; echo $?\n");
        }
    }
    let (seen, _) = network().script(&script);
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines.len(), 7 * 3 * 2, "{seen}");
    for three in lines.chunks(6) {
        for (pair, wanted) in three.chunks(2).zip([
            "no interface no-such0",
            "192.0.2.77, which is no address of this host",
            "not of one version of IP",
        ]) {
            assert!(
                pair[0].contains("--from") && pair[0].contains(wanted),
                "{pair:?}"
            );
            assert_eq!(pair[1], "1", "{pair:?}");
        }
    }
}
