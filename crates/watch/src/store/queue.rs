//! Messages that are to be sent, the oldest of each delivery first.

use rusqlite::{Connection, OptionalExtension as _, params};

/// So many messages of a delivery are kept, the latest: they were never taken, and more would not be read.
const MOST: i64 = 1000;

/// A message that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    pub id: i64,
    pub message: String,
    pub queued_s: i64,
    /// How many tries failed so far.
    pub tries: u32,
}

pub(super) fn put(
    writing: &Connection,
    name: &str,
    message: &str,
    now_s: i64,
) -> rusqlite::Result<()> {
    writing.execute(
        "INSERT INTO queue (name, message, queued_s, tries, next_s) VALUES (?1, ?2, ?3, 0, ?3)",
        params![name, message, now_s],
    )?;
    writing
        .execute(
            "DELETE FROM queue WHERE name = ?1 AND id NOT IN
             (SELECT id FROM queue WHERE name = ?1 ORDER BY id DESC LIMIT ?2)",
            params![name, MOST],
        )
        .map(drop)
}

/// The oldest message of a delivery, where it is due.
pub(super) fn due(
    connection: &Connection,
    name: &str,
    now_s: i64,
) -> rusqlite::Result<Option<Queued>> {
    let oldest = connection
        .query_row(
            "SELECT id, message, queued_s, tries, next_s FROM queue WHERE name = ?1 ORDER BY id LIMIT 1",
            [name],
            |row| {
                let queued = Queued {
                    id: row.get(0)?,
                    message: row.get(1)?,
                    queued_s: row.get(2)?,
                    tries: row.get(3)?,
                };
                Ok((queued, row.get::<_, i64>(4)?))
            },
        )
        .optional()?;
    Ok(oldest
        .filter(|(_, next_s)| *next_s <= now_s)
        .map(|(queued, _)| queued))
}

/// Has a message wait for another try.
pub(super) fn postpone(writing: &Connection, id: i64, next_s: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE queue SET tries = tries + 1, next_s = ?2 WHERE id = ?1";
    writing.execute(sql, params![id, next_s]).map(drop)
}

pub(super) fn remove(writing: &Connection, id: i64) -> rusqlite::Result<()> {
    writing
        .execute("DELETE FROM queue WHERE id = ?1", [id])
        .map(drop)
}
