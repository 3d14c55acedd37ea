//! Requests that wait to be sent, the oldest first, in a database beside the history: one that is full or damaged does no harm
//! to that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plumb_wire::remote_write::Version;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

/// The version of the tables that this plumb writes (PRAGMA user_version).
const VERSION: i64 = 1;

/// Marks a database as such a queue ("plrw" in ASCII, PRAGMA application_id).
const APPLICATION: i64 = 0x706c_7277;

/// How long another connection is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// A body is compressed. `counted` has what became of samples. `round` is the last one that was queued: its time, and its
/// series as JSON.
const TABLES: &str = "
CREATE TABLE request (id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, version INTEGER NOT NULL,
  samples INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE counted (result TEXT PRIMARY KEY, samples INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE round (one INTEGER PRIMARY KEY CHECK (one = 1), at_ms INTEGER NOT NULL, series TEXT NOT NULL) STRICT;
INSERT INTO counted VALUES ('sent', 0), ('refused', 0), ('given_up', 0);
";

/// All labels of a series.
pub(super) type Labels = Vec<(String, String)>;

/// Why the queue cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QueueError {
    #[error("{} was written by a newer plumb: use that plumb, or move it away", path.display())]
    Newer { path: PathBuf },
    #[error("{} is a database of something else: move it away", path.display())]
    Foreign { path: PathBuf },
    #[error("{} is damaged ({why}): move it away, and a new one is begun", path.display())]
    Damaged { path: PathBuf, why: String },
    #[error("{}: {source}", path.display())]
    Sqlite {
        path: PathBuf,
        source: rusqlite::Error,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) version: Version,
    /// How many samples it has.
    pub(super) samples: u32,
    /// The message, compressed by Snappy.
    pub(super) body: Vec<u8>,
}

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) bytes: i64,
    pub(super) age_ms: i64,
}

/// What is in the queue, and what became of what was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) samples: i64,
    pub(crate) bytes: i64,
    pub(crate) counts: Vec<(String, i64)>,
}

#[derive(Debug)]
pub(crate) struct Queue {
    connection: Connection,
    path: PathBuf,
    /// The size of all bodies.
    bytes: i64,
}

/// Where the queue of the history at that path is.
pub(crate) fn path(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".remote-write");
    name.into()
}

/// What is in the queue at that path, where there is one.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn look(path: &Path) -> rusqlite::Result<Option<Look>> {
    if !path.exists() {
        return Ok(None);
    }
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY)?;
    let (samples, bytes) = connection.query_row(
        "SELECT coalesce(sum(samples), 0), coalesce(sum(length(body)), 0) FROM request",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let counts = connection
        .prepare("SELECT result, samples FROM counted")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    Ok(Some(Look {
        samples,
        bytes,
        counts,
    }))
}

