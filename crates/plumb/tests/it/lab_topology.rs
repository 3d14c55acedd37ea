//! Topologies as programs in them see them: both address families, routes that differ by
//! direction, by flow, by packet and by time, hops that do not answer, names, lans, multicast.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::Command;
use std::time::Duration;

use crate::common::network::Network;
use crate::common::{PLUMB, need_root, output_of, stderr, stdout};
use plumb_lab::stats::LabStats;
use plumb_model::direction::OneDirection;

/// Nodes, and links between them (`A B NAME`, emulated).
fn network(hosts: &[&str], routers: &[&str], links: &[&str]) -> Network {
    let mut network = Network::default();
    for host in hosts {
        network.node(host, "");
    }
    for router in routers {
        network.node(router, "forward = true");
    }
    for link in links {
        let [a, b, name]: [&str; 3] = link.split(' ').collect::<Vec<_>>().try_into().unwrap();
        network.link(name, [a, b], "emulated = true");
    }
    network
}

/// Packets that entered a direction of a link.
fn offered(stats: &LabStats, link: &str, way: OneDirection) -> u64 {
    stats.links[link][&way].chain.offered.packets
}

/// The times to live of the answers that ping printed.
fn ttls(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .filter_map(|word| word.strip_prefix("ttl=")?.parse().ok())
        .collect()
}

/// Two ways from a to b: by r1, or by r2 and r3.
fn two_ways() -> Network {
    network(
        &["a", "b"],
        &["r1", "r2", "r3"],
        &["a r1 a1", "a r2 a2", "r1 b b1", "r2 r3 c", "r3 b b3"],
    )
}

/// Two ways from the router g to the router h as long as each other; a is before, b behind them.
fn diamond() -> Network {
    let links = [
        "a g up", "g r1 g1", "g r2 g2", "r1 h h1", "r2 h h2", "h b down",
    ];
    let mut diamond = network(&["a", "b"], &["g", "r1", "r2", "h"], &links);
    diamond.set("b", "silent = true");
    diamond
}

#[test]
fn both_families_reach_everybody() {
    let links = ["a r1 a1", "r1 r2 c", "r2 b b2"];
    let mut network = network(&["a", "b"], &["r1", "r2"], &links);
    let (seen, stats) = network.script("for f in 4 6; do ping -$f -c1 -W1 b; done");
    assert_eq!(ttls(&seen), [62, 62], "{seen}");
    assert!(
        seen.contains("10.0.2.2") && seen.contains("fd00:0:0:2::2"),
        "{seen}"
    );
    assert_eq!(
        offered(&stats, "c", OneDirection::Up),
        2,
        "nothing else crossed"
    );
    // Without IPv6 there is none.
    let script =
        "ping -c1 -W1 b; if ping -6 -c1 -W1 b 2>/dev/null; then exit 9; fi; cat /proc/net/if_inet6";
    let (seen, _) = network.without_ipv6().script(script);
    assert_eq!(ttls(&seen), [62], "{seen}");
    assert!(!seen.contains("fd00"), "{seen}");
}

#[test]
fn idle_links_carry_nothing() {
    // Two seconds: routers repeat what they say when they start within one.
    let (_, stats) = two_ways().script("sleep 2");
    for (link, ways) in &stats.links {
        for (way, what) in ways {
            assert_eq!(what.chain.offered.packets, 0, "{link}.{}", way.name());
        }
    }
}

#[test]
fn routes_may_differ_by_direction() {
    let mut network = two_ways();
    network.add("[[route]]\nnode = \"b\"\nto = \"a\"\nvia = \"r3\"");
    let (seen, stats) = network
        .script("for f in 4 6; do ping -$f -c1 -W1 -t2 b; if ping -$f -c1 -W1 -t1 b >&2; then exit 9; fi; done");
    // One router on the forward path, two on the reverse path.
    assert_eq!(ttls(&seen), [62, 62], "{seen}");
    assert_eq!(
        ["a1", "c"].map(
            |link| [OneDirection::Up, OneDirection::Down].map(|way| offered(&stats, link, way))
        ),
        // Time exceeded comes back the way that it came.
        [[4, 2], [0, 2]]
    );
}

