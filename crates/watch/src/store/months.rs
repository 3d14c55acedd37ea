//! Availability by month: the outages, which are never removed, as a share of the time watched, which days keep when
//! quarter-hours are gone.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::outages::{every, known, parting_s};
use super::samples;
use super::width::Width;
use crate::availability::Availability;
use crate::month::Month;
use crate::outage::Walk;

/// The earliest time of which a target's history may speak, s since 1970.
const EVER_S: i64 = i64::MIN / 1_000_000;

/// The months of a target from the first that anything is known of to the month of `now_s`, or `only` that one.
pub(super) fn read(
    connection: &Connection,
    target: i64,
    only: Option<Month>,
    now_s: i64,
) -> rusqlite::Result<Vec<Availability>> {
    let months: Vec<Month> = match only {
        Some(month) => vec![month],
        None => {
            let first = first_s(connection, target)?.and_then(Month::of);
            let last = Month::of(now_s);
            let all = first.zip(last).map(|(first, last)| last.since(first));
            all.into_iter().flatten().collect()
        }
    };
    let known = known(connection, target, EVER_S)?;
    let outages: Vec<_> = known.before.into_iter().chain(known.since).collect();
    let month = |month: Month| {
        let within = (month.from_s(), month.to_s());
        let watched = watched(connection, target, within, known.oldest_s)?;
        Ok(Availability::new(month, now_s, watched, &outages))
    };
    months.into_iter().map(month).collect()
}

/// When the first window begins that is known, or the first sample's minute, s since 1970.
fn first_s(connection: &Connection, target: i64) -> rusqlite::Result<Option<i64>> {
    let mut first = samples::oldest_s(connection, target)?;
    for width in Width::ALL {
        let oldest: Option<i64> = connection
            .query_row(
                "SELECT start_s FROM summed WHERE target = ?1 AND width_s = ?2 ORDER BY start_s LIMIT 1",
                params![target, width.seconds()],
                |row| row.get(0),
            )
            .optional()?;
        first = match (first, oldest) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    Ok(first)
}

/// How long a target was watched from one time to another, both of which begin a day.
fn watched(
    connection: &Connection,
    target: i64,
    (from_s, to_s): (i64, i64),
    oldest_s: i64,
) -> rusqlite::Result<Duration> {
    let parting_s = parting_s(connection, target, oldest_s)?;
    let summed_to_s = to_s.min(parting_s);
    let days_to_s = Width::Day.start_of(summed_to_s);
    // Days that are over, and the quarter-hours of those that are not.
    let watched_ms: i64 = connection.query_row(
        "SELECT coalesce(sum(watched_ms), 0) FROM summed AS part WHERE target = ?1 AND (
           (width_s = ?2 AND start_s >= ?4 AND start_s < ?5)
           OR (width_s = ?3 AND start_s >= ?4 AND start_s < ?6 AND NOT EXISTS (
             SELECT 1 FROM summed WHERE target = ?1 AND width_s = ?2
             AND start_s = part.start_s - part.start_s % ?2 AND start_s < ?5)))",
        params![
            target,
            Width::Day.seconds(),
            Width::QuarterHour.seconds(),
            from_s,
            days_to_s,
            summed_to_s
        ],
        |row| row.get(0),
    )?;
    let mut watched = Duration::from_millis(watched_ms.unsigned_abs());
    if to_s > parting_s {
        let counted_from_us = parting_s.max(from_s).saturating_mul(1_000_000);
        let mut walk = Walk::new(every(connection, target)?, counted_from_us);
        for sample in samples::read(connection, target, oldest_s, to_s)? {
            walk.step(&sample);
        }
        watched += walk.end().1;
    }
    Ok(watched)
}
