//! `plumb port`, and `plumb ping` by other protocols than ICMP.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::thread;

use crate::common::network::Network;
use crate::common::{in_lab, measured_in, plumb, stderr, stdout};
use plumb_model::results::port::{FirstWord, IdleResult, PortResult, PortState};
use plumb_model::results::{Outcome, PingResult};
use plumb_model::run::Run;

/// Tells the ignored test that it is a program.
const INSIDE: &str = "PLUMB_TEST_INSIDE";
/// Where the silent server listens.
const PORT: u16 = 9000;

fn port(run: &Run, number: usize) -> &PortResult {
    match &run.measurements[number].outcome {
        Outcome::Port(port) => port,
        other => panic!("{other:?}"),
    }
}

fn ping(run: &Run) -> &PingResult {
    match &run.measurements[0].outcome {
        Outcome::Ping(ping) => ping,
        other => panic!("{other:?}"),
    }
}

fn run(arguments: &[&str]) -> Run {
    let output = plumb(&[arguments, &["--json"]].concat());
    Run::from_json(&stdout(&output))
        .unwrap_or_else(|e| panic!("{arguments:?}: {e} {}", stderr(&output)))
}

/// A server that answers each connection's first bytes with a page's head; its port.
fn web_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nCF-Ray: 8-TEST\r\n\r\n");
            }
        }
    });
    port
}

/// A server that accepts and then hangs up, or says nothing until the far end goes; its port.
fn wordless_server(hangs_up: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if !hangs_up {
                let _ = stream.read(&mut [0; 16]);
            }
        }
    });
    port
}