#[test]
fn a_route_changes_at_its_time() {
    let mut network = two_ways();
    for (node, to, via) in [("b", "a", "r3"), ("a", "b", "r2")] {
        network.add(&format!(
            "[[route]]\nnode = \"{node}\"\nto = \"{to}\"\nvia = \"{via}\"\nat = \"1500ms\""
        ));
    }
    let (seen, stats) = network.script("ping -i0.1 -c25 -W1 b & ping -6 -i0.1 -c25 -W1 b; wait");
    for family in ["(10.0.", "(fd00:"] {
        let lines: Vec<&str> = seen
            .lines()
            .filter(|l| l.contains("ttl=") && l.contains(family))
            .collect();
        let seen = ttls(&lines.join("\n"));
        assert_eq!(seen.len(), 25, "no packet was lost: {seen:?}");
        let before = seen.iter().take_while(|ttl| **ttl == 63).count();
        assert!((5..20).contains(&before), "{seen:?}");
        assert!(seen.iter().skip(before).all(|ttl| *ttl == 62), "{seen:?}");
    }
    assert!(offered(&stats, "c", OneDirection::Up) > 10, "there too");
    assert!(stats.notes.iter().all(|n| !n.contains("route")));
}

#[test]
fn equal_paths_are_shared_by_flow() {
    let mut network = diamond();
    network.add("[[route]]\nnode = \"g\"\nto = \"b\"\nvia = [\"r1\", \"r2\"]");
    let each = |stats: &LabStats| ["g1", "g2"].map(|link| offered(stats, link, OneDirection::Up));
    for address in ["10.0.5.2", "fd00:0:0:5::2"] {
        // Each opening takes another port.
        let script = format!("for i in $(seq 64); do echo x > /dev/udp/{address}/9; done");
        let (_, stats) = network.script(&script);
        let [one, two] = each(&stats);
        assert_eq!(one + two, 64, "{address}: each once");
        // Fewer than 12 of 64 fair coins: one in 10 million.
        assert!(one.min(two) >= 12, "{address}: {one} and {two}");
        let script =
            format!("exec 3<>/dev/udp/{address}/9; for i in $(seq 64); do echo x >&3; done");
        let (_, stats) = network.script(&script);
        let mut one_flow = each(&stats);
        one_flow.sort_unstable();
        assert_eq!(one_flow, [0, 64], "{address}");
    }
}

#[test]
fn equal_paths_are_shared_by_packet() {
    let mut network = diamond();
    network
        .add("[[route]]\nnode = \"g\"\nto = \"b\"\nvia = [\"r1\", \"r2\"]\nbalance = \"packet\"");
    answers(&mut network, "b");
    // One flow of datagrams, then one of TCP, whose segments must not cross put together.
    for address in ["10.0.5.2", "fd00:0:0:5::2"] {
        let script = format!(
            "exec 3<>/dev/udp/{address}/9; for i in $(seq 64); do echo x >&3; done
             head -c 1000000 /dev/zero > /dev/tcp/{address}/{PORT}"
        );
        let (_, stats) = network.script(&script);
        let [one, two] = ["g1", "g2"].map(|link| offered(&stats, link, OneDirection::Up));
        assert!(one + two > 64 + 1_000_000 / 1500, "{one} and {two}");
        assert!(one.abs_diff(two) <= 1, "{address}: {one} and {two}");
        assert_eq!(
            one + two,
            offered(&stats, "up", OneDirection::Up),
            "each once"
        );
    }
}

#[test]
fn what_is_known_better_is_not_shared() {
    // The node's own packets, to a network and to a host on it.
    let mut network = two_ways();
    network.add(
        "[[route]]\nnode = \"a\"\nto = \"b1\"\nvia = [\"r1\", \"r2\"]\nbalance = \"packet\"\n\
         [[route]]\nnode = \"a\"\nto = \"b\"\nvia = \"r1\"\n",
    );
    for (to, wanted) in [("b", [40, 0]), ("r1.b1", [20, 20])] {
        let script = format!("for f in 4 6; do ping -$f -c20 -i0.01 -W0.2 {to}; done");
        let (_, stats) = network.script(&script);
        let shares = ["a1", "a2"].map(|link| offered(&stats, link, OneDirection::Up));
        assert_eq!(shares, wanted, "{to}");
    }
}

