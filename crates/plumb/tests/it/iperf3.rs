//! The real iperf3 against `plumb serve`, on a line whose rate is known.

use crate::common::network::{Network, taken_ratio};
use crate::common::side_by_side;
use plumb_model::results::udp::UdpResult;
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::Run;
use serde_json::Value;

/// Of each direction: 40 Mbit/s, 20 ms there and back.
const LINE: &str = r#"{ type = "shaper", rate = "40mbit", queue = { type = "fifo", limit = "40ms" } }, { type = "delay", delay = "10ms" }"#;

/// The same with a queue that overflows only above the rate: not after a machine stood still, when senders make up for it.
const DEEP: &str = r#"{ type = "shaper", rate = "40mbit", queue = { type = "fifo", limit = "1s" } }, { type = "delay", delay = "10ms" }"#;

/// What TCP carries of a line of 40 Mbit/s: 1448 of 1500 bytes.
const TCP_BPS: f64 = 40e6 * 1448.0 / 1500.0;

/// Two seconds of a queue of 40 ms that fills, and slow start.
const TOLERANCE: f64 = 0.06;

/// How long most tests last.
const LASTS_S: f64 = 2.0;

/// What iperf3 prints of tests, one after the other, and the share that the machine took from each of them at most.
fn tests<const N: usize>(network: &Network, options: [&str; N]) -> ([Value; N], f64) {
    let commands = options.map(|options| format!("iperf3 -c server -J {options}"));
    let (printed, stats) = network.script(&commands.join(" && echo , && "));
    let text = format!("[{printed}]");
    let all: Vec<Value> =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    for (one, options) in all.iter().zip(options) {
        assert_eq!(one.get("error"), None, "{options}: {one}");
    }
    (all.try_into().unwrap(), taken_ratio(&stats, LASTS_S))
}

/// A number of the result, by a JSON pointer.
fn number(result: &Value, pointer: &str) -> f64 {
    let found = result.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("{pointer} of {result}"))
}

fn is_about(bps: f64, expected_bps: f64, taken: f64) {
    assert!(
        (1.0 - TOLERANCE - taken..=1.0 + TOLERANCE).contains(&(bps / expected_bps)),
        "{bps} is not {expected_bps}, the machine took {taken}"
    );
}

/// Streams of TCP: both directions, side by side, with what is omitted, and by bytes. The client
/// has the responder's congestion control: the lab's default is Reno, which loses 200 segments in
/// slow start, and its share beside CUBIC.
fn tcp() {
    let network = Network::served_line(LINE, LINE);
    let ([up, down, both, omitted, bytes], taken) = tests(
        &network,
        [
            "-C cubic -t 2",
            "-t 2 -R",
            "-C cubic -t 2 --bidir -P 2",
            "-C cubic -t 2 -P 4 -O 1",
            "-n 5M -R -w 300K -M 1200 -S 0x20",
        ],
    );
    let received = "/end/sum_received/bits_per_second";
    is_about(number(&up, received), TCP_BPS, taken);
    is_about(number(&down, received), TCP_BPS, taken);
    // What the responder retransmitted; a queue that overflows made it.
    assert!(number(&down, "/end/sum_sent/retransmits") >= 0.0);
    // Acknowledgements of the other direction take a part.
    for pointer in [received, "/end/sum_received_bidir_reverse/bits_per_second"] {
        let bps = number(&both, pointer);
        assert!(
            (0.7 - taken..1.02).contains(&(bps / TCP_BPS)),
            "{pointer}: {bps}"
        );
    }
    is_about(number(&omitted, received), TCP_BPS, taken);
    let least = 5.0 * 1024.0 * 1024.0;
    assert!(number(&bytes, "/end/sum_received/bytes") >= least);
}

/// Streams of datagrams: below the rate nothing is lost, and above it what does not fit.
fn udp() {
    let ([up, down, both], taken) = tests(
        &Network::served_line(DEEP, DEEP),
        [
            "-t 2 -u -b 10M -l 1000",
            "-t 2 -u -b 10M -R --udp-counters-64bit",
            "-t 2 -u -b 5M --bidir -P 2",
        ],
    );
    for (result, expected) in [(&up, 10e6), (&down, 10e6), (&both, 10e6)] {
        assert_eq!(number(result, "/end/sum/lost_percent"), 0.0, "{result}");
        is_about(number(result, "/end/sum/bits_per_second"), expected, taken);
    }
    let network = Network::served_line(LINE, LINE);
    let ([above], taken) = tests(&network, ["-t 2 -u -b 80M -l 1400"]);
    // 1428 of the 1400 bytes that are counted; the queue holds 40 ms of it besides.
    let lost = number(&above, "/end/sum/lost_percent") / 100.0;
    let expected = 1.0 - 40e6 * (1400.0 / 1428.0) / 80e6;
    assert!(
        (lost - expected).abs() < 0.03 + taken,
        "{lost} is not {expected}, the machine took {taken}"
    );
}