impl Queue {
    /// Opens the queue, and makes it where there is none.
    ///
    /// # Errors
    /// When it is newer, damaged or something else, or cannot be written.
    pub(crate) fn open(path: &Path) -> Result<Self, QueueError> {
        let failed = |source| error(path, source);
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        let number = |connection: &Connection, of: &str| {
            connection.pragma_query_value(None, of, |row| row.get::<_, i64>(0))
        };
        let version = number(&connection, "user_version").map_err(failed)?;
        let application = number(&connection, "application_id").map_err(failed)?;
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(failed)?;
        if tables > 0 && application != APPLICATION {
            return Err(QueueError::Foreign { path: path.into() });
        }
        if version > VERSION {
            return Err(QueueError::Newer { path: path.into() });
        }
        let said: String = connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(failed)?;
        if said != "ok" {
            return Err(QueueError::Damaged {
                path: path.into(),
                why: said.replace('\n', " "),
            });
        }
        make(&mut connection, version).map_err(failed)?;
        let bytes = connection
            .query_row(
                "SELECT coalesce(sum(length(body)), 0) FROM request",
                [],
                |row| row.get(0),
            )
            .map_err(failed)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            bytes,
        })
    }

    /// The time of the last round that was queued, ms since 1970, and its series.
    pub(super) fn last(&self) -> Result<Option<(i64, BTreeSet<Labels>)>, QueueError> {
        let row = self
            .connection
            .query_row("SELECT at_ms, series FROM round", [], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })
            .optional()
            .map_err(|source| error(&self.path, source))?;
        // Series that cannot be read are not known to be gone.
        Ok(row.map(|(at_ms, json)| (at_ms, serde_json::from_str(&json).unwrap_or_default())))
    }

    /// Adds the requests of one round, and its series where the round before had others. The oldest requests
    /// go where there are too many: how many samples went with them.
    ///
    /// # Errors
    /// Errors of the database; nothing is added then.
    pub(super) fn put(
        &mut self,
        requests: &[Request],
        (at_ms, series): (i64, Option<&BTreeSet<Labels>>),
        bounds: Bounds,
    ) -> Result<i64, QueueError> {
        let mut bytes = self.bytes;
        let mut put = |connection: &mut Connection| {
            let writing = connection.transaction()?;
            for request in requests {
                let version = match request.version {
                    Version::One => 1,
                    Version::Two => 2,
                };
                writing.execute(
                    "INSERT INTO request (at_ms, version, samples, body) VALUES (?1, ?2, ?3, ?4)",
                    params![at_ms, version, request.samples, request.body],
                )?;
                bytes += size(request);
            }
            match series {
                Some(series) => {
                    let json = serde_json::to_string(series).unwrap_or_default();
                    writing.execute(
                        "INSERT INTO round (one, at_ms, series) VALUES (1, ?1, ?2)
                         ON CONFLICT (one) DO UPDATE SET at_ms = excluded.at_ms, series = excluded.series",
                        params![at_ms, json],
                    )?;
                }
                None => {
                    writing.execute("UPDATE round SET at_ms = ?1", [at_ms])?;
                }
            }
            let given_up = trim(&writing, &mut bytes, at_ms, bounds)?;
            count(&writing, "given_up", given_up)?;
            writing.commit()?;
            Ok(given_up)
        };
        let done = put(&mut self.connection).map_err(|source| error(&self.path, source))?;
        self.bytes = bytes;
        Ok(done)
    }

    /// The request that is sent next, with its number.
    pub(super) fn first(&self) -> Result<Option<(i64, Request)>, QueueError> {
        self.connection
            .query_row(
                "SELECT id, version, samples, body FROM request ORDER BY id LIMIT 1",
                [],
                |row| {
                    let request = Request {
                        version: match row.get(1)? {
                            2 => Version::Two,
                            _ => Version::One,
                        },
                        samples: row.get(2)?,
                        body: row.get(3)?,
                    };
                    Ok((row.get(0)?, request))
                },
            )
            .optional()
            .map_err(|source| error(&self.path, source))
    }

    /// Removes a request of which so many samples were written. One that was given up meanwhile is not counted again.
    pub(super) fn settle(
        &mut self,
        (id, request): (i64, &Request),
        written: u32,
    ) -> Result<(), QueueError> {
        let settle = |connection: &mut Connection| {
            let writing = connection.transaction()?;
            let removed = writing.execute("DELETE FROM request WHERE id = ?1", [id])?;
            if removed > 0 {
                count(&writing, "sent", written.into())?;
                let refused = request.samples.saturating_sub(written);
                count(&writing, "refused", refused.into())?;
            }
            writing.commit()?;
            Ok(removed > 0)
        };
        let removed = settle(&mut self.connection).map_err(|source| error(&self.path, source))?;
        if removed {
            self.bytes = self.bytes.saturating_sub(size(request));
        }
        Ok(())
    }
}

/// The size of its body.
fn size(request: &Request) -> i64 {
    i64::try_from(request.body.len()).unwrap_or(i64::MAX)
}

/// Makes the tables where there are none.
fn make(connection: &mut Connection, version: i64) -> rusqlite::Result<()> {
    // What was sent is given back to the disk. It counts where it stands before the first table.
    connection.pragma_update(None, "auto_vacuum", "FULL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // What was written outlives the process; a power cut may take what the disk had not been given yet.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    if version < VERSION {
        let making = connection.transaction()?;
        making.execute_batch(TABLES)?;
        making.pragma_update(None, "application_id", APPLICATION)?;
        making.pragma_update(None, "user_version", VERSION)?;
        making.commit()?;
    }
    Ok(())
}

