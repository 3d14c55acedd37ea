//! The largest sums of flows, by minute and by longer windows that are made of these.

use rusqlite::{Connection, OptionalExtension as _, Row as Found, params};

use super::width::Width;
use crate::flows::dimension::Dimension;
use crate::flows::estimate::Sums;
use crate::flows::listening::Heard;
use crate::flows::state::State;
use crate::flows::table::{Row, Top};
use crate::flows::windows::merged;

/// The key of the row that has all others.
const OTHERS: &str = "";

/// A window is summed up so long after its end, in seconds: its last minute is written.
const SUM_AFTER_S: i64 = 120;

/// Windows of one place that are summed up in one go: what a machine that was off has left is more.
const MOST_WINDOWS: i64 = 8;

/// Writes what was heard of a place in a minute. A minute that is there already, because plumb began anew within it or the clock
/// was set back, gets more.
pub(super) fn append(writing: &Connection, heard: &Heard) -> rusqlite::Result<()> {
    let state = serde_json::to_string(&heard.state).unwrap_or_default();
    let source: i64 = writing.query_row(
        "INSERT INTO flow_source (name, at_s, state) VALUES (?1, ?2, ?3)
         ON CONFLICT (name) DO UPDATE SET at_s = excluded.at_s, state = excluded.state RETURNING id",
        params![heard.source, heard.start_s, state],
        |row| row.get(0),
    )?;
    for (dimension, top) in &heard.tops {
        put(
            writing,
            (source, Width::Minute, heard.start_s, *dimension),
            top,
        )?;
    }
    Ok(())
}

/// Of which place, how long, from when, by what.
type Window = (i64, Width, i64, Dimension);

fn put(writing: &Connection, window: Window, top: &Top) -> rusqlite::Result<()> {
    let (source, width, start_s, dimension) = window;
    let mut put = writing.prepare(
        "INSERT INTO flow VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes, packets = packets + excluded.packets,
           bytes_variance = bytes_variance + excluded.bytes_variance,
           packets_variance = packets_variance + excluded.packets_variance,
           flows = flows + excluded.flows, missed_bytes = missed_bytes + excluded.missed_bytes",
    )?;
    let rows = top.rows.iter();
    let rows = rows.map(|row| (row.key.as_str(), &row.sums, row.missed_bytes));
    let others =
        Some((OTHERS, &top.others, top.most_of_other)).filter(|(_, sums, _)| sums.flows > 0);
    for (key, sums, missed_bytes) in rows.chain(others) {
        put.execute(params![
            source,
            width.seconds(),
            start_s,
            dimension.number(),
            key,
            sums.bytes,
            sums.packets,
            sums.bytes_variance,
            sums.packets_variance,
            i64::try_from(sums.flows).unwrap_or(i64::MAX),
            missed_bytes,
        ])?;
    }
    Ok(())
}

/// The windows of a place that begin in that time.
pub(super) fn read(
    connection: &Connection,
    source: &str,
    dimension: Dimension,
    width: Width,
    within: (i64, i64),
) -> rusqlite::Result<Vec<(i64, Top)>> {
    let found = connection
        .query_row(
            "SELECT id FROM flow_source WHERE name = ?1",
            [source],
            |row| row.get(0),
        )
        .optional()?;
    match found {
        Some(source) => tops(connection, source, dimension, width, within),
        None => Ok(Vec::new()),
    }
}

fn tops(
    connection: &Connection,
    source: i64,
    dimension: Dimension,
    width: Width,
    (from_s, to_s): (i64, i64),
) -> rusqlite::Result<Vec<(i64, Top)>> {
    let mut query = connection.prepare(
        "SELECT start_s, key, bytes, packets, bytes_variance, packets_variance, flows, missed_bytes FROM flow
         WHERE source = ?1 AND width_s = ?2 AND dimension = ?3 AND start_s >= ?4 AND start_s < ?5
         ORDER BY start_s, bytes DESC, key",
    )?;
    let mut found = query.query(params![
        source,
        width.seconds(),
        dimension.number(),
        from_s,
        to_s
    ])?;
    let mut windows: Vec<(i64, Top)> = Vec::new();
    while let Some(row) = found.next()? {
        let start_s = row.get(0)?;
        if windows.last().is_none_or(|(last_s, _)| *last_s != start_s) {
            windows.push((start_s, Top::default()));
        }
        if let Some((_, top)) = windows.last_mut() {
            take(top, row)?;
        }
    }
    Ok(windows)
}

