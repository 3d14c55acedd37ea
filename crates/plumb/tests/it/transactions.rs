//! Transactions and encrypted streams in the laboratory, where the round trip, the losses and the
//! rate are known.

use crate::common::network::Network;
use crate::common::{late_s, side_by_side};
use plumb_model::distribution::Distribution;
use plumb_model::protocol::Protocol;
use plumb_model::results::{Outcome, TransactionsResult};

/// Half of the round trip.
const DELAY: &str = r#"{ type = "delay", delay = "10ms" }"#;

const RTT_S: f64 = 0.020;

/// What system calls and the links' own microseconds add to each round trip: in virtual time computing takes none.
const SLACK_S: f64 = 0.0002;

/// Whether all but a few that were lost take their round trips and nothing more.
fn are_round_trips(times: Distribution, round_trips: f64) {
    let (least, most) = (round_trips * RTT_S, round_trips * (RTT_S + SLACK_S));
    assert!(
        (least..most).contains(&times.min) && times.p95 < most,
        "not {round_trips} round trips: {times:?}"
    );
}

/// What is lost upwards is said by number, of one kind of packet.
fn transactions(lost: (&str, &str), options: &[&str]) -> TransactionsResult {
    measured(lost, options).0
}

/// The same, and by how much the laboratory was late.
fn measured((kind, numbers): (&str, &str), options: &[&str]) -> (TransactionsResult, f64) {
    let lost = format!(r#"{{ type = "index_loss", packets = [{numbers}], match = "{kind}" }}"#);
    let line = Network::served_line(&format!("{lost}, {DELAY}"), DELAY);
    let command = [&["transactions", "server", "--duration", "3s"], options].concat();
    let run = line.measured(&command).run;
    let [measurement] = run.measurements.as_slice() else {
        panic!("{:?}", run.measurements)
    };
    match &measurement.outcome {
        Outcome::Transactions(result) => (result.clone(), late_s(&run)),
        other => panic!("{other:?}"),
    }
}

/// Beyond the last packet of any test.
const NOTHING: (&str, &str) = ("icmp", "100000");

#[test]
fn transactions_are_told_as_the_link_lets_them_be() {
    // netperf's TCP_RR and TCP_CRR with -r 1,1, and the same over UDP and TLS.
    side_by_side(&[
        &|| one_after_the_other(&["--streams=1"], 1.0),
        &|| one_after_the_other(&["--udp"], 1.0),
        &|| one_after_the_other(&["--tls"], 1.0),
        &|| one_after_the_other(&["--connect"], 2.0),
        &|| one_after_the_other(&["--connect", "--tls"], 3.0),
        &streams_add_up,
        &a_lost_datagram_is_a_failure,
        &a_lost_syn_shows_in_connecting_alone,
        &what_waits_for_its_turn_counts_from_when_it_was_due,
    ]);
}

/// The rate is one over the time that each takes, which is that of its round trips; a busy machine takes longer for some.
fn one_after_the_other(options: &[&str], round_trips: f64) {
    let result = transactions(NOTHING, options);
    assert_eq!(
        (result.failed, result.error.as_deref()),
        (0, None),
        "{options:?}"
    );
    are_round_trips(result.latency_s.unwrap(), round_trips);
    let parts = [result.connect_s, result.tls_handshake_s, result.response_s];
    for times in parts.into_iter().flatten() {
        are_round_trips(times, 1.0);
    }
    at_once(&result, 1.0);
}

fn streams_add_up() {
    let four = transactions(NOTHING, &["--streams", "4"]);
    are_round_trips(four.latency_s.unwrap(), 1.0);
    at_once(&four, 4.0);
}

/// Whether so many were under way all the time, but for the last, which the end of the phase cut off.
fn at_once(result: &TransactionsResult, streams: f64) {
    let mean_s = result.latency_s.unwrap().mean;
    let under_way = result.rate_tps * mean_s;
    let cut_off = streams * mean_s / 3.0;
    assert!(
        (0.99 * streams - cut_off..1.01 * streams).contains(&under_way),
        "{under_way} of {streams}: {result:?}"
    );
}

fn a_lost_datagram_is_a_failure() {
    // Three datagrams, the first of all being the request for the cookie.
    let (result, late_s) = measured(("udp", "10, 20, 30"), &["--udp", "--streams", "4"]);
    assert_eq!(result.failed, 3, "{result:?}");
    assert!(result.error.is_some_and(|why| why.contains("1 s")));
    assert!(result.latency_s.unwrap().max < 0.1 + late_s);
}

fn a_lost_syn_shows_in_connecting_alone() {
    // The SYNs of the control connection and of the stream itself come before those that count. A
    // lost one is retransmitted after a second (RFC 6298), which shows in connecting alone.
    let result = transactions(("syn", "5"), &["--connect"]);
    assert_eq!(result.failed, 0, "{result:?}");
    let connect = result.connect_s.unwrap();
    assert!(
        (1.0 + RTT_S..1.1 + RTT_S).contains(&connect.max),
        "{connect:?}"
    );
    assert!(connect.p99 >= connect.p50 && result.response_s.unwrap().max < 0.1);
}

fn what_waits_for_its_turn_counts_from_when_it_was_due() {
    // On a schedule, those that had to wait for it count from when they were due: the third, at
    // 0.4 s, takes 1.04 s, and the six after it begin late, all but the last by more than 0.1 s.
    let result = transactions(("syn", "5"), &["--connect", "--per-second", "5"]);
    assert!((5..=7).contains(&result.delayed), "{result:?}");
    assert!(result.latency_s.unwrap().p75 > 0.1, "{result:?}");
}

#[test]
fn encrypted_streams_carry_what_the_link_leaves_for_payload() {
    let way = format!(
        r#"{{ type = "shaper", rate = "50mbit", framing = "ethernet", queue = {{ type = "fifo", limit = "250kB" }} }}, {DELAY}"#
    );
    let command = ["rate", "server", "--tls", "--duration", "8s"];
    let run = Network::served_line(&way, &way).measured(&command).run;
    let rates: Vec<_> = run
        .measurements
        .iter()
        .filter_map(|m| match &m.outcome {
            Outcome::Throughput(result) => Some(result),
            _ => None,
        })
        .collect();
    assert_eq!(rates.len(), 2);
    // Segments of 1448 bytes in frames of 1538, and records of 16384 bytes with 22 more.
    let most = 50e6 * 1448.0 / 1538.0 * 16384.0 / 16406.0;
    for rate in rates {
        let steady = rate.steady_bps.unwrap();
        assert!(
            (0.98 * most..=1.001 * most).contains(&steady),
            "{steady} of {most}"
        );
        assert!(rate.bps <= most, "{} of {most}", rate.bps);
        assert_eq!(rate.protocol, Protocol::Tls);
        // One round trip and not two. How long it takes alone is held above: here the streams'
        // handshakes compete for two processors and the line.
        let handshake_s = rate.tls.as_ref().unwrap().handshake_s.min;
        assert!((RTT_S..2.0 * RTT_S).contains(&handshake_s), "{handshake_s}");
    }
}
