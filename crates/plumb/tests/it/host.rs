//! `plumb host`, alone and in a laboratory where something is wrong with the machine.

use crate::common::network::Network;
use crate::common::{PLUMB, plumb, stderr, stdout};
use plumb_model::finding::Cause;
use plumb_model::results::Outcome;
use plumb_model::results::host::{HostResult, PageCache};
use plumb_model::run::Run;
use plumb_model::tune::Scope;

fn host(run: &Run) -> &HostResult {
    match &run.measurements[0].outcome {
        Outcome::Host(host) => host,
        other => panic!("{other:?}"),
    }
}

/// What `plumb host --json` says at the end of a shell script in one of two nodes.
fn in_node(script: &str) -> Run {
    let (text, _) = Network::line("", "").script(&format!("set -e; {script}"));
    Run::from_json(text.lines().last().unwrap()).unwrap()
}

fn causes(run: &Run) -> Vec<Cause> {
    run.findings.iter().map(|finding| finding.cause).collect()
}

#[test]
fn the_text_says_what_is_fine_and_what_is_not() {
    let text = stdout(&plumb(&["host"]));
    // All that is fine is one line.
    assert!(text.contains(" are fine"), "{text}");
    assert!(!text.contains("Looked at"), "{text}");
    let text = stdout(&plumb(&["host", "--details"]));
    for part in ["Looked at", "fine", "Interfaces", "lo ", "Machine"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_facts_are_told_as_text_whole_or_in_part() {
    let all = stdout(&plumb(&["host", "--facts"]));
    for part in [
        "Interface lo",
        "errors and drops",
        "net.ipv4.tcp_rmem",
        "TcpOutSegs",
        "Received packets, by processor",
        "files that a program may open",
        "IpReasmFails",
    ] {
        assert!(all.contains(part), "{part} in {all}");
    }
    let part = stdout(&plumb(&["host", "--facts", "sysctls"]));
    assert!(part.contains("net.core.somaxconn"), "{part}");
    assert!(!part.contains("Interface lo"), "{part}");
    // A saved Run, which may be of another machine, is read the same way.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let file = file.to_str().unwrap();
    plumb(&["host", "--output", file]);
    let saved = stdout(&plumb(&["report", "--facts=interfaces", file]));
    assert!(saved.contains("Interface lo"), "{saved}");
    let wrong = plumb(&["host", "--facts", "everything"]);
    assert!(stderr(&wrong).contains("interfaces"), "{}", stderr(&wrong));
}

#[test]
fn a_node_sees_its_own_interfaces_and_what_is_the_machines_is_marked() {
    let run =
        in_node("sysctl -qw net.ipv4.tcp_sack=0 net.ipv4.tcp_window_scaling=0; plumb host --json");
    let host = host(&run);
    assert!(!host.machine.first_network_namespace);
    assert!(host.of_the_machine.contains(&"softnet".to_owned()));
    assert!(
        run.notes
            .iter()
            .any(|note| note.contains("one network namespace of several"))
    );
    assert!(
        host.interfaces
            .iter()
            .all(|i| i.name != "eth0" || i.bus.is_none()),
        "{:?}",
        host.interfaces
    );
    let off = causes(&run)
        .into_iter()
        .filter(|c| *c == Cause::TcpFeatureOff)
        .count();
    assert_eq!(off, 2);
    let scope = |key: &str| host.sysctls.iter().find(|s| s.key == key).unwrap().scope;
    assert_eq!(scope("net.ipv4.tcp_sack"), Scope::Namespace);
    assert_eq!(scope("vm.swappiness"), Scope::Machine);
}

#[test]
fn ports_of_a_bridge_that_disagree_are_found() {
    let run = in_node(
        "ip link add br9 type bridge; \
         ip link add p1 mtu 9000 type veth peer name q1; ip link add p2 mtu 1500 type veth peer name q2; \
         ip link set p1 master br9; ip link set p2 master br9; \
         for i in br9 p1 q1 p2 q2; do ip link set $i up; done; plumb host --json",
    );
    let found = run
        .findings
        .iter()
        .find(|f| f.cause == Cause::MtuMismatch)
        .expect("the mismatch");
    assert!(
        found.summary.starts_with("p2 takes packets of 1500 bytes"),
        "{}",
        found.summary
    );
    assert_eq!(found.fixes[0].commands, ["ip link set dev p2 mtu 9000"]);
    let p1 = host(&run)
        .interfaces
        .iter()
        .find(|i| i.name == "p1")
        .unwrap();
    assert_eq!(
        (p1.kind.as_deref(), p1.driver.as_deref()),
        (Some("veth"), Some("veth"))
    );
}

#[test]
fn a_full_listener_and_a_slow_reader_are_found() {
    let script = r#"
        cat > /tmp/full.py <<'END'
import os, socket, subprocess
s = socket.socket(); s.bind(("127.0.0.1", 7000)); s.listen(1)
c = []
for _ in range(4):
    k = socket.socket(); k.setblocking(False)
    k.connect_ex(("127.0.0.1", 7000)); c.append(k)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 7001))
u.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
w = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(200): w.sendto(bytes(1000), ("127.0.0.1", 7001))
subprocess.run([PLUMB, "host", "--json"], check=True)
END
        sed -i "s|PLUMB|'$PLUMB'|" /tmp/full.py; python3 /tmp/full.py; rm /tmp/full.py"#;
    let run = in_node(&format!("PLUMB={PLUMB}; {script}"));
    let causes = causes(&run);
    assert!(causes.contains(&Cause::ListenOverflow), "{causes:?}");
    assert!(causes.contains(&Cause::UdpBufferSmall), "{causes:?}");
    let host = host(&run);
    let listener = host
        .sockets
        .listeners
        .iter()
        .find(|l| l.local == "127.0.0.1:7000")
        .unwrap();
    assert_eq!((listener.waiting, listener.backlog), (2, 1), "{listener:?}");
    assert_eq!(listener.owner.as_ref().unwrap().program, "python3");
    assert!(host.sockets.udp_drops > 0);
}