fn take(top: &mut Top, row: &Found<'_>) -> rusqlite::Result<()> {
    let key: String = row.get(1)?;
    let sums = Sums {
        bytes: row.get(2)?,
        packets: row.get(3)?,
        bytes_variance: row.get(4)?,
        packets_variance: row.get(5)?,
        flows: u64::try_from(row.get::<_, i64>(6)?).unwrap_or_default(),
    };
    let missed_bytes = row.get(7)?;
    match key.as_str() {
        OTHERS => (top.others, top.most_of_other) = (sums, missed_bytes),
        _ => top.rows.push(Row {
            key,
            sums,
            missed_bytes,
        }),
    }
    Ok(())
}

/// The places, with what was known of their exporters last.
pub(super) fn sources(connection: &Connection) -> rusqlite::Result<Vec<(String, i64, State)>> {
    let mut query = connection.prepare("SELECT name, at_s, state FROM flow_source ORDER BY id")?;
    let rows = query.query_map([], |row| {
        let state: String = row.get(2)?;
        let state = serde_json::from_str(&state).unwrap_or_default();
        Ok((row.get(0)?, row.get(1)?, state))
    })?;
    rows.collect()
}

/// Sums up the windows that are over, and removes what is too old.
pub(super) fn sum_up(writing: &Connection, now_s: i64) -> rusqlite::Result<()> {
    let sources: Vec<i64> = writing
        .prepare("SELECT id FROM flow_source")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for source in sources {
        sum_up_to(
            writing,
            source,
            Width::Minute,
            Width::QuarterHour,
            now_s - SUM_AFTER_S,
        )?;
        let quarters_s = now_s - SUM_AFTER_S - Width::QuarterHour.seconds();
        sum_up_to(writing, source, Width::QuarterHour, Width::Day, quarters_s)?;
        for width in Width::ALL {
            if let Some(kept_s) = width.flows_kept_s() {
                remove_old(writing, source, width, now_s - kept_s)?;
            }
        }
    }
    Ok(())
}

/// Sums up windows of a place that ended before that time and are not summed up yet.
fn sum_up_to(
    writing: &Connection,
    source: i64,
    from: Width,
    to: Width,
    before_s: i64,
) -> rusqlite::Result<()> {
    let last_s: Option<i64> = writing.query_row(
        "SELECT max(start_s) FROM flow WHERE source = ?1 AND width_s = ?2 AND dimension = ?3",
        params![source, to.seconds(), Dimension::Total.number()],
        |row| row.get(0),
    )?;
    let first_s = last_s.map_or(i64::MIN, |last_s| last_s.saturating_add(to.seconds()));
    let starts: Vec<i64> = writing
        .prepare(
            "SELECT DISTINCT start_s - start_s % ?3 FROM flow
             WHERE source = ?1 AND width_s = ?2 AND dimension = ?6 AND start_s >= ?4 AND start_s < ?5 ORDER BY 1 LIMIT ?7",
        )?
        .query_map(
            params![
                source,
                from.seconds(),
                to.seconds(),
                first_s,
                to.start_of(before_s),
                Dimension::Total.number(),
                MOST_WINDOWS
            ],
            |row| row.get(0),
        )?
        .collect::<Result<_, _>>()?;
    for start_s in starts {
        for dimension in Dimension::ALL {
            let within = (start_s, start_s.saturating_add(to.seconds()));
            let parts = tops(writing, source, dimension, from, within)?;
            let parts = parts.iter().map(|(_, top)| top);
            // As many as the parts have each.
            let most = parts.clone().map(|top| top.rows.len()).max().unwrap_or(0);
            put(
                writing,
                (source, to, start_s, dimension),
                &merged(parts, most),
            )?;
        }
    }
    Ok(())
}

/// Removes windows that began before that time: at most an hour of them in one go, so that a clock that was wrong for a while
/// removes little.
fn remove_old(
    writing: &Connection,
    source: i64,
    width: Width,
    before_s: i64,
) -> rusqlite::Result<()> {
    const REMOVED_S: i64 = 3600;
    for dimension in Dimension::ALL {
        let of = params![source, width.seconds(), dimension.number()];
        let oldest_s: Option<i64> = writing.query_row(
            "SELECT min(start_s) FROM flow WHERE source = ?1 AND width_s = ?2 AND dimension = ?3",
            of,
            |row| row.get(0),
        )?;
        let until_s = oldest_s.map_or(before_s, |oldest_s| {
            before_s.min(oldest_s.saturating_add(REMOVED_S))
        });
        writing.execute(
            "DELETE FROM flow WHERE source = ?1 AND width_s = ?2 AND dimension = ?3 AND start_s < ?4",
            params![source, width.seconds(), dimension.number(), until_s],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
