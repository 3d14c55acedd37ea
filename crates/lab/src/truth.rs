//! Holding a Run against what the laboratory knows to be true.
//!
//! One pure function: a scenario, a Run made in it and the statistics of its links go in,
//! deviations come out.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use plumb_model::distribution::{Distribution, quantile_of_sorted};
use plumb_model::finding::Severity;
use plumb_model::results::RAMP_S;
use plumb_model::run::{Measurement, Run};
use plumb_wire::probe_key::ProbeKey;
use serde::Deserialize;
use serde_json::Value;

use crate::scenario::{LinkEnd, Scenario};
use crate::stats::{LabStats, WayStats};

/// Bounds on what a probe's round trip may add to the time that the links recorded for the very
/// same packets: the stacks and schedulers of four namespaces on one machine.
const PROBE_ERROR_P50_S: f64 = 0.0003;
/// The same for one probe in twenty.
const PROBE_ERROR_P95_S: f64 = 0.002;

/// What must be found in a scenario.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// Cause of the first finding.
    #[serde(default)]
    pub first_finding: Option<String>,
    /// Where the first finding is.
    #[serde(default)]
    pub first_finding_where: Option<String>,
    /// Causes that must be found.
    #[serde(default)]
    pub findings: Vec<String>,
    /// The most that any finding may matter.
    #[serde(default)]
    pub max_severity: Option<Severity>,
    /// Numbers.
    #[serde(default, rename = "value")]
    pub values: Vec<Expected>,
}

/// A number in a Run and what it must be.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Why, in words.
    pub what: String,
    /// Which measurement: pairs that its kind, params or result must have.
    pub measurement: HashMap<String, String>,
    /// Path to the number inside the measurement.
    pub field: String,
    /// Not less than.
    #[serde(default)]
    pub min: Option<f64>,
    /// Not more than.
    #[serde(default)]
    pub max: Option<f64>,
    /// Exactly this word.
    #[serde(default)]
    pub equals: Option<String>,
    /// The delay of a cell's queue while the measurement was made.
    #[serde(default)]
    pub queue_delay: Option<QueueDelay>,
    /// The TCP payload that a direction of a link delivered a second meanwhile.
    #[serde(default)]
    pub payload_rate: Option<LinkEnd>,
    /// How far the number may be from the cell's, as a share of the cell's.
    #[serde(default)]
    pub tolerance_ratio: f64,
}

/// A quantile, over time, of a queue's delay.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueDelay {
    /// `LINK.up.CELL` or `LINK.down.CELL`.
    pub cell: String,
    /// 0 to 1.
    pub quantile: f64,
}

/// Something in the Run that is not so.
#[derive(Debug, Clone, PartialEq)]
pub struct Deviation {
    /// What was expected, in words.
    pub what: String,
    /// What was there instead.
    pub found: String,
}

impl std::fmt::Display for Deviation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.found)
    }
}

/// Everything in which a Run departs from the truth of its scenario.
pub fn truth(scenario: &Scenario, run: &Run, stats: &LabStats) -> Vec<Deviation> {
    let mut deviations = findings(&scenario.truth, run);
    for expected in &scenario.truth.values {
        if let Err(found) = value(expected, run, stats) {
            deviations.push(Deviation {
                what: expected.what.clone(),
                found,
            });
        }
    }
    deviations.extend(probe_error(run, stats));
    deviations
}

fn findings(truth: &Truth, run: &Run) -> Vec<Deviation> {
    let mut deviations = Vec::new();
    let mut expect = |holds: bool, what: String| {
        if !holds {
            let there: Vec<String> = run
                .findings
                .iter()
                .map(|f| {
                    format!(
                        "{} at {} ({})",
                        f.cause.name(),
                        f.place.name(),
                        f.severity.name()
                    )
                })
                .collect();
            deviations.push(Deviation {
                what,
                found: format!("findings are [{}]", there.join(", ")),
            });
        }
    };
    let first = run.findings.first();
    if let Some(cause) = &truth.first_finding {
        expect(
            first.is_some_and(|f| f.cause.name() == cause),
            format!("the first finding is {cause}"),
        );
    }
    if let Some(place) = &truth.first_finding_where {
        expect(
            first.is_some_and(|f| f.place.name() == place),
            format!("the first finding is at {place}"),
        );
    }
    for cause in &truth.findings {
        expect(
            run.findings.iter().any(|f| f.cause.name() == cause),
            format!("{cause} is found"),
        );
    }
    if let Some(most) = truth.max_severity {
        expect(
            run.findings.iter().all(|f| f.severity <= most),
            format!("no finding is worse than {}", most.name()),
        );
    }
    deviations
}

