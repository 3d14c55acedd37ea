//! What `plumb ping`, `mtu` and `owd` do for users who may not open raw sockets, with ping sockets and
//! without.

use crate::common::network::Network;
use crate::common::{stderr, stdout};
use plumb_model::protocol::Protocol;
use plumb_model::results::{Outcome, TimestampSource};
use plumb_model::run::Run;

/// The command that grants what is missing, as it can be pasted.
fn grants(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("sudo setcap cap_net_raw+ep ") else {
        return false;
    };
    let path = rest.split_whitespace().next().unwrap_or_default();
    path.starts_with('/')
        && path
            .trim_end_matches([',', '.', ')', ';'])
            .ends_with("plumb")
}

#[test]
fn each_does_what_it_can_and_says_what_is_missing() {
    let mut network = Network::default();
    network
        .node("client", "")
        .node("router", "forward = true")
        .node("server", "");
    network.link("near", ["client", "router"], "");
    let up = r#"up = [{ type = "mtu", bytes = 1400 }, { type = "delay", delay = "4ms" }]"#;
    let down = r#"down = [{ type = "delay", delay = "4ms" }]"#;
    network.link("line", ["router", "server"], &format!("{up}\n{down}"));
    let script = "user='setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all'
         all() {
             $user plumb ping server -c 6 -i 20ms --port 7586 --json
             $user plumb ping server 10.0.0.2 -c 2 -i 50ms -W 1 --json
             $user plumb mtu server --json
             $user plumb owd server -c 20 -i 10ms --json
             $user plumb owd server --protocol stamp -c 20 -i 10ms --json
         }
         echo 0 2147483647 > /proc/sys/net/ipv4/ping_group_range
         all
         echo 1 0 > /proc/sys/net/ipv4/ping_group_range
         all
         $user plumb ping server -c 1 --protocol icmp 2>&1; echo status $?
         $user plumb ping server -c 1 -s 900 2>&1; echo status $?";
    let output = network.serves("server").run(&["bash", "-c", script]);
    let text = stdout(&output);
    let (documents, rest): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with('{'));
    assert_eq!(documents.len(), 10, "{text}{}", stderr(&output));
    for (n, line) in documents.iter().enumerate() {
        let run = Run::from_json(line).unwrap();
        let allowed = n < 5;
        let notes = run.notes.join("\n");
        match &run.measurements[0].outcome {
            Outcome::Ping(ping) => {
                let protocol = if allowed {
                    Protocol::Icmp
                } else {
                    Protocol::Tcp
                };
                assert_eq!((ping.protocol, ping.received), (protocol, 6), "{notes}");
                assert_eq!(ping.timestamps, TimestampSource::Kernel);
                let rtt = ping.rtt_s.unwrap().p50;
                assert!((0.008..0.030).contains(&rtt), "{rtt}");
                // Echoes of a ping socket want nothing.
                assert_eq!(grants(&notes), !allowed, "{notes}");
                assert_eq!(notes.contains("ping_group_range"), !allowed, "{notes}");
            }
            Outcome::Pings(pings) => {
                assert_eq!(pings.answering, 2, "{pings:?}");
                assert_eq!(grants(&notes), !allowed, "{notes}");
            }
            Outcome::Mtu(mtu) => {
                assert_eq!(mtu.path_mtu_bytes, Some(1400), "{mtu:?} {notes}");
                let hops: Vec<_> = mtu.hops.iter().map(|hop| hop.mtu_bytes).collect();
                assert_eq!(hops, [Some(1500), Some(1400)]);
                assert!(grants(&notes), "{notes}");
                assert_eq!(notes.contains("ping socket"), allowed, "{notes}");
            }
            Outcome::Owd(owd) => {
                // UDP needs nothing.
                assert_eq!(
                    (owd.answered, owd.up.lost, owd.down.lost),
                    (20, Some(0), Some(0))
                );
                assert_eq!(owd.timestamps, TimestampSource::Kernel);
                assert!(!grants(&notes), "{notes}");
            }
            other => panic!("{other:?}"),
        }
    }
    // Asked for ICMP by name, or for what connections have not, it fails and says how to allow it.
    let failures = rest.join("\n");
    for status in ["status 1", "status 2"] {
        assert_eq!(failures.matches(status).count(), 1, "{failures}");
    }
    let grants = rest.iter().filter(|line| grants(line)).count();
    assert_eq!(grants, 2, "{failures}");
}