#[test]
fn a_silent_hop_forwards_and_never_answers() {
    let links = ["a r1 a1", "r1 r2 c", "r2 b b2"];
    let mut network = network(&["a", "b"], &["r1", "r2"], &links);
    network.set("r1", "silent = true");
    let script = "for f in 4 6; do
        for t in 1 2 3; do echo hop $(ping -$f -n -c3 -i0.05 -W0.3 -t$t b | grep -c 'exceeded\\|ttl='); done
        echo echo $(ping -$f -c1 -W0.3 r1 | grep -c ttl=)
    done";
    let (seen, stats) = network.script(script);
    let answers: Vec<&str> = seen.lines().collect();
    let one_family = ["hop 0", "hop 3", "hop 3", "echo 0"];
    assert_eq!(answers, [one_family, one_family].concat());
    // Nothing came from it: what came back came from behind it.
    assert_eq!(
        offered(&stats, "a1", OneDirection::Down),
        offered(&stats, "c", OneDirection::Down)
    );
}

#[test]
fn every_address_has_a_name() {
    let mut network = two_ways();
    network.set("b", "names = [\"www.example\"]");
    let script = "
        for n in b www.example r2.c r2; do getent ahosts $n | awk '/STREAM/ {print $1}'; done
        for a in 10.0.3.1 fd00:0:0:3::1 10.0.1.2 fd00:0:0:1::2; do getent hosts $a; done
    ";
    let (seen, _) = network.script(script);
    let words: Vec<Vec<&str>> = seen
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    let wanted = [
        // IPv4 first, so that what is said of a scenario's IPv4 holds for names too.
        "10.0.2.2",
        "fd00:0:0:2::2",
        "10.0.2.2",
        "fd00:0:0:2::2",
        "10.0.3.1",
        "fd00:0:0:3::1",
        "10.0.1.2",
        "fd00:0:0:1::2",
        "10.0.3.1 r2.c",
        "fd00:0:0:3::1 r2.c",
        "10.0.1.2 r2 r2.a2",
        "fd00:0:0:1::2 r2 r2.a2",
    ];
    let wanted: Vec<Vec<&str>> = wanted.iter().map(|l| l.split(' ').collect()).collect();
    assert_eq!(words, wanted);
}

#[test]
fn several_clients_share_a_lan_and_a_router() {
    let hosts = ["pc1", "pc2", "server"];
    let mut network = network(&hosts, &["router"], &["router server line"]);
    network.add("[[lan]]\nname = \"home\"\nnodes = [\"router\", \"pc1\", \"pc2\"]");
    let script = "for f in 4 6; do for h in pc2 server; do ping -$f -c1 -W1 $h; done; done; getent hosts 10.0.1.1";
    let (seen, _) = network.script(script);
    assert_eq!(ttls(&seen), [64, 63, 64, 63], "{seen}");
    assert!(seen.contains("router.home"), "{seen}");
}

#[test]
fn multicast_reaches_its_receivers_only() {
    for group in ["239.1.2.3", "ff3e::1234"] {
        let mut network = network(
            &["server", "pc1", "pc2", "pc3"],
            &["core", "edge"],
            &[
                "server core s",
                "core edge e",
                "edge pc1 l1",
                "core pc2 l2",
                "edge pc3 l3",
            ],
        );
        for node in ["pc1", "pc2", "pc3"] {
            answers(&mut network, node);
        }
        network.add(&format!(
            "[[multicast]]\ngroup = \"{group}\"\nfrom = \"server\"\nto = [\"pc1\", \"pc2\"]"
        ));
        let exe = std::env::current_exe().unwrap();
        let script = format!(
            "export PLUMB_TEST_GROUP={group}; {} --exact lab_topology::node_asks --ignored --nocapture",
            exe.display()
        );
        // Programs find the group in their environment, and services in that of the laboratory.
        need_root();
        let (file, stats) = (network.file(), tempfile::NamedTempFile::new().unwrap());
        let output = output_of(
            Command::new(PLUMB)
                .args(["lab", "run", "--stats"])
                .args([stats.path(), file.path()])
                .args(["--", "bash", "-c", &script])
                .env("PLUMB_TEST_GROUP", group),
        );
        let seen = stdout(&output);
        assert!(output.status.success(), "{seen}{}", stderr(&output));
        assert!(seen.contains("answered: {\"pc1\", \"pc2\"}"), "{seen}");
        // What went down the third link was nothing but pc3's joining, upwards.
        let stats: LabStats =
            serde_json::from_str(&std::fs::read_to_string(stats).unwrap()).unwrap();
        assert_eq!(offered(&stats, "l3", OneDirection::Up), 0);
    }
}

