//! Middleboxes as the kernel's TCP and plumb's own probes meet them. The programs inside the
//! laboratory are this test's own: the ignored tests below, which only run where it starts them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::common::network::Network;
use crate::common::{plumb, stderr, words};
use plumb_lab::stats::LabStats;
use plumb_model::direction::OneDirection;
use plumb_net::tcp::{TcpInfo, abort_on_close, tcp_info};

/// Where the server of these tests listens.
const PORT: u16 = 9000;
/// Tells the ignored tests that they are programs.
const INSIDE: &str = "PLUMB_TEST_INSIDE";
/// Whether the client uses IPv6, and bytes that it sends.
const IPV6: &str = "PLUMB_TEST_IPV6";
const SEND: &str = "PLUMB_TEST_SEND";
/// How long a client waits without progress.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The server's address, as its name is resolved.
fn server(v6: bool) -> SocketAddr {
    let mut addresses = ("server", PORT).to_socket_addrs().unwrap();
    addresses.find(|address| address.is_ipv6() == v6).unwrap()
}

/// A program in the laboratory: reads to the end of the question, tells who asked and how much
/// came, and closes.
#[test]
#[ignore = "a program that the other tests start in a laboratory"]
fn program_server() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    // Both versions of IP.
    let listener = TcpListener::bind(("::", PORT)).unwrap();
    // It ends with the laboratory.
    for stream in listener.incoming() {
        std::thread::spawn(move || {
            let mut stream = stream.unwrap();
            let mut peer = stream.peer_addr().unwrap();
            peer.set_ip(peer.ip().to_canonical());
            let mut question = Vec::new();
            if stream.read_to_end(&mut question).is_ok() {
                let info = tcp_info(&stream).unwrap();
                let _ = stream.write_all(
                    format!(
                        "peer={peer} bytes={} server_mss={}\n",
                        question.len(),
                        info.snd_mss_bytes
                    )
                    .as_bytes(),
                );
            }
        });
    }
}

/// A program in the laboratory: asks the server and prints what it and the kernel say.
#[test]
#[ignore = "a program that the other tests start in a laboratory"]
fn program_client() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let bytes: usize = std::env::var(SEND).unwrap().parse().unwrap();
    let server = server(std::env::var_os(IPV6).is_some());
    let started = Instant::now();
    let mut stream = TcpStream::connect_timeout(&server, Duration::from_secs(4)).unwrap();
    let connected = started.elapsed();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    let asked = stream
        .write_all(&vec![7; bytes])
        .and_then(|()| stream.shutdown(std::net::Shutdown::Write))
        .and_then(|()| BufReader::new(&stream).read_line(&mut answer));
    let info = tcp_info(&stream).unwrap();
    abort_on_close(&stream).unwrap();
    println!(
        "\nsaid: answered={} connect_ms={} mss={} pmtu={} options={} srtt_us={} acked={} local={} {answer}",
        asked.is_ok(),
        connected.as_millis(),
        info.snd_mss_bytes,
        info.path_mtu_bytes,
        info.options,
        info.srtt_us,
        info.bytes_acked,
        stream.local_addr().unwrap(),
    );
}

/// What a client said, and what the links did.
struct Seen {
    said: BTreeMap<String, String>,
    stats: LabStats,
    text: String,
}

impl Seen {
    fn number(&self, key: &str) -> u64 {
        self.said[key].parse().unwrap()
    }

    fn options(&self) -> u8 {
        self.said["options"].parse().unwrap()
    }

    fn dropped(&self, way: OneDirection, cause: &str) -> u64 {
        let dropped = &self.stats.links["line"][&way].chain.dropped;
        dropped.get(cause).copied().unwrap_or(0)
    }
}

/// This program in one of its roles, for a scenario or a shell.
fn role(name: &str) -> Vec<String> {
    let this = std::env::current_exe().unwrap();
    let this = this.to_str().unwrap();
    ["env", &format!("{INSIDE}=1"), this]
        .into_iter()
        .chain([
            "--ignored",
            "--exact",
            &format!("lab_middlebox::{name}"),
            "--nocapture",
        ])
        .map(str::to_owned)
        .collect()
}

