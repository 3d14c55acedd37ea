//! `plumb rate --quic` on a line whose rate and losses are known.

use crate::common::network::Network;
use plumb_model::results::Outcome;

const LINE_BPS: f64 = 20e6;

/// A queue that overflows; 40 ms there and back.
const WAY: &str = r#"{ type = "shaper", rate = "20mbit", queue = { type = "fifo", limit = "100ms" } }, { type = "delay", delay = "20ms" }"#;

const UDP: u64 = 17;

#[test]
fn quic_carries_what_the_line_does_and_loses_what_it_drops() {
    let command = ["rate", "server", "--quic", "--duration", "4s"];
    let (run, lines) = Network::served_line(WAY, WAY).logged(&command);
    assert_eq!(run.measurements.len(), 2);
    for measurement in &run.measurements {
        let Outcome::Quic(result) = &measurement.outcome else {
            panic!("{measurement:?}")
        };
        assert_eq!((result.protocol.name(), &*result.cc), ("quic", "cubic"));
        let stream = &result.streams[0];
        assert_eq!((stream.dropped_here, &stream.error), (Some(0), &None));
        let sender = stream.sender.as_ref().unwrap();
        // Discovery has found the path's MTU of 1500 bytes, less some that it does not look closer for.
        assert!((1400..=1472).contains(&sender.datagram_bytes), "{sender:?}");
        // IP and UDP, and QUIC's own: flags, a connection id of 8 bytes, a packet number, the head of a
        // stream frame and 16 bytes of authentication.
        let payload = sender.datagram_bytes as f64 - 38.0;
        let expected = LINE_BPS * payload / (sender.datagram_bytes as f64 + 28.0);
        let ratio = result.steady_bps.unwrap() / expected;
        assert!((0.98..1.02).contains(&ratio), "{ratio}: {result:?}");
        let handshake_s = stream.handshake_s.unwrap();
        assert!((0.040..0.080).contains(&handshake_s), "{handshake_s}");
        let min_rtt_s = sender.min_rtt_s.unwrap();
        assert!((0.040..0.041).contains(&min_rtt_s), "{min_rtt_s}");
        assert!(sender.max_rtt_s.unwrap() > 0.100, "{sender:?}");

        let way = result.direction.name();
        let dropped = lines.iter().filter(|line| {
            line["way"] == way && line["protocol"] == UDP && line.get("dropped").is_some()
        });
        let dropped: u64 = dropped.map(|line| line["packets"].as_u64().unwrap()).sum();
        // What was dropped within the last round trip is not known to be lost.
        assert!(
            dropped > 0 && sender.lost_packets <= dropped && dropped - sender.lost_packets <= 60,
            "{dropped} dropped: {sender:?}"
        );
    }
}

/// Upwards this end knows what it sent, repetitions included; downwards what came.
#[test]
fn bytes_of_quic_are_sent_or_arrive() {
    for (way, words) in [("--up", "had been sent"), ("--down", "had arrived")] {
        let command = ["rate", "server", "--quic", way, "--bytes", "2MB"];
        let run = Network::served_line(WAY, WAY).measured(&command).run;
        let notes = run.notes.join(" ");
        assert!(notes.contains(&format!("2.00 MB {words}")), "{notes}");
    }
}
