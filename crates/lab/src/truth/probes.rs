//! A Run's probes against the links' records of the very same packets.

use std::collections::{HashMap, HashSet};

use plumb_model::distribution::Distribution;
use plumb_model::run::{Measurement, Run};
use plumb_wire::probe_key::ProbeKey;
use serde_json::Value;

use super::Deviation;
use crate::stats::LabStats;

/// Bounds on what a probe's round trip may add to the time that the links recorded for the very
/// same packets: the stacks and schedulers of four namespaces on one machine.
const PROBE_ERROR_P50_S: f64 = 0.0003;
/// The same for one probe in twenty.
const PROBE_ERROR_P95_S: f64 = 0.002;

/// A probe, as it is called in a Run: protocol, identifier, sequence number.
type Key = (&'static str, u64, u64);

/// What the links did with a probe and its answer.
#[derive(Default)]
struct Passage {
    transit_s: f64,
    /// Whether a link took it and did not give it on.
    lost: bool,
}

fn passages(stats: &LabStats) -> HashMap<Key, Passage> {
    let mut passages: HashMap<Key, Passage> = HashMap::new();
    for way in stats.links.values().flat_map(|ways| ways.values()) {
        let mut seen = HashSet::new();
        for probe in &way.probes {
            let key = match probe.key {
                ProbeKey::Icmp { id, seq } => ("icmp", u64::from(id), u64::from(seq)),
                ProbeKey::Udp { session, seq } => ("udp", u64::from(session), u64::from(seq)),
            };
            // Of several copies the first is the one that is measured.
            if !seen.insert(key) {
                continue;
            }
            let passage = passages.entry(key).or_default();
            match probe.left {
                Some(left) => passage.transit_s += (left - probe.entered).as_secs_f64(),
                None => passage.lost = true,
            }
        }
    }
    passages
}

/// The round trips of all probes of a Run, `None` for what was lost.
fn round_trips(run: &Run) -> HashMap<Key, Option<f64>> {
    let mut round_trips = HashMap::new();
    for measurement in &run.measurements {
        // A ping has one series, whatever its protocol; a load phase has one for each.
        let own = match measurement.series.contains_key("rtt_icmp") {
            true => "rtt_icmp",
            false => "rtt",
        };
        for (protocol, series) in [("udp", "rtt"), ("icmp", own)] {
            let Some(series) = measurement.series.get(series) else {
                continue;
            };
            let number = |name: &str| {
                measurement
                    .params
                    .get(&format!("{protocol}_{name}"))
                    .and_then(Value::as_u64)
            };
            let (Some(id), Some(first)) = (number("id"), number("first_seq")) else {
                continue;
            };
            for (seq, rtt) in (first..).zip(&series.values) {
                round_trips.entry((protocol, id, seq)).or_insert(*rtt);
            }
        }
    }
    round_trips
}

/// Round trips less what the links recorded for the same packets.
pub fn probe_errors(run: &Run, stats: &LabStats) -> Vec<f64> {
    let passages = passages(stats);
    round_trips(run)
        .into_iter()
        .filter_map(|(key, rtt)| Some(rtt? - passages.get(&key)?.transit_s))
        .collect()
}

/// A probe is lost in a Run if, and only if, a link lost it.
fn losses(run: &Run, stats: &LabStats) -> Option<Deviation> {
    let passages = passages(stats);
    let wrong: Vec<Key> = round_trips(run)
        .into_iter()
        .filter(|(key, rtt)| {
            let lost = passages.get(key).map(|passage| passage.lost);
            lost.is_some_and(|lost| lost != rtt.is_none())
        })
        .map(|(key, _)| key)
        .collect();
    let (protocol, _, seq) = wrong.iter().min()?;
    Some(Deviation {
        what: "a probe is lost if, and only if, a link lost it".to_owned(),
        found: format!(
            "{} probes differ, the first of them {protocol} number {seq}",
            wrong.len()
        ),
    })
}

/// Whether the Run's probes took as long as the links recorded, and were lost where they were.
pub(super) fn check(run: &Run, stats: &LabStats) -> Vec<Deviation> {
    let mut deviations = errors(run, stats);
    deviations.extend(losses(run, stats));
    deviations
}

fn errors(run: &Run, stats: &LabStats) -> Vec<Deviation> {
    let what = |which: &str, bound: f64| {
        format!("{which} of a probe's round trip beyond its recorded transits is at most {bound} s")
    };
    let identified =
        |m: &Measurement| m.params.contains_key("udp_id") || m.params.contains_key("icmp_id");
    if !run.measurements.iter().any(identified) {
        return Vec::new();
    }
    let Some(errors) = Distribution::of(probe_errors(run, stats)) else {
        return vec![Deviation {
            what: "probes are found in the links' records".to_owned(),
            found: "none of the Run's probes is there".to_owned(),
        }];
    };
    [
        ("median", errors.p50, PROBE_ERROR_P50_S),
        ("p95", errors.p95, PROBE_ERROR_P95_S),
    ]
    .into_iter()
    .filter(|(_, value, bound)| value.abs() > *bound)
    .map(|(which, value, bound)| Deviation {
        what: what(which, bound),
        found: format!("{value} s over {} probes", errors.count),
    })
    .collect()
}
