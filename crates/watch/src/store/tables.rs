//! The tables, and whether a database has them.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

/// The version of the tables that this plumb writes (PRAGMA user_version).
const VERSION: i64 = 4;

/// Marks a database as one of plumb's ("plwa" in ASCII, PRAGMA application_id).
const APPLICATION: i64 = 0x706c_7761;

/// The tables of version 1. A block is samples of a minute, packed; round trips in `summed` are in units of 100 ns, and other values in ten-millionths; `due`
/// lists the windows that have samples and are not summed up.
const TABLES: &str = "
CREATE TABLE target (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, every_us INTEGER NOT NULL) STRICT;
CREATE TABLE raw (target INTEGER NOT NULL, minute INTEGER NOT NULL, block BLOB NOT NULL,
  PRIMARY KEY (target, minute)) STRICT, WITHOUT ROWID;
CREATE TABLE due (end_s INTEGER NOT NULL, width_s INTEGER NOT NULL, target INTEGER NOT NULL,
  PRIMARY KEY (end_s, width_s, target)) STRICT, WITHOUT ROWID;
CREATE TABLE summed (target INTEGER NOT NULL, width_s INTEGER NOT NULL, start_s INTEGER NOT NULL,
  count INTEGER NOT NULL, lost INTEGER NOT NULL, watched_ms INTEGER NOT NULL,
  min INTEGER, p5 INTEGER, p25 INTEGER, p50 INTEGER, p75 INTEGER, p95 INTEGER, max INTEGER,
  PRIMARY KEY (target, width_s, start_s)) STRICT, WITHOUT ROWID;
CREATE TABLE outage (target INTEGER NOT NULL, begin_us INTEGER NOT NULL, end_us INTEGER NOT NULL, lasts INTEGER NOT NULL,
  PRIMARY KEY (target, begin_us)) STRICT, WITHOUT ROWID;
";

/// What version 2 adds. `cleared_s` is null while an alarm stands; `behind` has a name a line. `queue` has what is
/// to be sent, and when next.
const ALARMS: &str = "
CREATE TABLE alarm (target TEXT NOT NULL, rule TEXT NOT NULL, raised_s INTEGER NOT NULL, since_s INTEGER NOT NULL,
  cleared_s INTEGER, words TEXT NOT NULL, behind TEXT NOT NULL,
  PRIMARY KEY (target, rule, raised_s)) STRICT, WITHOUT ROWID;
CREATE TABLE queue (id INTEGER PRIMARY KEY, name TEXT NOT NULL, message TEXT NOT NULL, queued_s INTEGER NOT NULL,
  tries INTEGER NOT NULL, next_s INTEGER NOT NULL) STRICT;
CREATE INDEX standing ON alarm (raised_s) WHERE cleared_s IS NULL;
";

/// What version 3 adds: what was seen of a target, a row for each change; and the blocks of minutes that are not over, all
/// targets of a minute beside each other, so that a second of many targets is written in few pages.
const STATES: &str = "
CREATE TABLE state (target INTEGER NOT NULL, at_us INTEGER NOT NULL, words TEXT NOT NULL,
  PRIMARY KEY (target, at_us)) STRICT, WITHOUT ROWID;
CREATE TABLE fresh (minute INTEGER NOT NULL, target INTEGER NOT NULL, block BLOB NOT NULL,
  PRIMARY KEY (minute, target)) STRICT, WITHOUT ROWID;
";

/// What version 4 adds: places that flows are sent to, with what is known of their exporters as JSON; and sums of flows by
/// window, dimension and what they have in common. The row of others has an empty key, and in `missed_bytes` the most that one of
/// them has.
const FLOWS: &str = "
CREATE TABLE flow_source (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, at_s INTEGER NOT NULL, state TEXT NOT NULL) STRICT;
CREATE TABLE flow (source INTEGER NOT NULL, width_s INTEGER NOT NULL, start_s INTEGER NOT NULL, dimension INTEGER NOT NULL,
  key TEXT NOT NULL, bytes REAL NOT NULL, packets REAL NOT NULL, bytes_variance REAL NOT NULL, packets_variance REAL NOT NULL,
  flows INTEGER NOT NULL, missed_bytes REAL NOT NULL,
  PRIMARY KEY (source, width_s, dimension, start_s, key)) STRICT, WITHOUT ROWID;
