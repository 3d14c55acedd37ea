//! The reverse path of `plumb path`, from `plumb serve` at the target, in networks whose truth is known.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use crate::common::network::Network;
use crate::common::{measured_in, plumb, stderr, stdout};
use plumb_model::finding::{Cause, Place};
use plumb_model::results::Outcome;
use plumb_model::results::path::{EcnField, PathHop, PathResult, Sameness};
use plumb_model::run::{HostFacts, Run};
use plumb_wire::native::control::frame::encode_frame;
use plumb_wire::native::control::{Fingerprint, Limits, ServerMessage, Token, Welcome};
use plumb_wire::native::spec::MAX_SERVER_FRAME_BYTES;

/// Runs a program as a user without capabilities.
const UNPRIVILEGED: [&str; 6] = [
    "setpriv",
    "--reuid",
    "65534",
    "--clear-groups",
    "--inh-caps=-all",
    "--bounding-set=-all",
];

/// From a to b by r1, and back by r3 and r2: one router there, two back; with a responder at b. Links are
/// numbered in their order, and each has a network of its number.
fn asymmetric() -> Network {
    let mut network = Network::default();
    for (name, forward) in [
        ("a", false),
        ("b", false),
        ("r1", true),
        ("r2", true),
        ("r3", true),
    ] {
        network.node(name, &format!("forward = {forward}"));
    }
    for (number, between) in [
        ["a", "r1"],
        ["a", "r2"],
        ["r1", "b"],
        ["r2", "r3"],
        ["r3", "b"],
    ]
    .into_iter()
    .enumerate()
    {
        network.link(&format!("l{number}"), between, "");
    }
    for (node, via) in [("b", "r3"), ("r3", "r2")] {
        network.add(&format!(
            "[[route]]\nnode = \"{node}\"\nto = \"a\"\nvia = \"{via}\""
        ));
    }
    network.serves("b");
    network
}

/// One router between two hosts, ten milliseconds before it on the forward path, and a service at the far end.
fn straight(service: &[&str]) -> Network {
    let mut network = Network::default();
    network
        .node("a", "")
        .node("r", "forward = true")
        .node("b", "");
    network.link(
        "l0",
        ["a", "r"],
        "up = [{ type = \"delay\", delay = \"10ms\" }]",
    );
    network.link("l1", ["r", "b"], "");
    network.service("b", service, 7586);
    network
}

/// The lines that a script prints in the first node.
fn lines(network: &Network, script: &str) -> Vec<String> {
    network
        .script(script)
        .0
        .lines()
        .map(str::to_owned)
        .collect()
}

fn path(run: &Run) -> &PathResult {
    match &run.measurements[0].outcome {
        Outcome::Path(path) => path,
        other => panic!("{other:?}"),
    }
}

fn addresses(hops: &[PathHop]) -> Vec<&str> {
    hops.iter()
        .map(|hop| hop.address.as_deref().unwrap_or("*"))
        .collect()
}

/// Both lists are what the routes make them, in both families, by raw sockets and without, and so is what is
/// said of them; a firewalled or switched-off responder does not make the forward path wrong.
#[test]
fn both_ways_are_seen_as_they_are() {
    let seen = lines(
        &asymmetric(),
        "for f in 4 6; do plumb path -$f -n b --json; plumb path -$f -n --udp --both b --json; done
         plumb path -n b --details
         plumb path -n --dot b
         plumb path -n --graph-json b | tr -d '\\n'; echo
         plumb path -n --one-way b --json
         plumb path -n r1 --json; echo $?
         plumb path -n --both r1 --json 2>&1; echo $?",
    );
    let runs: Vec<Run> = seen
        .iter()
        .filter_map(|line| Run::from_json(line).ok())
        .collect();
    let [v4, v4_udp, v6, v6_udp, one_way, nobody, missing] = runs.as_slice() else {
        panic!("{seen:#?}")
    };
    for (run, there, back) in [
        (
            v4,
            ["10.0.0.2", "10.0.2.2"],
            ["10.0.4.1", "10.0.3.1", "10.0.0.1"],
        ),
        (
            v4_udp,
            ["10.0.0.2", "10.0.2.2"],
            ["10.0.4.1", "10.0.3.1", "10.0.0.1"],
        ),
        (
            v6,
            ["fd00::2", "fd00:0:0:2::2"],
            ["fd00:0:0:4::1", "fd00:0:0:3::1", "fd00::1"],
        ),
        (
            v6_udp,
            ["fd00::2", "fd00:0:0:2::2"],
            ["fd00:0:0:4::1", "fd00:0:0:3::1", "fd00::1"],
        ),
    ] {
        let seen = path(run);
        let told = seen
            .way_back
            .as_ref()
            .unwrap_or_else(|| panic!("{:?}", run.notes));
        assert_eq!(addresses(&seen.hops), there, "{seen:?}");
        assert_eq!(addresses(&told.hops), back, "{told:?}");
        assert!(told.reached && seen.reached && told.loss.is_none());
        assert!(told.hops.iter().all(|hop| hop.rtt_s.is_some()), "{told:?}");
        let symmetry = seen.symmetry.as_ref().unwrap();
        assert_eq!(
            (symmetry.routes, symmetry.forward_hops, symmetry.return_hops),
            (Sameness::Differ, Some(2), Some(3)),
            "{symmetry:?}"
        );
    }
    assert!(path(one_way).way_back.is_none());
    assert!(
        path(nobody).way_back.is_none()
            && !nobody
                .notes
                .iter()
                .any(|note| note.contains("reverse path")),
        "{:?}",
        nobody.notes
    );
    assert!(path(missing).way_back.is_none(), "{missing:?}");
    let rest = seen.join("\n");
    assert!(rest.contains("another path back"), "{rest}");
    assert!(
        rest.contains("\"2: 10.0.2.2\" -> \"back 1: 10.0.4.1\""),
        "{rest}"
    );
    assert!(rest.contains("-> \"this host\" [color=blue"), "{rest}");
    assert!(rest.contains("\"id\": \"back 2: 10.0.3.1\""), "{rest}");
    assert!(
        rest.contains("plumb serve") && rest.ends_with("\n1"),
        "{rest}"
    );
}