#[test]
fn a_service_that_hangs_up_is_told_from_one_that_says_nothing() {
    let [gone, mute] = [true, false].map(|hangs_up| wordless_server(hangs_up).to_string());
    let seen = run(&["port", "127.0.0.1", &gone, &mute, "-c", "1"]);
    let [gone_is, mute_is] = [0, 1].map(|number| port(&seen, number));
    assert!(
        gone_is.closed_s.is_some() && gone_is.mute_s.is_none(),
        "{gone_is:?}"
    );
    assert!(
        mute_is.closed_s.is_none() && mute_is.mute_s == Some(1.5),
        "{mute_is:?}"
    );
    let text = stdout(&plumb(&["port", "127.0.0.1", &gone, &mute, "-c", "1"]));
    assert!(
        text.contains("without an answer") && text.contains("sent nothing in 1.50 s"),
        "{text}"
    );
    let refused = plumb(&["port", "127.0.0.1", "no-such-service"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("/etc/services"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn a_page_is_asked_for_and_an_edge_is_pointed_out() {
    let web = web_server().to_string();
    let seen = run(&["port", "127.0.0.1", &web, "--http"]);
    let result = port(&seen, 0);
    assert_eq!(
        (result.state, result.http_status, result.connected),
        (Some(PortState::Open), Some(200), 3)
    );
    assert!(result.connect_s.is_some() && result.first_byte_s.is_some() && result.name_s.is_none());
    assert!(
        result.hints.iter().any(|hint| hint.contains("Cloudflare")),
        "{:?}",
        result.hints
    );
    let seen = run(&[
        "ping",
        "127.0.0.1",
        "--protocol",
        "http",
        "--port",
        &web,
        "-c",
        "4",
        "-i",
        "20ms",
    ]);
    let result = ping(&seen);
    assert_eq!(
        (result.received, result.answers.get("HTTP 200")),
        (4, Some(&4))
    );
}

#[test]
fn a_dns_server_is_asked() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = socket.local_addr().unwrap().port().to_string();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((count, from)) = socket.recv_from(&mut buffer) {
            // The question back, as an answer: no such name.
            buffer[2] |= 0x80;
            buffer[3] = 3;
            let _ = socket.send_to(&buffer[..count], from);
        }
    });
    let arguments = [
        "ping",
        "127.0.0.1",
        "--protocol",
        "dns",
        "--port",
        &server,
        "--ask",
        "example.net",
        "-c5",
        "-i20ms",
    ];
    let seen = run(&arguments);
    let result = ping(&seen);
    assert_eq!(
        (result.received, result.answers.get("NXDOMAIN")),
        (5, Some(&5))
    );
}

#[test]
fn every_protocol_times_the_same_line() {
    let checked = |protocol: &str, target: &str| {
        measured_in(
            "fibre",
            &[
                "ping",
                target,
                "--protocol",
                protocol,
                "-c",
                "8",
                "-i",
                "30ms",
                "-W",
                "1",
            ],
        )
    };
    // The fastest: eight probes take a quarter of a second, in which a machine may stand still.
    let icmp = ping(&checked("icmp", "server").run).rtt_s.unwrap().min;
    for (protocol, target, answer) in [
        ("tcp", "server:7586", Some("SYN-ACK")),
        ("tcp", "server:9", Some("RST")),
        ("udp-port", "server:9", Some("port unreachable")),
        ("stamp", "server", None),
    ] {
        let seen = checked(protocol, target);
        let result = ping(&seen.run);
        assert_eq!(result.received, 8, "{protocol}: {:?}", seen.run.notes);
        if let Some(answer) = answer {
            assert_eq!(
                result.answers.get(answer),
                Some(&8),
                "{protocol}: {:?}",
                result.answers
            );
        }
        let apart = (result.rtt_s.unwrap().min - icmp).abs();
        // What our own threads add where they time a reset.
        assert!(apart < 0.003, "{protocol} {target}: {apart} from {icmp}");
    }
}

#[test]
fn a_name_that_is_an_alias_of_an_edge_is_pointed_out() {
    let script = "\
        file=$(mktemp) && address=$(getent ahostsv4 server | head -n 1 | cut -d ' ' -f 1) && \
        echo \"$address d1.cloudfront.net www.site.example\" > $file && mount --bind $file /etc/hosts && \
        plumb port www.site.example 7586 -c1 --json && plumb port $address 7586 -c1 --json && rm $file";
    let output = in_lab("fibre", &[], &["sh", "-c", script]);
    let runs: Vec<Run> = stdout(&output)
        .lines()
        .map(|line| Run::from_json(line).unwrap())
        .collect();
    let [named, addressed] = &runs[..] else {
        panic!("{}", stderr(&output))
    };
    let result = port(named, 0);
    assert_eq!(result.canonical_name.as_deref(), Some("d1.cloudfront.net"));
    assert!(result.hints[0].contains("resolves to d1.cloudfront.net"));
    let result = port(addressed, 0);
    assert_eq!((&result.canonical_name, &result.name_s), (&None, &None));
    assert!(result.hints.is_empty(), "{:?}", result.hints);
}

#[test]
fn a_tunnel_that_the_route_leaves_through_is_pointed_out() {
    // A TUN device that no program reads is a tunnel whose other end is silent.
    let script = "\
        ip tuntap add dev tun0 mode tun && ip address add 198.18.0.1/24 dev tun0 && ip link set tun0 up && \
        plumb port 198.18.0.2 443 -c1 -W 300ms --json; \
        ip route add default dev tun0; plumb port 203.0.113.1 443 -c1 -W 300ms --json; \
        plumb port server 7586 -c1 --json";
    let output = in_lab("fibre", &[], &["sh", "-c", script]);
    let hints: Vec<_> = stdout(&output)
        .lines()
        .map(|line| port(&Run::from_json(line).unwrap(), 0).hints.concat())
        .collect();
    let [on_link, routed, beside] = &hints[..] else {
        panic!("{hints:?} {}", stderr(&output))
    };
    assert!(on_link.contains("tun0, a tunnel"), "{on_link}");
    assert!(routed.contains("tun0, a tunnel"), "{routed}");
    assert_eq!(beside, "");
}

#[test]
fn refused_filtered_and_unreachable_are_told_apart() {
    let output = plumb(&["port", "127.0.0.1", "9", "-c1", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let refused = Run::from_json(&stdout(&output)).unwrap();
    assert_eq!(port(&refused, 0).state, Some(PortState::Refused));
    // A reader of text sees it once, and not in the words of each try.
    let output = plumb(&["port", "127.0.0.1", "9", "7", "-c1"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output) + &stdout(&output);
    assert_eq!(
        said.matches("the host refuses connections").count(),
        2,
        "{said}"
    );
    assert!(!said.contains("nothing listens"), "{said}");
    assert!(said.contains("no connection to 127.0.0.1"), "{said}");
    let both = measured_in("fibre", &["port", "server", "7586", "9", "-c1"]).run;
    assert_eq!(
        (port(&both, 0).state, port(&both, 1).state),
        (Some(PortState::Open), Some(PortState::Refused))
    );
    assert!(port(&both, 0).name_s.is_some());
    // Its links are TUN devices, and no tunnels.
    assert!(
        port(&both, 0).hints.is_empty(),
        "{:?}",
        port(&both, 0).hints
    );
    // The lab's own addresses have nobody at 10.0.0.9, and no route leads to 192.0.2.1.
    let script =
        "plumb port 10.0.0.9 80 -c1 -W 300ms --json; plumb port 192.0.2.1 80 -c1 -W 300ms --json";
    let output = in_lab("fibre", &[], &["sh", "-c", script]);
    let states: Vec<_> = stdout(&output)
        .lines()
        .map(|line| port(&Run::from_json(line).unwrap(), 0).state.unwrap())
        .collect();
    assert_eq!(states, [PortState::Filtered, PortState::Unreachable]);
}

/// A program in the laboratory: takes connections, and is silent.
#[test]
#[ignore = "a program that the other tests start in a laboratory"]
fn program_silent_server() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let listener = TcpListener::bind(("0.0.0.0", PORT)).unwrap();
    // It ends with the laboratory.
    let _kept: Vec<_> = listener.incoming().collect();
}

/// What is found of a service at the server by a client behind a NAT that forgets what was silent for a second and
/// a half.
fn silence_behind_nat(service: &[&str], number: u16) -> IdleResult {
    let (nat, delay) = (
        r#"{ type = "nat", tcp_timeout = "1500ms" }"#,
        r#"{ type = "delay", delay = "2ms" }"#,
    );
    let mut line = Network::line(&format!("{nat}, {delay}"), &format!("{delay}, {nat}"));
    line.service("server", service, number);
    let options = ["-c1", "--no-http", "--idle", "3s"];
    let text = number.to_string();
    let command = [&["port", "server", &text], &options[..]].concat();
    port(&line.measured(&command).run, 0).idle.unwrap()
}

#[test]
fn a_nat_that_makes_its_mapping_again_keeps_what_we_send() {
    let this = std::env::current_exe().unwrap();
    let inside = format!("{INSIDE}=1");
    let test = ["--ignored", "--exact", "port::program_silent_server"];
    let server = [&["env", &inside, this.to_str().unwrap()][..], &test].concat();
    let idle = silence_behind_nat(&server, PORT);
    // The laboratory's NAT gives the next segment from inside the same port again: from this side, which
    // speaks first, nothing is lost.
    assert_eq!(
        (idle.kept_s, idle.lost_s, idle.closed_s),
        (Some(3.0), None, None)
    );
    assert_eq!((idle.tried, idle.first_word), (8, FirstWord::ThisHost));
}

#[test]
fn a_nat_that_has_forgotten_shows_when_the_far_end_speaks_first() {
    let idle = silence_behind_nat(&["plumb", "serve", "--quiet"], 7586);
    let (kept, lost) = (idle.kept_s.unwrap(), idle.lost_s.unwrap());
    // What was sent last, an acknowledgement, is some milliseconds younger than the silence.
    assert!(kept < 1.55 && lost >= 1.45, "{idle:?}");
    assert!(lost - kept < 0.25, "{idle:?}");
    assert_eq!((idle.closed_s, idle.first_word), (None, FirstWord::FarEnd));
}

#[test]
fn a_ping_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (saved, drawn) = (file("run.json"), file("ping.svg"));
    assert!(
        plumb(&["ping", "127.0.0.1", "-c5", "-i10ms", "-q", "-o", &saved])
            .status
            .success()
    );
    let output = plumb(&["report", &saved, "--svg", &drawn]);
    assert!(output.status.success(), "{}", stderr(&output));
    let svg = std::fs::read_to_string(drawn).unwrap();
    assert!(
        svg.starts_with("<svg xmlns=") && svg.contains("<path class=\"line"),
        "{svg}"
    );
}