fn value(expected: &Expected, run: &Run, stats: &LabStats) -> Result<(), String> {
    let (measurement, json) = run
        .measurements
        .iter()
        .filter_map(|m| Some((m, serde_json::to_value(m).ok()?)))
        .find(|(_, json)| {
            expected
                .measurement
                .iter()
                .all(|(key, word)| has(json, key, word))
        })
        .ok_or_else(|| format!("there is no measurement with {:?}", expected.measurement))?;
    let found = expected
        .field
        .split('.')
        .try_fold(&json, |at, name| at.get(name))
        .ok_or_else(|| format!("{} has no {}", measurement.id, expected.field))?;
    let name = format!("{} {}", measurement.id, expected.field);
    if let Some(word) = &expected.equals {
        return if found.as_str() == Some(word) {
            Ok(())
        } else {
            Err(format!("{name} is {found}, not {word}"))
        };
    }
    let number = found
        .as_f64()
        .ok_or_else(|| format!("{name} is {found}, which is no number"))?;
    if let Some(min) = expected.min.filter(|min| number < *min) {
        return Err(format!("{name} is {number}, below {min}"));
    }
    if let Some(max) = expected.max.filter(|max| number > *max) {
        return Err(format!("{name} is {number}, above {max}"));
    }
    let reference = match (&expected.queue_delay, &expected.payload_rate) {
        (Some(queue), _) => Some(queue_delay(queue, measurement, run, stats)?),
        (_, Some(end)) => Some(payload_rate(end, measurement, run, stats)?),
        _ => None,
    };
    match reference {
        Some(truth) if (number - truth).abs() > expected.tolerance_ratio * truth.abs() => {
            Err(format!(
                "{name} is {number}, and the link recorded {truth} (allowed: {} %)",
                expected.tolerance_ratio * 100.0
            ))
        }
        _ => Ok(()),
    }
}

fn has(measurement: &Value, key: &str, word: &str) -> bool {
    [
        measurement.get(key),
        measurement.pointer(&format!("/params/{key}")),
        measurement.pointer(&format!("/result/{key}")),
    ]
    .into_iter()
    .flatten()
    .any(|value| value.as_str() == Some(word))
}

/// The measurement's time on the laboratory's clock.
fn window(measurement: &Measurement, run: &Run, stats: &LabStats) -> Result<(f64, f64), String> {
    let started: Timestamp = run
        .started
        .parse()
        .map_err(|e| format!("the Run's start is no time: {e}"))?;
    let offset_ns = started.as_nanosecond() - i128::from(stats.started_unix_ns);
    let from = offset_ns as f64 / 1e9 + measurement.at_s;
    Ok((from, from + measurement.duration_s))
}

fn way<'a>(end: &LinkEnd, stats: &'a LabStats) -> Result<&'a WayStats, String> {
    stats
        .links
        .get(&end.link)
        .and_then(|ways| ways.get(&end.way))
        .ok_or_else(|| format!("the statistics have no {}.{}", end.link, end.way.name()))
}

fn queue_delay(
    queue: &QueueDelay,
    measurement: &Measurement,
    run: &Run,
    stats: &LabStats,
) -> Result<f64, String> {
    let missing = || format!("the statistics have no queue {}", queue.cell);
    let (end, cell) = queue.cell.rsplit_once('.').ok_or_else(missing)?;
    let series = way(&LinkEnd::try_from(end.to_owned())?, stats)?
        .chain
        .cells
        .get(cell)
        .and_then(|cell| cell.queue_delay.as_ref())
        .ok_or_else(missing)?;
    let (from, to) = window(measurement, run, stats)?;
    let mut delays: Vec<f64> = series
        .points()
        .filter(|(t, _)| (from + RAMP_S..to).contains(t))
        .map(|(_, delay)| delay)
        .collect();
    delays.sort_by(f64::total_cmp);
    quantile_of_sorted(&delays, queue.quantile)
        .ok_or_else(|| format!("{} recorded nothing in that time", queue.cell))
}

fn payload_rate(
    end: &LinkEnd,
    measurement: &Measurement,
    run: &Run,
    stats: &LabStats,
) -> Result<f64, String> {
    let (from, to) = window(measurement, run, stats)?;
    let bytes: f64 = way(end, stats)?
        .chain
        .payload
        .points()
        .filter(|(t, _)| (from..to).contains(t))
        .map(|(_, bytes)| bytes)
        .sum();
    if bytes > 0.0 {
        Ok(bytes * 8.0 / (to - from))
    } else {
        Err(format!(
            "{}.{} delivered nothing in that time",
            end.link,
            end.way.name()
        ))
    }
}

/// Round trips less what the links recorded for the same packets.
pub fn probe_errors(run: &Run, stats: &LabStats) -> Vec<f64> {
    let mut transits: HashMap<(&str, u64, u64), f64> = HashMap::new();
    for probe in stats
        .links
        .values()
        .flat_map(|ways| ways.values())
        .flat_map(|way| &way.probes)
    {
        let key = match probe.key {
            ProbeKey::Icmp { id, seq } => ("icmp", u64::from(id), u64::from(seq)),
            ProbeKey::Udp { session, seq } => ("udp", u64::from(session), u64::from(seq)),
        };
        if let Some(left) = probe.left {
            *transits.entry(key).or_default() += (left - probe.entered).as_secs_f64();
        }
    }
    let mut counted = HashSet::new();
    let mut errors = Vec::new();
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
                let key = (protocol, id, seq);
                if let (Some(rtt), Some(transit)) = (rtt, transits.get(&key))
                    && counted.insert(key)
                {
                    errors.push(rtt - transit);
                }
            }
        }
    }
    errors
}

fn probe_error(run: &Run, stats: &LabStats) -> Vec<Deviation> {
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
