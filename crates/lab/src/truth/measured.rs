//! Numbers in a Run: against fixed bounds, and against what the links recorded meanwhile.

use jiff::Timestamp;
use plumb_model::distribution::quantile_of_sorted;
use plumb_model::json;
use plumb_model::results::RAMP_S;
use plumb_model::run::{Measurement, Run};

use super::verdict::bounds;
use crate::scenario::{Expected, LinkEnd, QueueDelay};
use crate::stats::{LabStats, WayStats};

/// Holds one number of a Run against what it must be; says what it is, either way.
pub(super) fn check(expected: &Expected, run: &Run, stats: &LabStats) -> Result<String, String> {
    let measurement = run
        .measurements
        .iter()
        .find(|measurement| expected.measurement.selects(measurement))
        .ok_or_else(|| format!("there is no measurement ({})", expected.measurement))?;
    let document = json::to_value(measurement).map_err(|error| error.to_string())?;
    let found = expected
        .field
        .split('.')
        .try_fold(&document, |at, name| at.get(name))
        .ok_or_else(|| format!("{} has no {}", measurement.id, expected.field))?;
    let name = format!("{} {}", measurement.id, expected.field);
    if let Some(word) = &expected.equals {
        return if found.as_str() == Some(word) {
            Ok(format!("{name} is {found}"))
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
        Some(truth) => Ok(format!("{name} is {number}, and the link recorded {truth}")),
        None => Ok(format!(
            "{name} is {number}{}",
            bounds(expected.min, expected.max)
        )),
    }
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
        .ok_or_else(|| format!("the statistics have no {end}"))
}

fn queue_delay(
    queue: &QueueDelay,
    measurement: &Measurement,
    run: &Run,
    stats: &LabStats,
) -> Result<f64, String> {
    let missing = || format!("the statistics have no queue {}", queue.cell);
    let series = way(&queue.cell.end, stats)?
        .chain
        .cells
        .get(&queue.cell.cell)
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
    let payload = &way(end, stats)?.chain.payload;
    // An interval ends where the next begins, and the last one when the statistics were taken.
    let ends = payload.t_s.iter().skip(1).chain([&stats.duration_s]);
    let intervals = payload.t_s.iter().zip(ends).zip(&payload.values);
    // Of the intervals at both ends of the measurement, as much as lies within: they begin when the
    // laboratory did, and not with the measurement.
    let bytes: f64 = intervals
        .filter_map(|((begin, end), bytes)| {
            let within = end.min(to) - begin.max(from);
            (within > 0.0).then_some((*bytes)? * within / (end - begin))
        })
        .sum();
    if bytes > 0.0 {
        Ok(bytes * 8.0 / (to - from))
    } else {
        Err(format!("{end} delivered nothing in that time"))
    }
}