";

/// Why the history cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "{} was written by a newer plumb (version {found} of its tables, and this plumb knows {VERSION}): use that plumb, or \
         another path",
        path.display()
    )]
    Newer { path: PathBuf, found: i64 },
    #[error(
        "{} was written by an older plumb (version {found} of its tables, and this plumb has {VERSION}): begin plumb watch with \
         it once, which brings it up to date",
        path.display()
    )]
    Older { path: PathBuf, found: i64 },
    #[error("there is no history at {}: plumb watch makes it", path.display())]
    None { path: PathBuf },
    #[error("{} is there already: name another file, or remove it", path.display())]
    There { path: PathBuf },
    #[error("{} is a database of something else: choose another path", path.display())]
    Foreign { path: PathBuf },
    #[error("{} is damaged ({why}): move it away, and a new one is begun", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("another plumb watch writes into {}: end it, or choose another path", path.display())]
    Taken { path: PathBuf },
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: {source}", path.display())]
    Sqlite {
        path: PathBuf,
        source: rusqlite::Error,
    },
}

/// An error of the database, in the words that help.
pub(super) fn error(path: &Path, source: rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match source.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => StoreError::Damaged {
            path: path.to_owned(),
            why: source.to_string(),
        },
        _ => StoreError::Sqlite {
            path: path.to_owned(),
            source,
        },
    }
}

/// Sees that a database is one of plumb's, and not of a newer one: the version of its tables, zero where it has none.
pub(super) fn version(connection: &Connection, path: &Path) -> Result<i64, StoreError> {
    let failed = |source| error(path, source);
    let number = |connection: &Connection, of: &str| {
        connection.pragma_query_value(None, of, |row| row.get::<_, i64>(0))
    };
    let version = number(connection, "user_version").map_err(failed)?;
    let application = number(connection, "application_id").map_err(failed)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    if tables > 0 && application != APPLICATION {
        return Err(StoreError::Foreign { path: path.into() });
    }
    if version > VERSION {
        return Err(StoreError::Newer {
            path: path.into(),
            found: version,
        });
    }
    Ok(version)
}

/// Sees that a database has the tables of today.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    match version(connection, path)? {
        VERSION => Ok(()),
        found => Err(StoreError::Older {
            path: path.into(),
            found,
        }),
    }
}

/// Sees that the database is whole and has the tables, and makes them where it is empty.
pub(super) fn ensure(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |source| error(path, source);
    let version = version(connection, path)?;
    let said: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(failed)?;
    if said != "ok" {
        return Err(StoreError::Damaged {
            path: path.into(),
            why: said.replace('\n', " "),
        });
    }
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .map_err(failed)?;
    // What is written outlives the process; a power cut may take what the disk had not been given yet.
    connection
        .pragma_update(None, "synchronous", "NORMAL")
        .map_err(failed)?;
    if version < VERSION {
        let make = |connection: &mut Connection| {
            let making = connection.transaction()?;
            if version == 0 {
                making.execute_batch(TABLES)?;
            }
            if version < 2 {
                making.execute_batch(ALARMS)?;
            }
            if version < 3 {
                making.execute_batch(STATES)?;
            }
            making.execute_batch(FLOWS)?;
            making.pragma_update(None, "application_id", APPLICATION)?;
            making.pragma_update(None, "user_version", VERSION)?;
            making.commit()
        };
        make(connection).map_err(failed)?;
    }
    Ok(())
}
