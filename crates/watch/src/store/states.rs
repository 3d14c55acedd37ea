//! What was seen of targets that is kept when it changes, such as routes: a row for each change.

use rusqlite::{Connection, OptionalExtension as _, params};

/// What was seen last of a target.
pub(super) fn last(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    connection
        .query_row(
            "SELECT words FROM state JOIN target ON target.id = state.target WHERE name = ?1
             ORDER BY at_us DESC LIMIT 1",
            [name],
            |row| row.get(0),
        )
        .optional()
}

/// Keeps what was seen then.
pub(super) fn note(
    writing: &Connection,
    name: &str,
    at_us: i64,
    words: &str,
) -> rusqlite::Result<()> {
    writing.execute(
        "INSERT OR IGNORE INTO target (name, every_us) VALUES (?1, 0)",
        [name],
    )?;
    writing
        .execute(
            "INSERT OR REPLACE INTO state SELECT id, ?2, ?3 FROM target WHERE name = ?1",
            params![name, at_us, words],
        )
        .map(drop)
}

/// The latest changes of a target, so many at most, with when each was seen first, µs since 1970.
pub(super) fn of_target(
    connection: &Connection,
    name: &str,
    most: usize,
) -> rusqlite::Result<Vec<(i64, String)>> {
    connection
        .prepare(
            "SELECT at_us, words FROM state JOIN target ON target.id = state.target WHERE name = ?1
             ORDER BY at_us DESC LIMIT ?2",
        )?
        .query_map(
            params![name, i64::try_from(most).unwrap_or(i64::MAX)],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?
        .collect()
}