/// plumb as the client of the real server, and of its own.
fn client() {
    let mut network = Network::served_line(LINE, LINE);
    network.service("server", &["iperf3", "--server", "--port", "5202"], 5202);
    // Both at once take longer to share: acknowledgements wait in the other direction's queue.
    let real = ["up -t 2", "down -t 2", "both -t 4 -P 2"].map(|direction| {
        format!("plumb rate server --protocol iperf3 --port 5202 --{direction} --json")
    });
    let own = "plumb rate server --protocol iperf3 -t 2 --json".to_owned();
    let busy = "{ iperf3 -c server -p 5202 -t 9 > /dev/null & sleep 1; \
                plumb rate server --protocol iperf3 --port 5202 -t 1 2>&1 | tail -1; wait; }"
        .to_owned();
    let commands: Vec<String> = real.into_iter().chain([own, busy]).collect();
    let (printed, stats) = network.script(&commands.join(" && echo '#' && "));
    let taken = taken_ratio(&stats, LASTS_S);
    let printed: Vec<&str> = printed.split('#').collect();
    let [up, down, both, own, busy] = printed.try_into().unwrap();
    let rates = |run: &str| -> Vec<(String, f64)> {
        let run: Value = serde_json::from_str(run).unwrap_or_else(|e| panic!("{e}: {run}"));
        let all = run.get("measurements").unwrap().as_array().unwrap().clone();
        let all = all.iter().filter(|m| m["kind"] == "throughput");
        let of = |m: &Value| {
            (
                m["result"]["direction"].to_string(),
                number(m, "/result/bps"),
            )
        };
        all.map(of).collect()
    };
    for run in [up, down] {
        let [(_, bps)] = rates(run).try_into().unwrap();
        is_about(bps, TCP_BPS, taken);
    }
    let of_both = rates(both);
    assert_eq!(of_both.len(), 2, "{both}");
    for (direction, bps) in of_both {
        assert!(
            (0.7 - taken..1.02).contains(&(bps / TCP_BPS)),
            "{direction}: {bps}"
        );
    }
    let of_own = rates(own);
    assert_eq!(of_own.len(), 2, "{own}");
    for (_, bps) in of_own {
        is_about(bps, TCP_BPS, taken);
    }
    assert!(
        busy.contains("iperf3 server on port 5202 is busy"),
        "{busy}"
    );
}

/// Of a Run, each direction of each stream of datagrams.
fn streams(run: &str) -> Vec<UdpResult> {
    let run = Run::from_json(run).unwrap_or_else(|error| panic!("{error}: {run}"));
    let measurements = run.measurements.into_iter();
    let streams = measurements.filter_map(|m| match m.outcome {
        Outcome::Udp(udp) => Some(*udp),
        _ => None,
    });
    streams.collect()
}

/// What a stream sent in its two seconds, where the sender says so: a busy machine leaves out what it cannot send in time.
fn sent_bps(udp: &UdpResult) -> Option<f64> {
    let sender = udp.sender.as_ref()?;
    Some(sender.sent_bytes as f64 * 8.0 / LASTS_S)
}

