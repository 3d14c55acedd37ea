//! The real irtt against `plumb serve`, on a line whose delay is known.

use crate::common::network::Network;
use crate::common::side_by_side;
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
        for (pointer, expected) in [
            ("/stats/rtt/median", 40.0),
            ("/stats/send_delay/median", 30.0),
            ("/stats/receive_delay/median", 10.0),
        ] {
            let found = ms(pointer);
            assert!((found - expected).abs() < 2.0, "{pointer}: {found}");
        }
        let sent = number(&results, "/stats/packets_sent");
        assert!(sent >= 45.0, "{sent}");
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
        let rtt_ms = number(&results, "/stats/rtt/median") / 1e6;
        assert!((rtt_ms - 40.0).abs() < 2.0, "{options}: {rtt_ms}");
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

#[test]
fn its_client_measures_both_delays() {
    side_by_side(&[&every_statistic, &keys]);
}