/// The same routers, as many hops, and another line between them.
#[test]
fn another_line_between_the_same_routers_is_another_way() {
    let seen = measured_in(
        "asymmetric-route",
        &["path", "server", "-4", "-n", "--both"],
    )
    .run;
    let seen = path(&seen);
    let symmetry = seen.symmetry.as_ref().unwrap();
    let lines: Vec<_> = symmetry
        .lines
        .iter()
        .map(|line| {
            (
                line.forward_ttl.unwrap(),
                line.return_ttl.unwrap(),
                line.sameness,
            )
        })
        .collect();
    let wanted = [
        (1, 3, Sameness::Same),
        (2, 2, Sameness::Differ),
        (3, 1, Sameness::Same),
    ];
    assert_eq!(
        (symmetry.routes, lines.as_slice()),
        (Sameness::Differ, wanted.as_slice())
    );
    // Linux answers from the interface by which the answer leaves: each way shows the other's line.
    assert_eq!(addresses(&seen.hops), ["10.0.0.2", "10.0.2.2", "10.0.3.2"]);
    let back = &seen.way_back.as_ref().unwrap().hops;
    assert_eq!(addresses(back), ["10.0.3.1", "10.0.1.1", "10.0.0.1"]);
}

/// Both paths move to another router meanwhile: what is compared with each other is of one time, and so are the
/// round trips.
#[test]
fn a_route_that_changed_is_held_against_the_way_back_of_now() {
    let mut network = Network::default();
    for name in ["a", "q1", "q2", "q3", "q4", "b"] {
        network.node(name, &format!("forward = {}", name.starts_with('q')));
    }
    for (number, between) in [
        ["a", "q1"],
        ["q1", "q2"],
        ["q1", "q3"],
        ["q2", "q4"],
        ["q3", "q4"],
        ["q4", "b"],
    ]
    .into_iter()
    .enumerate()
    {
        network.link(&format!("l{number}"), between, "");
    }
    for (node, to) in [("q1", "b"), ("q4", "a")] {
        network.add(&format!(
            "[[route]]\nnode = \"{node}\"\nto = \"{to}\"\nvia = \"q3\"\nat = \"3s\""
        ));
    }
    network.serves("b");
    let seen = lines(
        &network,
        "plumb path -4 -n --icmp --cycles 25 --interval 200ms --both b --json",
    );
    let run = Run::from_json(&seen.join("\n")).unwrap();
    let seen = path(&run);
    assert_eq!(seen.changes.len(), 1, "{seen:?}");
    assert_eq!(
        addresses(&seen.hops),
        ["10.0.0.2", "10.0.2.2", "10.0.4.2", "10.0.5.2"]
    );
    let back = &seen.way_back.as_ref().unwrap().hops;
    assert_eq!(
        addresses(back),
        ["10.0.5.1", "10.0.4.1", "10.0.2.1", "10.0.0.1"]
    );
    let symmetry = seen.symmetry.as_ref().unwrap();
    assert_eq!(symmetry.routes, Sameness::Same, "{symmetry:?}");
    let trips: Vec<_> = seen
        .hops
        .iter()
        .map(|hop| hop.rtt_s.unwrap().count)
        .collect();
    let now = seen.routes.last().unwrap().received;
    assert!(now < 25 && trips == [25, now, now, now], "{trips:?}");
}