/// Datagrams of plumb's with both servers: below the rate nothing is lost but every eleventh packet, which the line loses.
fn datagrams() {
    let loses = format!(r#"{{ type = "periodic_loss", every = 11, match = "udp" }}, {DEEP}"#);
    let mut network = Network::line(DEEP, &loses);
    network.serves("server");
    network.service("server", &["iperf3", "--server", "--port", "5202"], 5202);
    for port in [5201, 5202] {
        let asks = format!("plumb rate server --protocol iperf3 --port {port} --udp -t 2 --json");
        let commands = ["--rate 10mbit", "--rate 5mbit --both -P 2"]
            .map(|options| format!("{asks} {options}"));
        let (printed, stats) = network.script(&commands.join(" && echo '#' && "));
        let taken = taken_ratio(&stats, LASTS_S);
        let [each, both] = printed
            .split('#')
            .map(streams)
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        for (of, asked_bps) in [(&each, 10e6), (&both, 5e6)] {
            assert!(matches!(of.len(), 2 | 4), "{of:?}");
            for (direction, expected) in [(Direction::Down, 1.0 / 11.0), (Direction::Up, 0.0)] {
                let streams = || of.iter().filter(|udp| udp.direction == direction);
                let receivers = || {
                    streams()
                        .map(|udp| udp.receiver.as_ref().unwrap_or_else(|| panic!("{printed}")))
                };
                let lost: u64 = receivers().map(|r| r.lost).sum();
                let received: u64 = receivers().map(|r| r.received).sum();
                let ratio = lost as f64 / (lost + received) as f64;
                assert!((ratio - expected).abs() < 0.005, "{ratio}: {printed}");
                let sent_bps: f64 = streams()
                    .map(|udp| sent_bps(udp).unwrap_or(asked_bps))
                    .sum();
                let bps: f64 = streams().map(|udp| udp.bps.unwrap()).sum();
                is_about(bps, sent_bps * (1.0 - expected), taken);
            }
        }
    }
}

/// The same above the rate: what does not fit is lost.
fn datagrams_above_the_rate() {
    let mut network = Network::served_line(LINE, LINE);
    network.service("server", &["iperf3", "--server", "--port", "5202"], 5202);
    for port in [5201, 5202] {
        let script = format!(
            "plumb rate server --protocol iperf3 --port {port} --udp -t 2 --json --rate 80mbit --up"
        );
        let (printed, stats) = network.script(&script);
        let taken = taken_ratio(&stats, LASTS_S);
        let [above] = streams(&printed).try_into().unwrap();
        let line_bps = 40e6 * 1400.0 / 1428.0;
        is_about(above.bps.unwrap(), line_bps, taken);
        let expected = 1.0 - line_bps / sent_bps(&above).unwrap();
        let receiver = above.receiver.unwrap();
        assert!(
            (receiver.loss_ratio - expected).abs() < 0.03 + taken,
            "{receiver:?}, the machine took {taken}"
        );
    }
}

/// No answer of a server to the beginning of a stream arrives, so that the first one is begun several times, in vain.
fn unanswered() {
    let loses = format!(r#"{{ type = "periodic_loss", every = 1, match = "udp" }}, {LINE}"#);
    let mut network = Network::line(LINE, &loses);
    network.serves("server");
    network.service("server", &["iperf3", "--server", "--port", "5202"], 5202);
    for port in [5201, 5202] {
        let script = format!(
            "plumb rate server --protocol iperf3 --port {port} --udp --up -P 2 -t 1 --rate 5mbit --json"
        );
        let (printed, _) = network.script(&script);
        let run = Run::from_json(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
        let mut streams = 0;
        for measurement in &run.measurements {
            let Outcome::Udp(udp) = &measurement.outcome else {
                continue;
            };
            let receiver = udp.receiver.as_ref().unwrap();
            assert_eq!(receiver.lost, 0, "port {port}: {printed}");
            assert!(receiver.received > 100, "port {port}: {printed}");
            streams += 1;
        }
        assert_eq!(streams, 2, "{printed}");
    }
}

#[test]
fn its_servers_are_measured_with() {
    side_by_side(&[&client, &datagrams, &datagrams_above_the_rate, &unanswered]);
}

#[test]
fn its_client_measures_the_line_in_every_mode() {
    side_by_side(&[&tcp, &udp]);
}

/// What plumb prints as iperf3 has iperf3's names and numbers, and lines come while it runs.
#[test]
fn what_is_printed_as_iperf3_has_its_names_and_numbers() {
    let network = Network::served_line(LINE, LINE);
    let forms = [
        ("-t 2", "-C cubic -t 2"),
        ("-t 2 -R", "-t 2 -R"),
        ("-t 2 --bidir", "-C cubic -t 2 --bidir"),
        ("-t 2 -u -b 10M -s 1000", "-t 2 -u -b 10M -l 1000"),
    ];
    for (own, theirs) in forms {
        let ([theirs], _) = tests(&network, [theirs]);
        let own = format!("plumb rate server -q -J {own}");
        let (printed, _) = network.script(&own);
        let printed: Value = serde_json::from_str(&printed).unwrap();
        for pointer in ["/start/test_start", "/end", "/intervals/0"] {
            let keys = |value: &Value| -> Vec<String> {
                let object = value.pointer(pointer).and_then(Value::as_object);
                object.map_or_else(Vec::new, |object| object.keys().cloned().collect())
            };
            // What iperf3 says only of a test that ran so is missing there.
            let known = [keys(&theirs), vec!["bidir".to_owned()]].concat();
            for key in keys(&printed) {
                assert!(known.contains(&key), "{own}: {pointer}: {key}: {theirs}");
            }
        }
        let rate = match own.contains("-u") {
            true => "/end/sum/bits_per_second",
            false => "/end/sum_received/bits_per_second",
        };
        let (ours, other) = (number(&printed, rate), number(&theirs, rate));
        assert!((ours / other - 1.0).abs() < 0.1, "{own}: {ours}, {other}");
        let second = number(&printed, "/intervals/0/sum/bits_per_second");
        assert!(second > 0.0 && second < 42e6, "{own}: {second}");
    }
    let (lines, _) = network.script("plumb rate server --up -t 2 -i 500ms");
    let lines: Vec<&str> = lines
        .lines()
        .take_while(|line| line.contains("uploading"))
        .collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines.iter().all(|line| line.ends_with("bit/s")),
        "{lines:?}"
    );
}