/// Runs `script` on the first node of a network; `{client}` in it is the client that sends
/// 200 kB.
fn in_lab(network: &Network, script: &str) -> Seen {
    let client = format!("env {SEND}=200000 {}", role("program_client").join(" "));
    let (text, stats) = network.script(&script.replace("{client}", &client));
    let said = text.lines().filter_map(|line| line.strip_prefix("said: "));
    let pairs = said
        .flat_map(str::split_whitespace)
        .filter_map(|pair| pair.split_once('='));
    Seen {
        said: pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        stats,
        text,
    }
}

/// Has a node run one of this program's roles.
fn runs(network: &mut Network, node: &str, name: &str) {
    let role = role(name);
    let role: Vec<_> = role.iter().map(String::as_str).collect();
    network.service(node, &role, PORT);
}

/// A client and a server with one line between.
fn line(up: &str, down: &str) -> Network {
    let mut line = Network::line(up, down);
    runs(&mut line, "server", "program_server");
    line
}

const TWO_MS: &str = r#"{ type = "delay", delay = "2ms" }"#;

#[test]
fn the_path_mtu_is_found_out() {
    let seen = in_lab(&line(r#"{ type = "mtu", bytes = 1400 }"#, ""), "{client}");
    assert_eq!(seen.said["bytes"], "200000");
    // 20 bytes of IP, 20 of TCP, 12 of timestamps.
    assert_eq!((seen.number("pmtu"), seen.number("mss")), (1400, 1348));
    let v6 = format!("export {IPV6}=1; {{client}}");
    let seen = in_lab(&line(r#"{ type = "mtu", bytes = 1400 }"#, ""), &v6);
    assert_eq!(seen.said["bytes"], "200000");
    assert_eq!((seen.number("pmtu"), seen.number("mss")), (1400, 1328));
    assert!(seen.said["local"].starts_with("[fd00::1]"), "{}", seen.text);
    let cell = &seen.stats.links["line"][&OneDirection::Up].chain.cells["mtu"];
    assert!(
        cell.replied >= 1 && cell.replied == cell.dropped["too_big"],
        "{cell:?}"
    );
}

#[test]
fn a_black_hole_swallows_what_is_too_large() {
    let hole = r#"{ type = "mtu", bytes = 1400, icmp = false }"#;
    let seen = in_lab(&line(hole, ""), "{client}");
    assert_eq!(seen.said["answered"], "false");
    // The connection came about, and of the data nothing arrived.
    assert_eq!((seen.number("pmtu"), seen.number("acked")), (1500, 1));
    assert!(seen.dropped(OneDirection::Up, "too_big") >= 2);
    // And nobody was told.
    assert_eq!(
        seen.stats.links["line"][&OneDirection::Up].chain.cells["mtu"].replied,
        0
    );
}

#[test]
fn the_mss_is_clamped_for_both() {
    let clamp = r#"{ type = "mss_clamp", bytes = 1300 }"#;
    let seen = in_lab(&line(clamp, clamp), "{client}");
    assert_eq!(
        (seen.number("mss"), seen.number("server_mss")),
        (1288, 1288)
    );
    assert_eq!((seen.number("pmtu"), seen.number("bytes")), (1500, 200_000));
}

#[test]
fn stripped_options_are_not_agreed_on() {
    let all = TcpInfo::TIMESTAMPS | TcpInfo::SACK | TcpInfo::WINDOW_SCALE;
    let seen = in_lab(&line(TWO_MS, ""), "{client}");
    assert_eq!(seen.options() & all, all);
    let wscale = r#"{ type = "strip_tcp_options", options = ["wscale"] }"#;
    let seen = in_lab(&line(wscale, ""), "{client}");
    assert_eq!(seen.options() & all, TcpInfo::TIMESTAMPS | TcpInfo::SACK);
    let seen = in_lab(&line(r#"{ type = "strip_tcp_options" }"#, ""), "{client}");
    assert_eq!((seen.options() & all, seen.number("mss")), (0, 1460));
    assert_eq!(seen.number("bytes"), 200_000);
}

#[test]
fn ecn_is_refused_or_lost() {
    let asks = |cell: &str| {
        let mut line = line(cell, cell);
        line.sysctl("client", "net.ipv4.tcp_ecn", "1");
        line
    };
    let ecn = TcpInfo::ECN | TcpInfo::ECN_SEEN;
    let seen = in_lab(&asks(""), "{client}");
    assert_eq!(seen.options() & ecn, ecn, "{}", seen.text);
    let seen = in_lab(&asks(r#"{ type = "ecn_bleach" }"#), "{client}");
    assert_eq!(seen.options() & ecn, TcpInfo::ECN, "agreed on, never seen");
    // The first SYN is lost, and the second, a second later, does not ask.
    let seen = in_lab(&asks(r#"{ type = "ecn_syn_drop" }"#), "{client}");
    assert_eq!(seen.options() & ecn, 0);
    assert!(seen.number("connect_ms") >= 1000 && seen.number("bytes") == 200_000);
    assert_eq!(seen.dropped(OneDirection::Up, "ecn_syn"), 1);
}

/// The loss and the median round trip of the ping in the output.
fn ping(seen: &Seen) -> (f64, f64) {
    let run = seen
        .text
        .lines()
        .find(|line| line.starts_with("{\"schema\""));
    let run: serde_json::Value = serde_json::from_str(run.expect("a Run")).unwrap();
    let field = |name: &str| {
        let value = run.pointer(&format!("/measurements/0/result/{name}"));
        value.and_then(serde_json::Value::as_f64)
    };
    (
        field("loss_ratio").unwrap(),
        field("rtt_s/p50").unwrap_or(f64::NAN),
    )
}

const PING: &str = "plumb ping server --count 10 --interval 20ms --timeout 300ms --json; {client}";

#[test]
fn icmp_is_worse_off_than_tcp() {
    let seen = in_lab(
        &line(r#"{ type = "icmp_filter" }"#, ""),
        &PING.replace(';', "; echo ping: $?;"),
    );
    assert!(seen.text.contains("ping: 1"), "{}", seen.text);
    assert_eq!(seen.number("bytes"), 200_000);
    assert_eq!(seen.dropped(OneDirection::Up, "icmp_filter"), 10);

    let limit = r#"{ type = "icmp_limit", per_second = 0.1, burst = 4 }"#;
    let seen = in_lab(&line(limit, ""), PING);
    assert_eq!((ping(&seen).0, seen.number("bytes")), (0.6, 200_000));
    assert_eq!(seen.dropped(OneDirection::Up, "icmp_limit"), 6);

    let slow = r#"{ type = "icmp_deprioritise", delay = "60ms", jitter = "5ms" }"#;
    let seen = in_lab(&line(slow, ""), PING);
    let (loss, rtt) = ping(&seen);
    assert!(loss == 0.0 && (0.055..0.080).contains(&rtt), "{loss} {rtt}");
    assert!(seen.number("srtt_us") < 30_000, "{}", seen.text);
}

#[test]
fn two_clients_share_one_address() {
    let two_clients = |nat: &str| {
        let mut network = Network::default();
        network.without_ipv6();
        network.node("a", "").node("b", "");
        network.node("router", "forward = true").node("server", "");
        network.link("lan-a", ["a", "router"], "");
        network.link("lan-b", ["b", "router"], "");
        let cells = format!("up = [{nat}]\ndown = [{nat}]");
        network.link("line", ["router", "server"], &cells);
        runs(&mut network, "server", "program_server");
        runs(&mut network, "b", "program_other_client");
        network
    };
    let script = "plumb ping server --count 3 --interval 10ms --json; {client}";
    let seen = in_lab(&two_clients(r#"{ type = "nat" }"#), script);
    let peer: SocketAddr = seen.said["peer"].parse().unwrap();
    let local: SocketAddr = seen.said["local"].parse().unwrap();
    assert_eq!(local.ip().to_string(), "10.0.0.1");
    assert_eq!(peer.ip().to_string(), "10.0.2.1", "the router's own");
    assert_eq!((peer.port(), seen.number("bytes")), (local.port(), 200_000));
    assert_eq!(ping(&seen).0, 0.0);
    // Both are in the line's table of flows by their own addresses.
    let hosts = &seen.stats.links["line"][&OneDirection::Up].chain.hosts;
    for host in ["10.0.0.1", "10.0.1.1"] {
        assert!(hosts.contains_key(&host.parse().unwrap()), "{hosts:?}");
    }
    let answers = &seen.stats.links["line"][&OneDirection::Down].chain.hosts;
    assert!(answers.contains_key(&"10.0.2.1".parse().unwrap()));
    assert!(
        !answers.contains_key(&"10.0.0.1".parse().unwrap()),
        "{answers:?}"
    );

    // The other client holds the only place in a small table.
    let seen = in_lab(
        &two_clients(r#"{ type = "nat", max_mappings = 1 }"#),
        "plumb ping server --count 2 --interval 10ms --timeout 200ms --json || true",
    );
    assert_eq!(
        seen.dropped(OneDirection::Up, "nat_table_full"),
        2,
        "{}",
        seen.text
    );
}

/// A program in the laboratory: connects to the server and keeps the connection, then listens to
/// show that it has.
#[test]
#[ignore = "a program that the other tests start in a laboratory"]
fn program_other_client() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let _connection = TcpStream::connect(server(false)).unwrap();
    let listener = TcpListener::bind(("0.0.0.0", PORT)).unwrap();
    // It ends with the laboratory.
    let _ = listener.accept();
}

/// How long the slow server waits between the two parts of its reply.
const SLOW: Duration = Duration::from_millis(300);

/// A program in the laboratory: answers in two parts, and leaves the connection open.
#[test]
#[ignore = "a program that the other tests start in a laboratory"]
fn program_slow_server() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let listener = TcpListener::bind(("::", PORT)).unwrap();
    // It ends with the laboratory.
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let peer = stream.peer_addr().unwrap();
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        stream.read_exact(&mut [0]).unwrap();
        writeln!(stream, "peer={peer}").unwrap();
        std::thread::sleep(SLOW);
        writeln!(stream, "end").unwrap();
        let _ = stream.read(&mut [0]);
    }
}

/// A program in the laboratory: tells when the two parts of the reply came.
#[test]
#[ignore = "a program that the other tests start in a laboratory"]
fn program_waiting_client() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let ipv6 = std::env::var_os(IPV6).is_some();
    let mut stream = TcpStream::connect(server(ipv6)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(4)))
        .unwrap();
    let started = Instant::now();
    stream.write_all(b"?").unwrap();
    let mut reply = BufReader::new(&stream).lines();
    let first = reply.next().unwrap().unwrap();
    let first_ms = started.elapsed().as_millis();
    reply.next().unwrap().unwrap();
    let all_ms = started.elapsed().as_millis();
    let local = stream.local_addr().unwrap();
    println!("\nsaid: first_ms={first_ms} all_ms={all_ms} local={local} {first}");
}

#[test]
fn a_buffering_proxy_keeps_the_reply_until_the_server_is_silent() {
    let seen = |ipv6: bool, options: &[&str]| {
        let mut network = Network::default();
        network.node("client", "").node("proxy", "forward = true");
        network.node("server", "");
        network.link("lan", ["client", "proxy"], "");
        let cells = format!("up = [{TWO_MS}]");
        network.link("line", ["proxy", "server"], &cells);
        runs(&mut network, "server", "program_slow_server");
        let port = PORT.to_string();
        let proxy = words("plumb lab proxy --clients lan --servers line");
        let proxy = [&proxy[..], &["--port", &port], options].concat();
        network.service("proxy", &proxy, PORT);
        let family = if ipv6 {
            format!("{IPV6}=1 ")
        } else {
            String::new()
        };
        let client = role("program_waiting_client").join(" ");
        let seen = in_lab(&network, &format!("env {family}{client}"));
        // Nobody sees that it is there.
        assert_eq!(seen.said["peer"], seen.said["local"]);
        (seen.number("first_ms"), seen.number("all_ms"))
    };
    let (first, all) = seen(false, &[]);
    assert!(first < 250 && all >= 300, "{first} {all}");
    for ipv6 in [false, true] {
        let (first, all) = seen(ipv6, &["--buffer", "500ms"]);
        assert!(first >= 800 && all - first < 250, "{first} {all}");
    }
    let refused = plumb(&["lab", "proxy", "--clients", "lan", "--servers", "line"]);
    assert!(stderr(&refused).contains("not inside a lab"));
}
