//! Reading Runs of the first version, in which `params` held, by name, what is [`Context`](crate::context) now.
//!
//! What a first version never wrote stays absent; what does not have the shape that it wrote is left where it
//! was, so that reading the result fails with its name.

use serde_json::{Map, Value, json};

/// What a document of this version says that it is.
pub(super) const SCHEMA: &str = "plumb.run/1";

/// Names of [`crate::context::LoadFlow`] that the first version had too.
const OF_FLOW: [&str; 9] = [
    "protocol",
    "cc",
    "dscp",
    "window_bytes",
    "mss_bytes",
    "pacing_bps",
    "background",
    "far_disk",
    "tls",
];

/// What belongs to the load and not to its flows.
const OF_LOAD: [&str; 5] = ["shape", "stream_classes", "byte_limit_bytes", "from", "to"];

/// The same document as of the present version, which calls itself `present`.
pub(super) fn upgrade(mut run: Value, present: &str) -> Value {
    if let Some(schema) = run.get_mut("schema") {
        *schema = present.into();
    }
    // Its grade was of latency, and was called so from the second version on.
    if let Some(verdict) = run.get_mut("verdict").and_then(Value::as_object_mut)
        && let Some(grade) = verdict.remove("grade")
    {
        verdict.insert("latency_grade".to_owned(), grade);
    }
    let measurements = run.get_mut("measurements").and_then(Value::as_array_mut);
    for measurement in measurements.into_iter().flatten() {
        let Some(measurement) = measurement.as_object_mut() else {
            continue;
        };
        if let Some(Value::Object(params)) = measurement.remove("params") {
            let (context, settings) = split(params);
            measurement.insert("context".to_owned(), context);
            measurement.insert("settings".to_owned(), settings);
        }
    }
    run
}

fn split(mut params: Map<String, Value>) -> (Value, Value) {
    let mut context = Map::new();
    for name in ["phase", "applications"] {
        context.extend(params.remove(name).map(|value| (name.to_owned(), value)));
    }
    let probes: Vec<Value> = ["udp", "icmp", "stamp"]
        .into_iter()
        .filter_map(|protocol| {
            let id = params.remove(&format!("{protocol}_id"))?;
            let first_seq = params.remove(&format!("{protocol}_first_seq"))?;
            Some(json!({ "protocol": protocol, "id": id, "first_seq": first_seq }))
        })
        .collect();
    if !probes.is_empty() {
        context.insert("probes".to_owned(), probes.into());
    }
    // Whatever asked for streams for a time was a load; applications alone were said to have none of it.
    let streams = params.get("streams").and_then(Value::as_u64);
    if streams.is_some() && params.contains_key("duration_s") {
        let load = load(&mut params);
        if streams > Some(0) {
            context.insert("load".to_owned(), load);
        }
    }
    (Value::Object(context), Value::Object(params))
}

fn load(params: &mut Map<String, Value>) -> Value {
    let mut load = Map::new();
    for name in ["streams", "duration_s"].into_iter().chain(OF_LOAD) {
        load.extend(params.remove(name).map(|value| (name.to_owned(), value)));
    }
    let streams = load.get("streams").cloned().unwrap_or_default();
    let flows = match params.remove("flows") {
        Some(Value::Array(groups)) => groups.into_iter().map(group).collect(),
        _ if params.contains_key("protocol") => {
            let mut flow = std::mem::take(params);
            flow.insert("streams".to_owned(), streams);
            vec![group(Value::Object(flow))]
        }
        _ => Vec::new(),
    };
    load.insert("flows".to_owned(), flows.into());
    Value::Object(load)
}

/// A group of streams, in which the settings stood beside the options.
fn group(group: Value) -> Value {
    let Value::Object(group) = group else {
        return group;
    };
    let mut flow = Map::new();
    let mut options = Map::new();
    for (name, value) in group {
        match name.as_str() {
            known if known == "streams" || OF_FLOW.contains(&known) => flow.insert(name, value),
            _ => options.insert(name, value),
        };
    }
    flow.insert("options".to_owned(), Value::Object(options));
    Value::Object(flow)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::context::{Context, LoadShape, Phase};
    use crate::protocol::Protocol;

    fn context(params: Value) -> (Context, Value) {
        let Value::Object(params) = params else {
            unreachable!("the tests give objects")
        };
        let (context, settings) = split(params);
        (serde_json::from_value(context).unwrap(), settings)
    }

    #[test]
    fn what_the_first_version_kept_by_name_is_context() {
        let (known, settings) = context(json!({
            "phase": "up", "streams": 4, "shape": "rrul", "stream_classes": ["BK", "BE", "CS5", "EF"],
            "duration_s": 15.0, "cc": "cubic", "protocol": "tcp", "no_delay": true,
            "byte_limit_bytes": 500_000_000, "udp_id": 7, "udp_first_seq": 250, "applications": ["voice"]
        }));
        assert_eq!(known.phase, Some(Phase::Up));
        let load = known.load.unwrap();
        assert_eq!((load.streams, load.shape), (4, LoadShape::Rrul));
        assert_eq!(load.flows[0].protocol, Protocol::Tcp);
        assert_eq!(load.flows[0].cc.as_deref(), Some("cubic"));
        assert_eq!(load.flows[0].options["no_delay"], true);
        assert_eq!((known.probes[0].id, known.probes[0].first_seq), (7, 250));
        assert_eq!(settings, json!({}));
    }

    #[test]
    fn a_grade_was_of_latency() {
        let run = upgrade(
            json!({ "verdict": { "headline": "Fine.", "grade": "A+" } }),
            "plumb.run/2",
        );
        let verdict: crate::finding::Verdict =
            serde_json::from_value(run["verdict"].clone()).unwrap();
        assert_eq!(verdict.latency_grade, Some(crate::grade::Grade::APlus));
    }

    #[test]
    fn what_is_no_context_is_a_setting() {
        let (known, settings) = context(json!({ "phase": "idle", "interval_s": 0.2 }));
        assert_eq!(known, Context::phase(Phase::Idle));
        assert_eq!(settings, json!({ "interval_s": 0.2 }));
    }
}
