//! Outages, which are known for ever: those in samples that are still there are found in them each time.

use std::time::Duration;

use rusqlite::{Connection, params};

use super::width::Width;
use super::{samples, summed};
use crate::outage::{Outage, Outages, Walk};

/// What is known of a target's outages.
pub(super) struct Known {
    /// Those that ended before the oldest sample.
    pub(super) before: Vec<Outage>,
    /// Those since, and one that spans the oldest sample.
    pub(super) since: Vec<Outage>,
    watched: Duration,
    /// When the oldest sample's minute begins, s since 1970.
    pub(super) oldest_s: i64,
}

/// How often a target is probed.
pub(super) fn every(connection: &Connection, target: i64) -> rusqlite::Result<Duration> {
    let every_us: i64 = connection.query_row(
        "SELECT every_us FROM target WHERE id = ?1",
        [target],
        |row| row.get(0),
    )?;
    Ok(Duration::from_micros(every_us.unsigned_abs()))
}

/// Until when quarter-hours say what was watched, s since 1970: with the one that lost some of its samples. From there on the
/// samples do.
pub(super) fn parting_s(
    connection: &Connection,
    target: i64,
    oldest_s: i64,
) -> rusqlite::Result<i64> {
    let quarter_s = Width::QuarterHour.start_of(oldest_s);
    Ok(
        match summed::has(connection, target, Width::QuarterHour, quarter_s)? {
            true => quarter_s + Width::QuarterHour.seconds(),
            false => oldest_s,
        },
    )
}

pub(super) fn known(connection: &Connection, target: i64, from_s: i64) -> rusqlite::Result<Known> {
    let oldest_s = samples::oldest_s(connection, target)?.unwrap_or(i64::MAX / 1_000_000);
    let oldest_us = oldest_s.saturating_mul(1_000_000);
    let from_us = from_s.saturating_mul(1_000_000);
    let mut before: Vec<Outage> = connection
        .prepare(
            "SELECT begin_us, end_us, lasts FROM outage
             WHERE target = ?1 AND begin_us < ?2 AND (end_us >= min(?2, ?3) OR lasts) ORDER BY begin_us",
        )?
        .query_map(params![target, oldest_us, from_us], |row| {
            Ok(Outage {
                begin_us: row.get(0)?,
                end_us: row.get(1)?,
                lasts: row.get(2)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    let parting_s = parting_s(connection, target, oldest_s)?.max(from_s);
    let mut walk = Walk::new(
        every(connection, target)?,
        parting_s.saturating_mul(1_000_000),
    );
    let open = before.pop_if(|outage| outage.lasts || outage.end_us >= oldest_us);
    if let Some(open) = open {
        walk = walk.within(open);
    }
    let samples = samples::read(connection, target, oldest_s, i64::MAX)?;
    samples.iter().for_each(|sample| walk.step(sample));
    let (since, watched) = walk.end();
    let earlier = (from_s, parting_s);
    Ok(Known {
        before,
        since,
        watched: watched + summed::watched(connection, target, Width::QuarterHour, earlier)?,
        oldest_s,
    })
}

/// Writes down the outages of a target, before their samples are removed.
pub(super) fn settle(writing: &Connection, target: i64) -> rusqlite::Result<()> {
    let known = known(writing, target, i64::MIN / 1_000_000)?;
    let oldest_us = known.oldest_s.saturating_mul(1_000_000);
    writing.execute(
        "DELETE FROM outage WHERE target = ?1 AND (begin_us >= ?2 OR end_us >= ?2 OR lasts)",
        params![target, oldest_us],
    )?;
    let mut put = writing.prepare("INSERT OR REPLACE INTO outage VALUES (?1, ?2, ?3, ?4)")?;
    for outage in known.since {
        put.execute(params![
            target,
            outage.begin_us,
            outage.end_us,
            outage.lasts
        ])?;
    }
    Ok(())
}

/// The outages of a target that ended after `from_s`, and how long was watched since.
pub(super) fn read(connection: &Connection, target: i64, from_s: i64) -> rusqlite::Result<Outages> {
    let from_us = from_s.saturating_mul(1_000_000);
    let known = known(connection, target, from_s)?;
    let since = known.since.into_iter();
    let mut outages = known.before;
    outages.extend(since.filter(|outage| outage.end_us >= from_us));
    Ok(Outages {
        outages,
        watched: known.watched,
        from_us,
    })
}
