//! Distributions of windows, which stay when their samples are gone.

use std::time::Duration;

use rusqlite::{Connection, params};

use super::samples::{self, REMOVED_S};
use super::width::Width;
use crate::distribution::{Distribution, Times};
use crate::outage::{Walk, longest_gap};

/// A probe's answer may be so late, in seconds: a window is summed up after that.
pub(super) const GRACE_S: i64 = 10;

/// Units of a stored time in a second.
const UNITS_PER_S: f64 = 1e7;

/// Sums up the windows that are over, and returns the targets of which one of that width was.
pub(super) fn sum_up(writing: &Connection, width: Width, now_s: i64) -> rusqlite::Result<Vec<i64>> {
    let width_s = width.seconds();
    let due: Vec<(i64, i64, i64)> = writing
        .prepare(
            "SELECT target, end_s, every_us FROM due JOIN target ON target.id = due.target
             WHERE end_s <= ?1 AND width_s = ?2",
        )?
        .query_map(params![now_s - GRACE_S, width_s], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<Result<_, _>>()?;
    // A window that gets more samples, after a step of the clock, is summed up again; not from what is left of its samples.
    let mut put = writing.prepare(
        "INSERT INTO summed VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT DO UPDATE SET count = excluded.count, lost = excluded.lost, watched_ms = excluded.watched_ms,
         min = excluded.min, p5 = excluded.p5, p25 = excluded.p25, p50 = excluded.p50, p75 = excluded.p75,
         p95 = excluded.p95, max = excluded.max
         WHERE excluded.count >= summed.count",
    )?;
    let mut targets = Vec::new();
    for (target, end_s, every_us) in due {
        let start_s = end_s - width_s;
        let every = Duration::from_micros(every_us.unsigned_abs());
        // The time up to the first sample of a window belongs to it.
        let before_s = i64::try_from(longest_gap(every).as_secs()).unwrap_or(width_s);
        let found = samples::read(writing, target, start_s.saturating_sub(before_s), end_s)?;
        let start_us = start_s.saturating_mul(1_000_000);
        let mut walk = Walk::new(every, start_us);
        found.iter().for_each(|sample| walk.step(sample));
        let (_, watched) = walk.end();
        let inside = found.iter().filter(|sample| sample.sent_us >= start_us);
        let seen = Distribution::of(inside);
        let unit = |of: fn(&Times) -> f64| {
            // Times that were packed fit.
            seen.times
                .map(|times| (of(&times) * UNITS_PER_S).round() as i64)
        };
        put.execute(params![
            target,
            width_s,
            start_s,
            i64::try_from(seen.count).unwrap_or(i64::MAX),
            i64::try_from(seen.lost).unwrap_or(i64::MAX),
            i64::try_from(watched.as_millis()).unwrap_or(i64::MAX),
            unit(|t| t.min_s),
            unit(|t| t.p5_s),
            unit(|t| t.p25_s),
            unit(|t| t.p50_s),
            unit(|t| t.p75_s),
            unit(|t| t.p95_s),
            unit(|t| t.max_s),
        ])?;
        targets.push(target);
    }
    writing.execute(
        "DELETE FROM due WHERE end_s <= ?1 AND width_s = ?2",
        params![now_s - GRACE_S, width_s],
    )?;
    targets.sort_unstable();
    targets.dedup();
    Ok(targets)
}

/// Removes windows of a target that are too old.
pub(super) fn remove_old(
    writing: &Connection,
    target: i64,
    width: Width,
    now_s: i64,
) -> rusqlite::Result<()> {
    let Some(kept_s) = width.kept_s() else {
        return Ok(());
    };
    let width_s = width.seconds();
    let oldest_s: Option<i64> = writing.query_row(
        "SELECT min(start_s) FROM summed WHERE target = ?1 AND width_s = ?2",
        params![target, width_s],
        |row| row.get(0),
    )?;
    let Some(oldest_s) = oldest_s else {
        return Ok(());
    };
    let until_s = (now_s - kept_s).min(oldest_s.saturating_add(REMOVED_S));
    writing
        .execute(
            "DELETE FROM summed WHERE target = ?1 AND width_s = ?2 AND start_s < ?3",
            params![target, width_s, until_s],
        )
        .map(drop)
}

/// The windows of a target that begin from `from_s` until before `to_s`, with when each begins.
pub(super) fn read(
    connection: &Connection,
    target: i64,
    width: Width,
    (from_s, to_s): (i64, i64),
) -> rusqlite::Result<Vec<(i64, Distribution)>> {
    let mut query = connection.prepare(
        "SELECT start_s, count, lost, min, p5, p25, p50, p75, p95, max FROM summed
         WHERE target = ?1 AND width_s = ?2 AND start_s >= ?3 AND start_s < ?4 ORDER BY start_s",
    )?;
    let rows = query.query_map(params![target, width.seconds(), from_s, to_s], |row| {
        let time = |at: usize| {
            row.get::<_, i64>(at)
                .map(|units| units as f64 / UNITS_PER_S)
        };
        let times = match row.get::<_, Option<i64>>(3)? {
            None => None,
            Some(_) => Some(Times {
                min_s: time(3)?,
                p5_s: time(4)?,
                p25_s: time(5)?,
                p50_s: time(6)?,
                p75_s: time(7)?,
                p95_s: time(8)?,
                max_s: time(9)?,
            }),
        };
        let distribution = Distribution {
            count: row.get::<_, i64>(1)?.unsigned_abs(),
            lost: row.get::<_, i64>(2)?.unsigned_abs(),
            times,
        };
        Ok((row.get(0)?, distribution))
    })?;
    rows.collect()
}

/// Whether the window of a target that begins then was summed up.
pub(super) fn has(
    connection: &Connection,
    target: i64,
    width: Width,
    start_s: i64,
) -> rusqlite::Result<bool> {
    connection
        .prepare("SELECT 1 FROM summed WHERE target = ?1 AND width_s = ?2 AND start_s = ?3")?
        .exists(params![target, width.seconds(), start_s])
}

/// How long a target was watched in the windows of that width that begin from `from_s` and end until `to_s`.
pub(super) fn watched(
    connection: &Connection,
    target: i64,
    width: Width,
    (from_s, to_s): (i64, i64),
) -> rusqlite::Result<Duration> {
    let watched_ms: i64 = connection.query_row(
        "SELECT coalesce(sum(watched_ms), 0) FROM summed
         WHERE target = ?1 AND width_s = ?2 AND start_s >= ?3 AND start_s + width_s <= ?4",
        params![target, width.seconds(), from_s, to_s],
        |row| row.get(0),
    )?;
    Ok(Duration::from_millis(watched_ms.unsigned_abs()))
}
