//! The real irtt against `plumb serve`, and plumb against its server, on a line whose delay is known.

use crate::common::network::Network;
use crate::common::side_by_side;
use plumb_model::protocol::Protocol;
use plumb_model::results::Outcome;
use serde_json::Value;

/// There 30 ms, and back 10 ms: the two nodes of a lab have one clock.
const THERE: &str = r#"{ type = "delay", delay = "30ms" }"#;
const BACK: &str = r#"{ type = "delay", delay = "10ms" }"#;

fn network(key_file: Option<&str>) -> Network {
    let mut network = Network::line(THERE, BACK);
    let mut serve = vec!["plumb", "serve", "--quiet"];
    if let Some(file) = key_file {
        serve.extend(["--irtt-key-file", file]);
    }
    network.service("server", &serve, 7586);
    network
}

fn results(network: &Network, options: &str) -> Value {
    let command = format!("irtt client -q -o - {options} server");
    let (printed, _) = network.script(&command);
    let json = printed
        .find('{')
        .map(|start| &printed[start..])
        .unwrap_or_default();
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// A number of the statistics, by a JSON pointer.
fn number(results: &Value, pointer: &str) -> f64 {
    let found = results.pointer(pointer).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("{pointer} of {results}"))
}

/// Round trips, both delays, and what each end counted.
fn every_statistic() {
    let network = network(None);
    for options in [
        "-d 1s -i 20ms --stats=both",
        "-d 1s -i 20ms --stats=both -l 1000 -6 --dscp=0xb8",
    ] {
        let results = results(&network, options);
        let ms = |pointer: &str| number(&results, pointer) / 1e6;
        // The delays are constant: the least is theirs, what is more is the machine's.
        for (pointer, expected) in [
            ("/stats/rtt/min", 40.0),
            ("/stats/send_delay/min", 30.0),
            ("/stats/receive_delay/min", 10.0),
        ] {
            let found = ms(pointer);
            assert!((found - expected).abs() < 1.0, "{pointer}: {found}");
        }
        let sent = number(&results, "/stats/packets_sent");
        // Of 50: it leaves out what it cannot send in time.
        assert!(sent >= 30.0, "{sent}");
        for pointer in ["/stats/packets_received", "/stats/server_packets_received"] {
            assert_eq!(number(&results, pointer), sent, "{pointer}");
        }
    }
    // Midpoints have no residence time, and one clock no wall.
    for options in [
        "--tstamp=midpoint --clock=wall",
        "--tstamp=send",
        "--tstamp=none --stats=count",
    ] {
        let results = results(&network, &format!("-d 500ms -i 20ms {options}"));
        let (sent, received) = ("/stats/packets_sent", "/stats/packets_received");
        assert_eq!(
            number(&results, sent),
            number(&results, received),
            "{options}"
        );
        let rtt_ms = number(&results, "/stats/rtt/min") / 1e6;
        assert!((rtt_ms - 40.0).abs() < 1.0, "{options}: {rtt_ms}");
    }
}

/// A key that both have, and one that only the client has.
fn keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "secret\n").unwrap();
    let network = network(Some(file.to_str().unwrap()));
    let results = results(&network, "-d 500ms -i 20ms --hmac=secret");
    assert_eq!(
        number(&results, "/stats/packets_sent"),
        number(&results, "/stats/packets_received")
    );
    for wrong in ["--hmac=other", ""] {
        let command =
            format!("irtt client -d 500ms --timeouts=200ms,200ms {wrong} server 2>&1 || true");
        let (printed, _) = network.script(&command);
        assert!(printed.contains("OpenTimeout"), "{printed}");
    }
}

/// Both servers as the far end of `plumb owd`, on a line that loses one of nine packets there and of seven back, and on which
/// packets wait in one direction only.
fn servers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "secret\n").unwrap();
    let file = file.to_str().unwrap();
    let loses = |every: u32| {
        format!(r#"{{ type = "periodic_loss", every = {every}, first = 3, match = "udp" }}"#)
    };
    let mut network = Network::line(
        &format!("{}, {THERE}", loses(9)),
        &format!("{}, {BACK}", loses(7)),
    );
    let own = ["plumb", "serve", "--quiet", "--irtt-key-file", file];
    network.service("server", &own, 7586);
    // Probes come too fast for a limit where the machine stood still before: those that are measured with have none.
    let real = "irtt server -b :2113 --hmac=secret -i 0 > /dev/null & irtt server -b :2114 -i 0 > /dev/null & \
                irtt server -b :2115 --hmac=secret -i 20ms -d 4s > /dev/null & \
                exec plumb serve --quiet --port 7000 --without irtt --without stamp --without web --without iperf3";
    network.service("server", &["sh", "-c", real], 7000);
    let asks = "plumb owd --json --same-clock --protocol irtt -c 150 -i 20ms -W 2s";
    let commands = [
        format!("{asks} --key-file {file} server"),
        format!("{asks} --key-file {file} server:2113"),
        format!("{asks} --dscp 46 -s 700 server:2114"),
    ];
    let (printed, _) = network.script(&commands.join(" && echo '#' && "));
    for printed in printed.split('#') {
        let run = plumb_model::run::Run::from_json(printed).unwrap();
        let Outcome::Owd(owd) = &run.measurements[0].outcome else {
            panic!("{run:?}");
        };
        assert_eq!((owd.protocol, owd.far_counts), (Protocol::Irtt, true));
        let delays = [&owd.up, &owd.down].map(|way| way.delay.unwrap().delay_s.min);
        for (found, expected) in delays.into_iter().zip([0.030, 0.010]) {
            assert!((found - expected).abs() < 0.001, "{delays:?}");
        }
        // Of 150 there every ninth, and of those that arrive every seventh, less what was lost after the last answer.
        let lost = [&owd.up, &owd.down].map(|way| way.lost.unwrap());
        assert!((15..=17).contains(&lost[0]), "{owd:?}");
        assert!((17..=20).contains(&lost[1]), "{owd:?}");
        assert_eq!(owd.answered + lost[0] + lost[1] + owd.lost_unplaced, 150);
    }
    let refusals = [
        ("-c 10 -i 10ms --key-file", "one packet every 20ms"),
        ("-c 1000 -i 20ms --key-file", "ends sessions after 4s"),
    ];
    for (options, expected) in refusals {
        let command =
            format!("plumb owd --protocol irtt {options} {file} server:2115 2>&1 || true");
        let (printed, _) = network.script(&command);
        assert!(printed.contains(expected), "{printed}");
    }
    let (printed, _) = network.script("plumb ping --protocol irtt -c 1 server:2113 2>&1 || true");
    assert!(printed.contains("same key"), "{printed}");
}

#[test]
fn its_server_answers_owd() {
    side_by_side(&[&servers]);
}

#[test]
fn its_client_measures_both_delays() {
    side_by_side(&[&every_statistic, &keys]);
}