#[test]
fn what_may_not_be_read_is_said_and_the_rest_is_read() {
    // Without /sys, and with parts of /proc hidden.
    let run = in_node(
        "mount -t tmpfs none /sys; mount --bind /dev/null /proc/net/softnet_stat 2>/dev/null || true; \
         mount -t tmpfs -o ro none /proc/sys/net; plumb host --json",
    );
    let host = host(&run);
    assert!(host.interfaces.iter().any(|i| i.name == "lo"));
    assert!(host.counter("TcpOutSegs").is_some());
    assert_eq!(host.sysctl("net.ipv4.tcp_rmem"), None);
    assert!(
        host.audit
            .iter()
            .any(|c| c.subject == "send buffer" && c.summary.contains("could not be read"))
    );
}

#[test]
fn interfaces_that_come_and_go_meanwhile_do_no_harm() {
    let run = in_node(
        "(while ip link add v1 type veth peer name v2 2>/dev/null; do ip link del v1; done) & B=$!; \
         for i in $(seq 20); do plumb host --json > /tmp/h.json; done; kill $B; wait || true; cat /tmp/h.json; rm /tmp/h.json",
    );
    assert!(host(&run).interfaces.iter().any(|i| i.name == "lo"));
}

#[test]
fn a_user_without_rights_is_told_what_is_missing() {
    let output = std::process::Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            PLUMB,
            "host",
            "--json",
        ])
        .output()
        .expect("setpriv (util-linux)");
    assert!(output.status.success(), "{}", stderr(&output));
    let run = Run::from_json(&stdout(&output)).unwrap();
    let host = host(&run);
    assert!(host.interfaces.iter().any(|i| i.name == "lo"));
    assert!(host.counter("TcpOutSegs").is_some());
}

#[test]
fn counters_become_rates() {
    // 40 echo requests in 2 s, and as many answers.
    let run = in_node(
        "plumb host --live 250ms --count 12 --json > /tmp/live.json & L=$!; sleep 0.4; \
         ping -q -c 40 -i 0.05 server > /dev/null; wait $L; cat /tmp/live.json; rm /tmp/live.json",
    );
    let measurement = &run.measurements[0];
    let Outcome::HostRates(rates) = &measurement.outcome else {
        panic!("{:?}", measurement.outcome)
    };
    assert_eq!(rates.intervals, 12);
    let seen = |name: &str| rates.per_s.get(name).copied().unwrap_or(0.0) * 3.0;
    let echoes = seen("IcmpOutEchos");
    // The time of all intervals is a little over 3 s where the machine is busy.
    assert!((36.0..=41.0).contains(&echoes), "{echoes}");
    assert_eq!(measurement.series["IcmpOutEchos"].values.len(), 12);
    let busy = measurement.series["IcmpOutEchos"]
        .values
        .iter()
        .flatten()
        .filter(|v| **v > 0.0)
        .count();
    assert!(
        (7..=11).contains(&busy),
        "{:?}",
        measurement.series["IcmpOutEchos"]
    );
    assert!(rates.per_s.keys().any(|name| name.ends_with(".tx_packets")));
}

#[test]
fn files_are_measured_and_memory_is_called_memory() {
    let folder = tempfile::tempdir().unwrap();
    let disk = |folder: &str| {
        let output = plumb(&[
            "host", "disk", folder, "--size", "8MB", "--files", "5", "--rate", "1000gbit", "--json",
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        Run::from_json(&stdout(&output)).unwrap()
    };
    let run = disk(folder.path().to_str().unwrap());
    let Outcome::HostDisk(result) = &run.measurements[0].outcome else {
        panic!()
    };
    assert!(result.passes.len() >= 7, "{result:?}");
    // No disk and no memory does 1 Tbit/s.
    assert!(causes(&run).contains(&Cause::DiskSlow));
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing is left"
    );
    let memory = disk("/dev/shm");
    let Outcome::HostDisk(result) = &memory.measurements[0].outcome else {
        panic!()
    };
    assert!(
        result
            .passes
            .iter()
            .all(|pass| pass.cache == PageCache::Memory),
        "{result:?}"
    );
    assert!(
        memory
            .notes
            .iter()
            .any(|note| note.contains("speeds of memory"))
    );
}

#[test]
fn ciphers_are_timed_and_the_slow_one_is_named() {
    let output = plumb(&["host", "cipher", "--rate", "100000gbit", "--json"]);
    let run = Run::from_json(&stdout(&output)).unwrap();
    let Outcome::HostCipher(result) = &run.measurements[0].outcome else {
        panic!()
    };
    assert!(
        result
            .ciphers
            .iter()
            .filter(|c| c.seal_bps.is_some())
            .count()
            >= 3
    );
    assert!(causes(&run).contains(&Cause::CipherSlow));
    assert!(
        run.verdict
            .unwrap()
            .headline
            .contains("less than the 100 Tbit/s")
    );
}

#[test]
fn what_cannot_be_asked_is_refused_with_a_reason() {
    for (arguments, status, says) in [
        (&["host", "--live", "1ms"][..], 2, "every 100 ms"),
        (&["host", "--count", "3"], 2, "--live"),
        (&["host", "disk", "/no/such/folder"], 1, "you may write"),
        (
            &["host", "disk", "/dev/shm", "--size", "100000TB"],
            1,
            "smaller --size",
        ),
        (&["host", "disk", "--rate", "fast"], 2, "fast"),
    ] {
        let output = plumb(arguments);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
