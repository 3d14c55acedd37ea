//! Samples, packed by target and minute.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::width::Width;
use crate::sample::{BLOCK_S, Sample, unpacked};

/// Seconds that samples are kept: a day, and an hour in which that day is summed up.
pub const KEPT_S: i64 = 25 * 3600;

/// What is too old is removed in steps, each of so many seconds at most beyond the oldest: a clock that is wrong for a minute
/// does not cost the history.
pub(super) const REMOVED_S: i64 = 3600;

/// The number of a target, which it gets with its first sample.
pub(super) fn target_of(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .query_row("SELECT id FROM target WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()
}

/// Writes samples by the names of their targets, whose numbers are looked up once.
pub(super) fn append(
    writing: &Connection,
    samples: &[(String, Sample)],
    ids: &mut HashMap<String, i64>,
) -> rusqlite::Result<()> {
    let mut blocks: BTreeMap<(i64, i64), Vec<u8>> = BTreeMap::new();
    let mut add =
        writing.prepare("INSERT OR IGNORE INTO target (name, every_us) VALUES (?1, 0)")?;
    for (name, sample) in samples {
        let target = match ids.get(name) {
            Some(target) => *target,
            None => {
                add.execute([name])?;
                let target =
                    writing.query_row("SELECT id FROM target WHERE name = ?1", [name], |row| {
                        row.get(0)
                    })?;
                ids.insert(name.clone(), target);
                target
            }
        };
        let block = blocks.entry((sample.minute(), target)).or_default();
        block.extend(sample.packed());
    }
    // `||` makes text of its operands, which the cast undoes byte for byte.
    let mut put = writing.prepare(
        "INSERT INTO fresh VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET block = CAST(block || excluded.block AS BLOB)",
    )?;
    for ((minute, target), block) in blocks {
        put.execute(params![minute, target, block])?;
    }
    Ok(())
}

/// Moves the blocks of minutes that ended before `now_s` to where they stay, with what is due of them.
pub(super) fn settle(writing: &Connection, now_s: i64) -> rusqlite::Result<()> {
    let before = now_s.div_euclid(BLOCK_S);
    writing.execute(
        "INSERT INTO raw SELECT target, minute, block FROM fresh WHERE minute < ?1 ORDER BY target, minute
         ON CONFLICT DO UPDATE SET block = CAST(raw.block || excluded.block AS BLOB)",
        [before],
    )?;
    for width in Width::ALL {
        let mut minutes = writing.prepare("SELECT DISTINCT minute FROM fresh WHERE minute < ?1")?;
        let minutes: Vec<i64> = minutes
            .query_map([before], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for minute in minutes {
            let end_s = width.start_of(minute * BLOCK_S) + width.seconds();
            writing.execute(
                "INSERT OR IGNORE INTO due SELECT ?1, ?2, target FROM fresh WHERE minute = ?3",
                params![end_s, width.seconds(), minute],
            )?;
        }
    }
    writing
        .execute("DELETE FROM fresh WHERE minute < ?1", [before])
        .map(drop)
}

/// Adds the samples of a target in minutes that are not over, or not moved yet.
fn read_fresh(
    connection: &Connection,
    target: i64,
    (from, to): (i64, i64),
    found: &mut Vec<Sample>,
) -> rusqlite::Result<()> {
    let mut next = connection.prepare(
        "SELECT minute FROM fresh WHERE minute >= ?1 AND minute < ?2 ORDER BY minute LIMIT 1",
    )?;
    let mut query =
        connection.prepare("SELECT block FROM fresh WHERE minute = ?1 AND target = ?2")?;
    let mut at = from;
    while let Some(minute) = next
        .query_row([at, to], |row| row.get::<_, i64>(0))
        .optional()?
    {
        let block = query.query_row([minute, target], |row| row.get::<_, Vec<u8>>(0));
        found.extend(
            block
                .optional()?
                .iter()
                .flat_map(|block| unpacked(minute, block)),
        );
        at = minute.saturating_add(1);
    }
    Ok(())
}

/// The samples of a target from the minute of `from_s` until before the minute of `to_s`, in the order of time.
pub(super) fn read(
    connection: &Connection,
    target: i64,
    from_s: i64,
    to_s: i64,
) -> rusqlite::Result<Vec<Sample>> {
    let mut query = connection.prepare(
        "SELECT minute, block FROM raw WHERE target = ?1 AND minute >= ?2 AND minute < ?3 ORDER BY minute",
    )?;
    let minute = |at_s: i64| at_s.div_euclid(BLOCK_S);
    let mut rows = query.query(params![target, minute(from_s), minute(to_s)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let block: Vec<u8> = row.get(1)?;
        found.extend(unpacked(row.get(0)?, &block));
    }
    read_fresh(
        connection,
        target,
        (minute(from_s), minute(to_s)),
        &mut found,
    )?;
    found.sort_by_key(|sample| sample.sent_us);
    Ok(found)
}

/// When the oldest samples of a target begin that are still there, s since 1970.
pub(super) fn oldest_s(connection: &Connection, target: i64) -> rusqlite::Result<Option<i64>> {
    let oldest: Option<i64> = connection.query_row(
        "SELECT min(minute) FROM raw WHERE target = ?1",
        [target],
        |row| row.get(0),
    )?;
    if let Some(minute) = oldest {
        return Ok(Some(minute.saturating_mul(BLOCK_S)));
    }
    let mut fresh = Vec::new();
    read_fresh(connection, target, (i64::MIN, i64::MAX), &mut fresh)?;
    let oldest = fresh.iter().map(Sample::minute).min();
    Ok(oldest.map(|minute| minute.saturating_mul(BLOCK_S)))
}

/// Removes samples of a target that are too old.
pub(super) fn remove_old(writing: &Connection, target: i64, now_s: i64) -> rusqlite::Result<()> {
    let Some(oldest_s) = oldest_s(writing, target)? else {
        return Ok(());
    };
    let until_s = (now_s - KEPT_S).min(oldest_s.saturating_add(REMOVED_S));
    writing
        .execute(
            "DELETE FROM raw WHERE target = ?1 AND minute < ?2",
            params![target, until_s.div_euclid(BLOCK_S)],
        )
        .map(drop)
}