/// One router between two hosts: the lines are the same both ways, whatever the responder may do.
#[test]
fn a_straight_way_is_one_way_and_the_responder_needs_no_privilege() {
    let serve = ["plumb", "serve", "--quiet", "--without", "stamp"];
    let bare = [&UNPRIVILEGED[..], &serve].concat();
    for (serve, says) in [(&serve[..], None), (&bare, Some("without CAP_NET_RAW"))] {
        let script = "plumb path -n b --both --json; plumb path -n -6 -u b --both --json";
        let seen = lines(&straight(serve), script);
        for line in &seen {
            let run = Run::from_json(line).expect(line);
            let seen = path(&run);
            let told = seen.way_back.as_ref().unwrap();
            let v6 = seen.address.contains(':');
            let wanted = if v6 {
                ["fd00:0:0:1::1", "fd00::1"]
            } else {
                ["10.0.1.1", "10.0.0.1"]
            };
            assert_eq!(addresses(&told.hops), wanted, "{told:?}");
            assert_eq!(
                seen.symmetry.as_ref().unwrap().routes,
                Sameness::Same,
                "{seen:?}"
            );
            // The delay lies between this host and the router, on the forward path: in every round trip that crosses it.
            let rtt = |hop: &PathHop| hop.rtt_s.unwrap().min;
            assert!(
                rtt(&seen.hops[0]) >= 0.01
                    && rtt(&told.hops[0]) < 0.01
                    && rtt(&told.hops[1]) >= 0.01,
                "{told:?}"
            );
            assert_eq!(
                run.notes
                    .iter()
                    .any(|note| note.contains(says.unwrap_or("CAP_NET_RAW"))),
                says.is_some(),
                "{:?}",
                run.notes
            );
        }
    }
    let refusing = ["plumb", "serve", "--quiet", "--no-trace"];
    let script = "plumb path -n b --json; plumb path -n b --both --json 2>&1; echo $?";
    let seen = lines(&straight(&refusing), script);
    let run = Run::from_json(&seen[0]).unwrap();
    assert!(path(&run).way_back.is_none() && path(&run).reached);
    assert!(
        run.notes.iter().any(|note| note.contains("--no-trace")),
        "{:?}",
        run.notes
    );
    assert_eq!(seen.last().map(String::as_str), Some("1"), "{seen:?}");
}

