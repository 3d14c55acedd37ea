//! `plumb serve` on the web, and `plumb rate` against web servers: with programs of others at the other end, on a line whose
//! rate is known.

use plumb_lab::truth::is_about_the_machine;
use serde_json::Value;

use crate::common::network::{Network, taken_ratio};
use crate::common::side_by_side;

/// Of each direction: 40 Mbit/s, 20 ms there and back.
const LINE: &str = r#"{ type = "shaper", rate = "40mbit", queue = { type = "fifo", limit = "40ms" } }, { type = "delay", delay = "10ms" }"#;

/// What TCP carries of a line of 40 Mbit/s: 1448 of 1500 bytes.
const TCP_BPS: f64 = 40e6 * 1448.0 / 1500.0;

/// NDT7 by another library.
const NDT7: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/ndt7.py");

/// How long what is measured lasts.
const LASTS_S: f64 = 3.0;

/// What commands said, one after the other, and the share that the machine took from each of them at most.
struct Answers<const N: usize> {
    all: [String; N],
    taken: f64,
}

impl<const N: usize> Answers<N> {
    fn of(network: &Network, commands: [String; N]) -> Self {
        let (printed, stats) = network.script(&commands.join(" && echo ---- && "));
        let all: Vec<String> = printed
            .split("----\n")
            .map(|one| one.trim().to_owned())
            .collect();
        Self {
            all: all.try_into().unwrap_or_else(|all| panic!("{all:?}")),
            taken: taken_ratio(&stats, LASTS_S),
        }
    }

    /// Slow start, the handshakes, and the queue of 40 ms that fills take 0.2 s of 3 s.
    fn is_about(&self, bps: f64, what: &str) {
        let ratio = bps / TCP_BPS;
        assert!(
            (0.9 - self.taken..1.02).contains(&ratio),
            "{what}: {bps} of {TCP_BPS}, the machine took {}",
            self.taken
        );
    }
}

/// curl, over both versions of HTTP and with and without TLS.
fn curl() {
    let network = Network::served_line(LINE, LINE);
    let curl = |options: &str| {
        let format = "%{http_version} %{http_code} %{speed_download} %{speed_upload}";
        format!("curl -sk -o /dev/null -w '{format}' {options}")
    };
    let (down, up) = ("/__down?bytes=15000000", "/__up");
    let upload = "head -c 15000000 /dev/zero | ";
    let answers = Answers::of(
        &network,
        [
            curl(&format!("'https://server:4043{down}'")),
            curl(&format!("'http://server:4043{down}'")),
            upload.to_owned() + &curl(&format!("--data-binary @- https://server:4043{up}")),
            upload.to_owned() + &curl(&format!("-T - http://server:4043{up}")),
            "curl -s http://server:4043/metrics".to_owned(),
            "curl -sk https://server:4043/.well-known/nq".to_owned(),
        ],
    );
    let all = &answers.all;
    for (answer, version, is_download) in [
        (&all[0], "2", true),
        (&all[1], "1.1", true),
        (&all[2], "2", false),
        (&all[3], "1.1", false),
    ] {
        let words: Vec<&str> = answer.split(' ').collect();
        assert_eq!(&words[..2], [version, "200"], "{answer}");
        let bytes_per_s: f64 = words[if is_download { 2 } else { 3 }].parse().unwrap();
        answers.is_about(8.0 * bytes_per_s, answer);
    }
    let carried = |name: &str, bytes: u64| {
        let line = all[4].lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(line, format!("{name} {bytes}"));
    };
    carried("plumb_serve_http_sent_bytes_total", 30_000_000);
    carried("plumb_serve_http_received_bytes_total", 30_000_000);
    let document: Value = serde_json::from_str(&all[5]).unwrap();
    assert_eq!(
        document["urls"]["small_download_url"],
        "https://server:4043/__down?bytes=1"
    );
}