#[test]
fn fifty_nodes_come_up_and_leave_nothing() {
    let names: Vec<String> = (0..50).map(|i| format!("n{i}")).collect();
    let mut network = Network::default();
    for name in &names {
        network.node(name, "forward = true");
    }
    for pair in names.windows(2) {
        let [a, b] = pair else { unreachable!() };
        network.link(&format!("{a}-{b}"), [a, b], "");
    }
    need_root();
    let machine = || {
        ["/proc/net/dev", "/proc/self/mountinfo"].map(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            // Of the devices their names: their counters go on.
            text.lines()
                .map(|l| l.split(": ").next().unwrap_or_default().trim().to_owned())
                .collect::<BTreeSet<_>>()
        })
    };
    let before = machine();
    let (seen, _) = network.script("for f in 4 6; do ping -$f -c1 -W1 n49; done");
    assert_eq!(ttls(&seen), [64 - 48, 64 - 48], "{seen}");
    assert_eq!(machine(), before);
}

// Programs of the nodes: this test binary, started inside the laboratory.

const PORT: u16 = 7000;

/// Has a node run [`node_answers`].
fn answers(network: &mut Network, node: &str) {
    let exe = std::env::current_exe().unwrap();
    let program = ["--exact", "lab_topology::node_answers", "--ignored"];
    let program = [&[exe.to_str().unwrap()], &program[..]].concat();
    network.service(node, &program, PORT);
}

/// The group that the test names, if it does.
fn group() -> Option<IpAddr> {
    Some(std::env::var("PLUMB_TEST_GROUP").ok()?.parse().unwrap())
}

/// Answers datagrams to a group with its host's name, and reads what comes by TCP. Ends with the
/// laboratory.
#[test]
#[ignore = "a program for a node of the laboratory"]
fn node_answers() {
    assert!(plumb_lab::client::inside(), "runs in a laboratory only");
    if let Some(group) = group() {
        let socket = match group {
            IpAddr::V4(group) => {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).unwrap();
                socket
                    .join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED)
                    .unwrap();
                socket
            }
            IpAddr::V6(group) => {
                let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, PORT)).unwrap();
                socket.join_multicast_v6(&group, 0).unwrap();
                socket
            }
        };
        std::thread::spawn(move || {
            let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
            let mut buffer = [0; 16];
            while let Ok((_, from)) = socket.recv_from(&mut buffer) {
                socket.send_to(name.trim().as_bytes(), from).unwrap();
            }
        });
    }
    // One socket for both families.
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, PORT)).unwrap();
    for mut stream in listener.incoming().flatten() {
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

/// Sends to the group until two have answered, then once more, so that a third had time to.
#[test]
#[ignore = "a program for a node of the laboratory"]
fn node_asks() {
    let group = group().unwrap();
    let (own, domain): (IpAddr, _) = match group {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), socket2::Domain::IPV4),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), socket2::Domain::IPV6),
    };
    let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None).unwrap();
    socket.bind(&SocketAddr::from((own, 0)).into()).unwrap();
    // The kernel's own is 1, which no router passes on.
    match group {
        IpAddr::V4(_) => socket.set_multicast_ttl_v4(8).unwrap(),
        IpAddr::V6(_) => socket.set_multicast_hops_v6(8).unwrap(),
    }
    let socket = UdpSocket::from(socket);
    socket
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    let mut answered = BTreeSet::new();
    for _ in 0..2 {
        socket.send_to(b"who", (group, PORT)).unwrap();
        for _ in 0..2 {
            let mut buffer = [0; 16];
            let (length, _) = socket.recv_from(&mut buffer).expect("two answers");
            answered.insert(String::from_utf8(buffer[..length].to_vec()).unwrap());
        }
    }
    println!("answered: {answered:?}");
}
