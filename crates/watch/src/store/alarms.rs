//! Alarms, which are kept for ever, as outages are.

use rusqlite::{Connection, Row, params};

use crate::alarm::record::Alarm;

/// Between the names of targets, which have no control characters.
const BETWEEN: char = '\n';

const COLUMNS: &str = "target, rule, raised_s, since_s, cleared_s, words, behind";

fn alarm(row: &Row) -> rusqlite::Result<Alarm> {
    let behind: String = row.get(6)?;
    let behind = behind.split(BETWEEN).filter(|name| !name.is_empty());
    Ok(Alarm {
        target: row.get(0)?,
        rule: row.get(1)?,
        raised_s: row.get(2)?,
        since_s: row.get(3)?,
        cleared_s: row.get(4)?,
        words: row.get(5)?,
        behind: behind.map(str::to_owned).collect(),
    })
}

/// Writes alarms that were raised or cleared.
pub(super) fn write(writing: &Connection, alarms: &[Alarm]) -> rusqlite::Result<()> {
    let sql =
        format!("INSERT OR REPLACE INTO alarm ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    let mut put = writing.prepare(&sql)?;
    for alarm in alarms {
        put.execute(params![
            alarm.target,
            alarm.rule,
            alarm.raised_s,
            alarm.since_s,
            alarm.cleared_s,
            alarm.words,
            alarm.behind.join(&BETWEEN.to_string())
        ])?;
    }
    Ok(())
}

/// All that stand, the oldest first.
pub(super) fn standing(connection: &Connection) -> rusqlite::Result<Vec<Alarm>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM alarm WHERE cleared_s IS NULL ORDER BY raised_s, target, rule"
    );
    connection.prepare(&sql)?.query_map([], alarm)?.collect()
}

/// All that stand, and those that were cleared at that time or later, the oldest first.
pub(super) fn since(connection: &Connection, cleared_s: i64) -> rusqlite::Result<Vec<Alarm>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM alarm WHERE cleared_s IS NULL OR cleared_s >= ?1 ORDER BY raised_s, target, rule"
    );
    let mut query = connection.prepare(&sql)?;
    query.query_map([cleared_s], alarm)?.collect()
}

/// The alarms of a target, the latest first.
pub(super) fn of_target(
    connection: &Connection,
    target: &str,
    most: usize,
) -> rusqlite::Result<Vec<Alarm>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM alarm WHERE target = ?1 ORDER BY raised_s DESC, rule LIMIT ?2"
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    connection
        .prepare(&sql)?
        .query_map(params![target, most], alarm)?
        .collect()
}

/// The alarms of a target that stood at some time from `from_s` until before `to_s`, the oldest first.
pub(super) fn within(
    connection: &Connection,
    target: &str,
    (from_s, to_s): (i64, i64),
) -> rusqlite::Result<Vec<Alarm>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM alarm WHERE target = ?1 AND since_s < ?3 AND (cleared_s IS NULL OR cleared_s >= ?2)
         ORDER BY raised_s, rule"
    );
    connection
        .prepare(&sql)?
        .query_map(params![target, from_s, to_s], alarm)?
        .collect()
}