/// Marks that are changed on the last link before the far end, or on the first one of the reverse path, which no hop
/// quotes: each is found with its direction, in both versions of IP, and on a path that changes nothing, none. Without a
/// reflector nothing is known.
#[test]
fn marks_that_no_hop_quotes_are_seen_by_both_ends() {
    let serve = ["plumb", "serve", "--quiet"];
    // Of the first 16, three.
    let loss = r#"{ type = "periodic_loss", every = 5, match = "udp 862" }"#;
    let (dscp, precedence) = (
        r#"{ type = "dscp_bleach" }"#,
        r#"{ type = "dscp_bleach", dscp = 2 }"#,
    );
    let ecn = r#"{ type = "ecn_bleach" }"#;
    let lossy = format!("{loss}, {ecn}");
    let (up, down) = ("the forward path (up)", "the reverse path (down)");
    let (changed, cleared) = (Cause::DscpChanged, Cause::EcnCleared);
    // What changes packets up and down, and what is found.
    let ends = [
        ("", "", vec![]),
        (dscp, "", vec![(changed, up, "from 34 to 0")]),
        ("", precedence, vec![(changed, down, "from 34 to 2")]),
        (
            lossy.as_str(),
            "",
            vec![(cleared, up, "from ECT(0) to Not-ECT")],
        ),
        (dscp, dscp, vec![(changed, up, "34"), (changed, down, "34")]),
    ];
    let mut network = Network::default();
    network.node("a", "").node("r", "forward = true");
    network.link("l", ["a", "r"], "");
    let mut script = String::new();
    for (number, (there, back, _)) in ends.iter().enumerate() {
        let name = format!("b{number}");
        network.node(&name, "").service(&name, &serve, 7586);
        let cells = format!("up = [{there}]\ndown = [{back}]");
        network.link(&format!("l{number}"), ["r", &name], &cells);
        let version = if number % 2 == 0 { 4 } else { 6 };
        script += &format!("plumb path -{version} -n {name} --json\n");
    }
    network.node("silent", "");
    network.service(
        "silent",
        &["plumb", "serve", "--quiet", "--without", "stamp"],
        7586,
    );
    network.link("last", ["r", "silent"], &format!("up = [{dscp}]"));
    let seen = lines(&network, &(script + "plumb path -n silent --json"));
    let runs: Vec<Run> = seen.iter().filter_map(|l| Run::from_json(l).ok()).collect();
    let ([runs @ .., unknown], true) = (runs.as_slice(), runs.len() == ends.len() + 1) else {
        panic!("{seen:#?}")
    };
    assert!(path(unknown).way_back.is_some() && path(unknown).marks.is_none());
    assert_eq!(unknown.findings, []);
    for (run, (there, back, wanted)) in runs.iter().zip(&ends) {
        let marks = path(run)
            .marks
            .as_ref()
            .unwrap_or_else(|| panic!("{run:?}"));
        let of_marks = run.findings.iter();
        let of_marks: Vec<_> = of_marks
            .filter(|f| [changed, cleared].contains(&f.cause))
            .collect();
        assert_eq!(
            of_marks.len(),
            wanted.len(),
            "{there} {back}: {marks:?} {of_marks:?}"
        );
        for (finding, (cause, direction, says)) in of_marks.iter().zip(wanted) {
            assert_eq!((finding.cause, finding.place), (*cause, Place::Path));
            for part in [direction, says] {
                assert!(
                    finding.summary.contains(part),
                    "{part}: {}",
                    finding.summary
                );
            }
        }
        // Packets that were lost, or a reply that a busy machine reads late, are retransmitted.
        assert!(marks.sent >= if there.contains("loss") { 19 } else { 16 });
        for direction in [&marks.up, &marks.down] {
            let arrived: u64 = direction.iter().map(|of| of.packets).sum();
            assert!((16..=marks.sent).contains(&arrived), "{marks:?}");
        }
        assert!(marks.down.iter().all(|of| of.ecn == EcnField::NotEct));
    }
}

/// A far end that takes the connection and says what is not so, or nothing: the forward path is shown as it is.
#[test]
fn a_hostile_responder_does_not_spoil_the_way_there() {
    let welcome = ServerMessage::Welcome(Box::new(Welcome {
        token: Token([7; 16]),
        limits: Limits {
            max_duration_s: 1.0,
            max_streams: 1,
        },
        host: HostFacts::default(),
        udp_port: None,
        certificate: Fingerprint([7; 32]),
    }));
    let welcome = encode_frame(&welcome, MAX_SERVER_FRAME_BYTES).unwrap();
    let probe = r#"{"hop":1,"cycle":0,"at_s":0.0,"answer":{"from":"10.0.0.1","rtt_s":0.001,"arrival":true}}"#;
    let told = |probes: &str| {
        format!(
            r#"{{"type":"traced","id":1,"towards":"127.0.0.1","protocol":"icmp","port":null,"access":"raw","probes":[{probes}]}}"#
        )
    };
    let many = vec![probe; 10_000].join(",");
    let lies = [
        // Ten thousand hops: more than a frame may hold, and in one that fits more than was asked for.
        (told(&many), "--both"),
        (told(&vec![probe; 1000].join(",")), "more probes"),
        (
            told(&probe.replace("\"hop\":1", "\"hop\":77")),
            "not asked for",
        ),
        (told(&probe.replace("0.001", "1e300")), "round trip"),
        (r#"{"type":"dance"}"#.to_owned(), "cannot be read"),
        (r#"{"type":"pong","id":1}"#.to_owned(), "lost the responder"),
    ];
    for (lie, says) in lies {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let welcome = welcome.clone();
        let answering = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let frame = |body: &[u8]| [&(body.len() as u32).to_be_bytes(), body].concat();
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(&welcome);
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(&frame(lie.as_bytes()));
            socket
                .set_read_timeout(Some(Duration::from_millis(300)))
                .unwrap();
            // Whatever else comes, until it is closed or it is enough.
            while socket.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
        });
        let output = plumb(&[
            "path",
            "127.0.0.1",
            "-n",
            "--json",
            "--both",
            "--responder-port",
            &port,
        ]);
        answering.join().unwrap();
        let run = Run::from_json(&stdout(&output)).expect("the forward path");
        assert_eq!(output.status.code(), Some(1), "{says}");
        assert!(path(&run).reached && path(&run).way_back.is_none());
        let why = stderr(&output);
        assert!(why.contains("the reverse path is unknown"), "{why}");
        assert!(says == "--both" || why.contains(says), "{says}: {why}");
    }
}
