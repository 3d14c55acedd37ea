//! What the tests of rules share.

#![allow(clippy::unwrap_used)]

use plumb_model::context::{Context, Phase};
use plumb_model::finding::Finding;
use plumb_model::results::Outcome;
use plumb_model::run::{HostFacts, Measurement, Run};
use serde_json::json;

use crate::experiment::Stream;
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
    })
}

/// What the rules of all causes find.
pub(crate) fn found_by_any(outcome: Outcome) -> Vec<Finding> {
    found(causes::found, outcome)
}

/// Records what became of an experiment: shares lost, and seconds that packets waited.
pub(crate) fn made(run: &mut Run, stream: Stream, sent: u64, lost_ratio: f64, queue_s: f64) {
    let bps = stream.pps * f64::from(stream.payload_bytes) * 8.0;
    let lost = (sent as f64 * lost_ratio) as u64;
    let spread = json!({
        "count": sent, "min": 0.0, "mean": queue_s, "stddev": 0.0, "p5": queue_s, "p25": queue_s, "p50": queue_s, "p75": queue_s,
        "p90": queue_s, "p95": queue_s, "p99": queue_s, "p999": queue_s, "max": queue_s
    });
    let result = json!({
        "direction": stream.direction.name(), "stream": 0, "pattern": "constant", "payload_bytes": stream.payload_bytes,
        "asked_bps": bps, "gso_segments": 1, "gro": false, "bps": bps * (1.0 - lost_ratio),
        "sender": { "sent": sent, "sent_bytes": 0, "missed": 0, "refused": 0, "lateness_s": null },
        "receiver": {
            "received": sent - lost, "received_bytes": 0, "lost": lost, "loss_ratio": lost_ratio,
            "losses": { "periods": 0, "period_length": null, "distance": null }, "duplicates": 0,
            "reordering": { "reordered": 0, "reordered_ratio": 0.0, "extent": null, "late_s": null, "density": [], "density_threshold": 8 },
            "too_late": 0, "jitter_s": null, "ipdv_s": null, "pdv_s": spread,
            "ecn": { "not_ect": 0, "ect1": 0, "ect0": 0, "ce": 0 }, "dropped_here": 0, "lost_on_path": lost,
            "receive_buffer_bytes": null
        },
        "one_way_delay": null, "cpu": { "local_ratio": 0.0, "remote_ratio": null }, "error": null
    });
    let mut stream_made = measurement(Outcome::Udp(Box::new(
        serde_json::from_value(result).unwrap(),
    )));
    stream_made.id = format!("experiment{}", run.measurements.len());
    stream_made.context = Context {
        experiment: Some(stream.experiment),
        ..Context::phase(Phase::from(stream.direction))
    };
    run.measurements.push(stream_made);
}