/// NDT7's client by another library.
fn ndt7_client() {
    let network = Network::served_line(LINE, LINE);
    let answers = Answers::of(
        &network,
        ["download", "upload"]
            .map(|test| format!("/usr/bin/python3 {NDT7} {test} ws://server:4043 3")),
    );
    for (answer, test) in answers.all.iter().zip(["download", "upload"]) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        let last = &answer["last"];
        assert_eq!(
            (&last["Origin"], &last["Test"]),
            (&"server".into(), &test.into())
        );
        let app = &last["AppInfo"];
        let seconds = app["ElapsedTime"].as_f64().unwrap() / 1e6;
        // The server counts what its sockets took: on a download the send buffer beside what arrived.
        match test {
            "download" => answers.is_about(
                8.0 * answer["bytes"].as_f64().unwrap() / answer["seconds"].as_f64().unwrap(),
                test,
            ),
            _ => {
                // The server has what the client says, but for what was under way: up to 4 MB wait in the client's send
                // buffer and the queue. How long the client goes on with its last message, 3.0 to 3.6 s were seen, is its own.
                let client = |name: &str| answer[name].as_f64().unwrap();
                let bytes = app["NumBytes"].as_f64().unwrap();
                assert!((seconds - client("seconds")).abs() < 0.03, "{answer}");
                assert!((0.9..=1.0).contains(&(bytes / client("bytes"))), "{answer}");
                let ratio = 8.0 * bytes / seconds / TCP_BPS;
                assert!((0.8..1.02).contains(&ratio), "{ratio}: {answer}");
            }
        }
        let min_rtt_us = last["TCPInfo"]["MinRTT"].as_f64().unwrap();
        assert!((20e3..45e3).contains(&min_rtt_us), "{min_rtt_us}");
    }
}

/// The rates of a Run, by direction.
fn rates(run: &str) -> Vec<(String, f64)> {
    let run: Value = serde_json::from_str(run).unwrap_or_else(|error| panic!("{error}: {run}"));
    let all = run["measurements"].as_array().unwrap().iter();
    all.filter(|m| m["kind"] == "throughput")
        .map(|m| {
            let direction = m["result"]["direction"].as_str().unwrap().to_owned();
            (direction, m["result"]["bps"].as_f64().unwrap())
        })
        .collect()
}

/// `plumb rate` against plumb's own server and those of others.
fn rate() {
    let mut network = Network::served_line(LINE, LINE);
    network.service("server", &["/usr/bin/python3", NDT7, "serve", "4444"], 4444);
    let rate = |options: &str| format!("plumb rate {options} -t 3 --json 2> /dev/null");
    let answers = Answers::of(
        &network,
        [
            rate("server --protocol ndt7 --insecure"),
            rate("http://server:4444 --protocol ndt7"),
            rate("server --protocol nq --insecure"),
            rate("server --protocol http --insecure -P 2"),
            rate("'http://server:4043/__down?bytes=3000000' --protocol http"),
        ],
    );
    for (run, expected) in answers.all.iter().zip([2, 2, 2, 2, 1]) {
        let rates = rates(run);
        assert_eq!(rates.len(), expected, "{run}");
        for (direction, bps) in rates {
            answers.is_about(bps, &direction);
        }
    }
}

/// What goes wrong is said, and how it may be put right.
fn refusals() {
    let network = Network::served_line(LINE, LINE);
    let refused = |options: &str| format!("{{ plumb rate {options} -t 1 2>&1 | tail -1; }}");
    let answers = Answers::of(
        &network,
        [
            refused("server --protocol nq"),
            refused("server --protocol ndt7 --insecure --both"),
            refused("server:7586 --protocol nq --insecure"),
            refused("http://server:4043/nothing --protocol http"),
            refused("server --protocol nq --insecure -u -b 10M"),
        ],
    );
    let [certificate, both, none, missing, udp] = &answers.all;
    for (answer, expected) in [
        (certificate, "--insecure"),
        (
            both,
            "NDT7 has no test of several connections, or of both directions",
        ),
        (none, "TLS handshake failed"),
        (missing, "HTTP 404"),
        (udp, "networkQuality has no test with datagrams"),
    ] {
        assert!(answer.contains(expected), "{answer}");
    }
}

/// A check against a server of others finds what the line has, and clears nothing.
pub(crate) fn a_check_against_a_web_server_names_the_queue() {
    let uplink = r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "600ms" } }, { type = "delay", delay = "10ms" }"#;
    let network = Network::served_line(uplink, LINE);
    let run = network.measured(&["check", "server", "--protocol", "nq", "--insecure"]);
    let mut findings = run.run.findings.iter();
    let first = findings.find(|f| !is_about_the_machine(f)).unwrap();
    assert_eq!(first.cause.name(), "bufferbloat-up", "{}", first.summary);
    let verdict = run.run.verdict.as_ref().unwrap();
    let missing: Vec<&str> = verdict
        .not_measured
        .iter()
        .map(|n| n.what.as_str())
        .collect();
    assert!(
        missing
            .iter()
            .any(|what| what.contains("retransmissions and stalls of the download")),
        "{missing:?}"
    );
    assert!(
        run.run
            .notes
            .iter()
            .any(|note| note.contains("a second one in another network"))
    );
}

#[test]
fn its_clients_and_servers_measure_the_line() {
    side_by_side(&[&curl, &ndt7_client, &rate]);
}

#[test]
fn what_a_web_server_cannot_is_said() {
    refusals();
}