/// Removes the oldest requests of more bytes or of a greater age than may wait: how many samples they had.
fn trim(
    writing: &Connection,
    bytes: &mut i64,
    now_ms: i64,
    bounds: Bounds,
) -> rusqlite::Result<i64> {
    let mut given_up = 0;
    let mut oldest = writing
        .prepare("SELECT id, at_ms, samples, length(body) FROM request ORDER BY id LIMIT 1")?;
    loop {
        let row = oldest.query_row([], |row| {
            let ages: (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok((ages, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?))
        });
        let Some(((id, at_ms), samples, length)) = row.optional()? else {
            return Ok(given_up);
        };
        if *bytes <= bounds.bytes && now_ms.saturating_sub(at_ms) <= bounds.age_ms {
            return Ok(given_up);
        }
        writing.execute("DELETE FROM request WHERE id = ?1", [id])?;
        *bytes = bytes.saturating_sub(length);
        given_up += samples;
    }
}

fn count(writing: &Connection, result: &str, samples: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE counted SET samples = samples + ?2 WHERE result = ?1";
    writing.execute(sql, params![result, samples]).map(drop)
}

/// An error of the database, in the words that help.
fn error(path: &Path, source: rusqlite::Error) -> QueueError {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match source.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => QueueError::Damaged {
            path: path.to_owned(),
            why: source.to_string(),
        },
        _ => QueueError::Sqlite {
            path: path.to_owned(),
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        bytes: 1000,
        age_ms: 3_600_000,
    };

    fn request(samples: u32, byte: u8) -> Request {
        Request {
            version: Version::Two,
            samples,
            body: vec![byte; 100],
        }
    }

    fn counts(path: &Path) -> (i64, i64, [i64; 3]) {
        let look = look(path).unwrap().unwrap();
        let of = |result: &str| {
            let found = look.counts.iter().find(|(name, _)| name == result);
            found.unwrap().1
        };
        (
            look.samples,
            look.bytes,
            ["sent", "refused", "given_up"].map(of),
        )
    }

    #[test]
    fn the_queue_and_its_counts_survive_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(&folder.path().join("w.db"));
        assert_eq!(path.file_name().unwrap(), "w.db.remote-write");
        assert_eq!(look(&path).unwrap(), None);
        let series = BTreeSet::from([vec![("a".to_owned(), "b".to_owned())]]);
        let mut queue = Queue::open(&path).unwrap();
        assert_eq!(queue.last().unwrap(), None);
        queue
            .put(&[request(3, 1), request(4, 2)], (5, Some(&series)), BOUNDS)
            .unwrap();
        queue.put(&[request(5, 3)], (7, None), BOUNDS).unwrap();
        drop(queue);
        let mut queue = Queue::open(&path).unwrap();
        assert_eq!(queue.last().unwrap(), Some((7, series)));
        let mut bodies = Vec::new();
        while let Some((id, request)) = queue.first().unwrap() {
            queue.settle((id, &request), request.samples - 1).unwrap();
            bodies.push(request.body[0]);
        }
        assert_eq!(bodies, [1, 2, 3]);
        assert_eq!(counts(&path), (0, 0, [9, 3, 0]));
    }

    #[test]
    fn what_waits_is_bounded_by_bytes_and_by_age() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("q");
        let mut queue = Queue::open(&path).unwrap();
        for at in 0..12 {
            let given_up = queue.put(&[request(2, at)], (i64::from(at), None), BOUNDS);
            assert_eq!(given_up.unwrap(), if at < 10 { 0 } else { 2 });
        }
        assert_eq!(counts(&path), (20, 1000, [0, 0, 4]));
        let (id, oldest) = queue.first().unwrap().unwrap();
        assert_eq!(oldest.body[0], 2);
        // An hour after the fourth; the fifth stays.
        let later = (3 + BOUNDS.age_ms + 1, None);
        assert_eq!(queue.put(&[], later, BOUNDS).unwrap(), 4);
        // What was under way meanwhile is given up already.
        queue.settle((id, &oldest), 2).unwrap();
        assert_eq!(counts(&path), (16, 800, [0, 0, 8]));
        assert_eq!(queue.first().unwrap().unwrap().1.body[0], 4);
    }

    #[test]
    fn what_is_no_queue_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("q");
        std::fs::write(&path, "x".repeat(5000)).unwrap();
        let why = |path: &Path| Queue::open(path).unwrap_err().to_string();
        assert!(why(&path).contains("is damaged"), "{}", why(&path));
        assert!(look(&path).is_err());
        let other = folder.path().join("other");
        let connection = Connection::open(&other).unwrap();
        connection.execute_batch("CREATE TABLE a (b)").unwrap();
        assert!(why(&other).contains("of something else"), "{}", why(&other));
        let newer = folder.path().join("newer");
        drop(Queue::open(&newer).unwrap());
        let connection = Connection::open(&newer).unwrap();
        connection.pragma_update(None, "user_version", 9).unwrap();
        assert!(why(&newer).contains("newer plumb"), "{}", why(&newer));
    }
}
