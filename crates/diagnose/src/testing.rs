//! What the tests of rules share.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_model::finding::Finding;
use plumb_model::protocol::Protocol;
use plumb_model::results::Outcome;
use plumb_model::results::port::PortState;
use plumb_model::run::{HostFacts, Measurement};

use crate::{Case, causes};

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
    })
}

/// What the rules of all causes find.
pub(crate) fn found_by_any(outcome: Outcome) -> Vec<Finding> {
    found(causes::found, outcome)
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
    })
}

/// Probes to 192.0.2.9, each answered after the same time.
fn ping(protocol: Protocol, address: &str, sent: u64, received: u64, rtt_s: f64) -> Measurement {
    let ping = serde_json::json!({ "kind": "ping", "result": {
        "protocol": protocol, "address": address, "sent": sent, "received": received,
        "loss_ratio": (sent - received) as f64 / sent as f64, "duplicates": 0, "reordered": 0, "send_errors": 0,
        "dropped_here": 0, "rtt_s": Distribution::of(vec![rtt_s; received as usize]), "lateness_s": null,
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
