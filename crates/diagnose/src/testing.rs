//! What the tests of rules share.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use plumb_model::context::{Load, Phase};
use plumb_model::distribution::Distribution;
use plumb_model::finding::Finding;
use plumb_model::protocol::Protocol;
use plumb_model::results::port::PortState;
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::{HostFacts, Measurement};

use crate::{Case, rules};

/// A measurement that had this outcome.
pub(crate) fn measurement(outcome: Outcome) -> Measurement {
    Measurement {
        id: "m1".to_owned(),
        outcome,
        at_s: 0.0,
        duration_s: 1.0,
        context: Default::default(),
        ended: Default::default(),
        settings: Default::default(),
        series: Default::default(),
    }
}

/// What a rule finds where that is all that was measured, and nothing is known of the hosts.
pub(crate) fn found(rule: impl Fn(&Case<'_>) -> Vec<Finding>, outcome: Outcome) -> Vec<Finding> {
    rule(&Case {
        measurements: &[measurement(outcome)],
        local: &HostFacts::default(),
        far: None,
        asked: None,
        log: None,
    })
}

/// What the rules of all causes find.
pub(crate) fn found_by_any(outcome: Outcome) -> Vec<Finding> {
    found(rules::found, outcome)
}

/// What a rule finds in those measurements, where nothing is known of the hosts.
pub(crate) fn found_in(
    rule: impl Fn(&Case<'_>) -> Vec<Finding>,
    measurements: &[Measurement],
) -> Vec<Finding> {
    rule(&Case {
        measurements,
        local: &HostFacts::default(),
        far: None,
        asked: None,
        log: None,
    })
}

/// Probes to 192.0.2.9, each answered after the same time.
fn ping(protocol: Protocol, address: &str, sent: u64, received: u64, rtt_s: f64) -> Measurement {
    let rtt_s = Distribution::of(vec![rtt_s; received as usize]);
    answered(protocol, address, sent, received, rtt_s)
}

/// Probes whose round trips were spread like that.
fn answered(
    protocol: Protocol,
    address: &str,
    sent: u64,
    received: u64,
    rtt_s: Option<Distribution>,
) -> Measurement {
    let ping = serde_json::json!({ "kind": "ping", "result": {
        "protocol": protocol, "address": address, "sent": sent, "received": received,
        "loss_ratio": (sent - received) as f64 / sent as f64, "duplicates": 0, "reordered": 0, "send_errors": 0,
        "dropped_here": 0, "rtt_s": rtt_s, "lateness_s": null,
        "timestamps": "kernel",
    }});
    measurement(serde_json::from_value(ping).unwrap())
}

/// Probes of the idle path to 192.0.2.9.
pub(crate) fn idle(protocol: Protocol, sent: u64, received: u64, rtt_s: f64) -> Measurement {
    let mut idle = ping(protocol, "192.0.2.9", sent, received, rtt_s);
    idle.context.phase = Some(Phase::Idle);
    idle
}

/// Questions to a name server.
pub(crate) fn asked(address: &str, sent: u64, received: u64, rtt_s: f64) -> Measurement {
    ping(Protocol::Dns, address, sent, received, rtt_s)
}

/// Five connections to TCP port 7586 of an address, of which so many came about, each after the same time.
pub(crate) fn connects(
    address: &str,
    connected: u64,
    each_s: f64,
    state: PortState,
) -> Measurement {
    answering(address, connected, each_s, state, None)
}

/// The same with what HTTP answered.
pub(crate) fn answering(
    address: &str,
    connected: u64,
    each_s: f64,
    state: PortState,
    http_status: Option<u16>,
) -> Measurement {
    let port = serde_json::json!({ "kind": "port", "result": {
        "address": address, "port": 7586, "tried": 5, "connected": connected, "error": null, "state": state,
        "connect_s": Distribution::of(vec![each_s; connected as usize]), "http_status": http_status,
    }});
    measurement(serde_json::from_value(port).unwrap())
}

/// These counters of this machine grew in a second.
pub(crate) fn counting(grown: &[(&str, u64)]) -> Measurement {
    let grown = grown.iter();
    let grown: BTreeMap<&str, u64> = grown.copied().collect();
    let rates = serde_json::json!({ "kind": "host_rates", "result": {
        "interval_s": 1.0, "intervals": 1, "per_s": {}, "grown": grown,
    }});
    measurement(serde_json::from_value(rates).unwrap())
}

/// What a rule finds where that is all that was measured.
pub(crate) fn counted(
    rule: impl Fn(&Case<'_>) -> Vec<Finding>,
    grown: &[(&str, u64)],
) -> Vec<Finding> {
    found_in(rule, &[counting(grown)])
}

/// A hundred values from the smallest on, of which a quarter are at least so much above it.
fn quarter_above(min: f64, above: f64) -> Distribution {
    let values = (0..100).map(|n| min + above * f64::from(n) / 75.0);
    Distribution::of(values).unwrap()
}

/// Probes of the idle path, a quarter of which took so much longer than the fastest.
pub(crate) fn idle_spread(rtt_s: f64, above_s: f64) -> Measurement {
    idle_of(quarter_above(rtt_s, above_s))
}

/// Probes of the idle path whose round trips were spread like that.
pub(crate) fn idle_of(rtt_s: Distribution) -> Measurement {
    let mut idle = answered(
        Protocol::Udp,
        "192.0.2.9",
        rtt_s.count,
        rtt_s.count,
        Some(rtt_s),
    );
    idle.context.phase = Some(Phase::Idle);
    idle
}

/// Probes beside a download whose queue hardly grew, and of the gateway, to which a quarter of the idle round trips took so
/// much longer than the fastest.
pub(crate) fn beside_gateway(rtt_s: f64, above_s: f64) -> Measurement {
    beside_gateway_of(quarter_above(rtt_s, above_s), quarter_above(0.02, above_s))
}

/// The same where the idle round trips to the gateway, and on the whole path, were spread like that.
pub(crate) fn beside_gateway_of(idle: Distribution, path: Distribution) -> Measurement {
    let short = Distribution::of([0.001]).unwrap();
    let loaded = serde_json::json!({ "kind": "loaded_latency", "result": {
        "direction": "down", "protocol": "udp", "idle_rtt_s": path, "rtt_s": path, "increase_s": short,
        "loss_ratio": 0.0, "path": {
            "places": [{
                "place": "gateway", "address": "192.0.2.1", "method": "echo", "idle_rtt_s": idle, "rtt_s": idle,
                "increase_s": short, "loss_ratio": 0.0,
            }],
            "local_increase_s": short, "beyond_increase_s": short, "local_ratio": null,
        },
    }});
    let mut loaded = measurement(serde_json::from_value(loaded).unwrap());
    loaded.duration_s = 15.0;
    loaded
}

/// A load of 15 s that carried so much, which the network held back.
pub(crate) fn carrying(direction: Direction, bps: f64) -> Measurement {
    let load = serde_json::json!({ "kind": "throughput", "result": {
        "direction": direction, "protocol": "tcp", "bps": bps, "steady_bps": bps, "bytes": (bps * 15.0 / 8.0) as u64,
        "cc": "cubic", "streams": [],
        "tcp": {
            "retransmits": 0, "min_rtt_s": 0.02, "max_srtt_s": 0.02, "mss_bytes": 1448, "send_buffer_bytes": null,
            "max_in_flight_bytes": 2_000_000,
            "limited": { "rwnd_ratio": 0.0, "sndbuf_ratio": 0.0, "app_ratio": 0.0, "network_ratio": 1.0 },
        },
        "tcp_receiver": { "receive_buffer_bytes": null, "max_window_bytes": null },
        "cpu": { "local_ratio": 0.1, "remote_ratio": 0.1 },
    }});
    let mut load = measurement(serde_json::from_value(load).unwrap());
    load.duration_s = 15.0;
    load
}

/// A load of one stream that sends what is in that file.
pub(crate) fn from(file: &str) -> Load {
    Load {
        streams: 1,
        shape: Default::default(),
        stream_classes: Vec::new(),
        duration_s: 15.0,
        byte_limit_bytes: None,
        from: Some(file.to_owned()),
        to: None,
        flows: Vec::new(),
    }
}

/// So many objects of 10 kB a second, one after another.
pub(crate) fn objects(rate_tps: f64) -> Measurement {
    let objects = serde_json::json!({ "kind": "transactions", "result": {
        "transport": "tcp", "connect": false, "request_bytes": 10_000, "response_bytes": 64, "concurrency": 1,
        "offered_tps": null, "completed": 20, "failed": 0, "unfinished": 0, "delayed": 0, "rate_tps": rate_tps,
        "latency_s": Distribution::of([1.0 / rate_tps]), "connect_s": null, "tls_handshake_s": null, "response_s": null,
        "error": null, "cpu": { "local_ratio": 0.1, "remote_ratio": 0.1 },
    }});
    measurement(serde_json::from_value(objects).unwrap())
}
