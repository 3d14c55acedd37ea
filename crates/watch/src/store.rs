//! The history, in one SQLite database: samples packed by target and minute for a day, then distributions of windows that
//! grow with age, and outages for ever.

mod alarms;
pub mod backup;
mod flows;
mod months;
mod outages;
mod queue;
mod samples;
mod states;
mod summed;
mod tables;
mod width;

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use crate::alarm::engine::History;
use crate::alarm::record::Alarm;
use crate::availability::Availability;
use crate::distribution::Distribution;
use crate::flows::dimension::Dimension;
use crate::flows::listening::Heard;
use crate::flows::state::State;
use crate::flows::table::Top;
use crate::month::Month;
use crate::outage::Outages;
use crate::sample::Sample;
pub use queue::Queued;
pub use samples::KEPT_S;
pub use tables::StoreError;
use tables::error;
pub use width::Width;

/// How long another connection is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// The database, open to read or to write.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// Numbers of targets, by their names.
    ids: HashMap<String, i64>,
    /// Held by the process that writes.
    _lock: Option<File>,
}

impl Store {
    /// Opens a database to write in, and makes it where there is none.
    ///
    /// # Errors
    /// When it is newer, damaged or another program's, cannot be written, or another process writes in it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = lock(path)?;
        let failed = |source| error(path, source);
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        tables::ensure(&mut connection, path)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            ids: HashMap::new(),
            _lock: Some(lock),
        })
    }

    /// Opens a database that exists to read it alone.
    ///
    /// # Errors
    /// When there is none, it is another program's, or of another version, or cannot be opened.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        let connection = connected_to_read(path)?;
        tables::check(&connection, path)?;
        Ok(Self {
            connection,
            path: path.to_owned(),
            ids: HashMap::new(),
            _lock: None,
        })
    }

    /// Notes how often each target is probed.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn note_intervals<'a>(
        &mut self,
        targets: impl Iterator<Item = (&'a str, Duration)>,
    ) -> Result<(), StoreError> {
        self.write(|writing| {
            let mut put = writing.prepare(
                "INSERT INTO target (name, every_us) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET every_us = excluded.every_us",
            )?;
            for (name, every) in targets {
                let every_us = i64::try_from(every.as_micros()).unwrap_or(i64::MAX);
                put.execute(params![name, every_us])?;
            }
            Ok(())
        })
    }

    /// Writes samples by the names of their targets: when this returns, all of them outlive the process.
    ///
    /// # Errors
    /// Errors of the database; no sample is written then.
    pub fn append(&mut self, samples: &[(String, Sample)]) -> Result<(), StoreError> {
        let mut ids = std::mem::take(&mut self.ids);
        let done = self.write(|writing| samples::append(writing, samples, &mut ids));
        // Those that were given in what was not written are not known.
        if done.is_ok() {
            self.ids = ids;
        }
        done
    }

    /// Sums up the windows that are over, and removes what is too old. `now_s` is the time of day since 1970.
    ///
    /// # Errors
    /// Errors of the database; nothing is changed then.
    pub fn sum_up(&mut self, now_s: i64) -> Result<(), StoreError> {
        self.write(|writing| {
            samples::settle(writing, now_s)?;
            for width in Width::ALL {
                let targets = summed::sum_up(writing, width, now_s)?;
                if width == Width::QuarterHour {
                    for target in targets {
                        outages::settle(writing, target)?;
                    }
                }
            }
            let targets: Vec<i64> = writing
                .prepare("SELECT id FROM target")?
                .query_map([], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            for target in targets {
                samples::remove_old(writing, target, now_s)?;
                for width in Width::ALL {
                    summed::remove_old(writing, target, width, now_s)?;
                }
            }
            flows::sum_up(writing, now_s)
        })
    }

    /// Writes what was heard of flows in minutes that are over.
    ///
    /// # Errors
    /// Errors of the database; nothing of it is written then.
    pub(crate) fn append_flows(&mut self, heard: &[Heard]) -> Result<(), StoreError> {
        self.write(|writing| heard.iter().try_for_each(|one| flows::append(writing, one)))
    }

    /// The largest sums of a place in one dimension, of windows that begin from `from_s` until before `to_s`, with when each
    /// begins.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn flows(
        &self,
        source: &str,
        dimension: Dimension,
        width: Width,
        within: (i64, i64),
    ) -> Result<Vec<(i64, Top)>, StoreError> {
        flows::read(&self.connection, source, dimension, width, within)
            .map_err(|source| error(&self.path, source))
    }

    /// The places that flows were sent to, with what was known of their exporters last, and when, s since 1970.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn flow_sources(&self) -> Result<Vec<(String, i64, State)>, StoreError> {
        flows::sources(&self.connection).map_err(|source| error(&self.path, source))
    }

    /// The samples of a target sent from `from_s` on, in the order of time.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn samples(&self, name: &str, from_s: i64) -> Result<Vec<Sample>, StoreError> {
        self.read(name, |connection, target| {
            let mut found = samples::read(connection, target, from_s, i64::MAX)?;
            let from_us = from_s.saturating_mul(1_000_000);
            found.retain(|sample| sample.sent_us >= from_us);
            Ok(found)
        })
    }

    /// The distributions of a target's windows that begin from `from_s` until before `to_s`, with when each begins.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn summed(
        &self,
        name: &str,
        width: Width,
        (from_s, to_s): (i64, i64),
    ) -> Result<Vec<(i64, Distribution)>, StoreError> {
        self.read(name, |connection, target| {
            summed::read(connection, target, width, (from_s, to_s))
        })
    }

    /// The outages of a target that ended at `from_s` or later or last, and how long was watched since.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn outages(&self, name: &str, from_s: i64) -> Result<Outages, StoreError> {
        let read = || match samples::target_of(&self.connection, name)? {
            Some(target) => outages::read(&self.connection, target, from_s),
            None => Ok(Outages {
                outages: Vec::new(),
                watched: Duration::ZERO,
                from_us: from_s.saturating_mul(1_000_000),
            }),
        };
        read().map_err(|source| error(&self.path, source))
    }

    /// How a target fared in each month up to `now_s`, the first one first, or in `only` that one.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn months(
        &self,
        name: &str,
        only: Option<Month>,
        now_s: i64,
    ) -> Result<Vec<Availability>, StoreError> {
        self.read(name, |connection, target| {
            months::read(connection, target, only, now_s)
        })
    }

    /// Has all that is read from here on be of one time, whatever is written meanwhile.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn hold(&self) -> Result<(), StoreError> {
        let begun = self.connection.execute_batch("BEGIN");
        begun.map_err(|source| error(&self.path, source))
    }

    /// The names of all targets that the history knows, in the order in which they came.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn targets(&self) -> Result<Vec<String>, StoreError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut query = self
                .connection
                .prepare("SELECT name FROM target ORDER BY id")?;
            query.query_map([], |row| row.get(0))?.collect()
        };
        read().map_err(|source| error(&self.path, source))
    }

    /// What was seen last of a target of what is kept when it changes.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn state(&self, name: &str) -> Result<Option<String>, StoreError> {
        states::last(&self.connection, name).map_err(|source| error(&self.path, source))
    }

    /// Keeps what was seen of a target then, µs since 1970.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn note_state(&mut self, name: &str, at_us: i64, words: &str) -> Result<(), StoreError> {
        self.write(|writing| states::note(writing, name, at_us, words))
    }

    /// The latest changes of what was seen of a target, so many at most, with when each was seen first.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn states(&self, name: &str, most: usize) -> Result<Vec<(i64, String)>, StoreError> {
        states::of_target(&self.connection, name, most).map_err(|source| error(&self.path, source))
    }

    /// Writes alarms that were raised or cleared, and the message of them for the deliveries of these names.
    ///
    /// # Errors
    /// Errors of the database; nothing of it is written then.
    pub fn write_alarms<'a>(
        &mut self,
        alarms: &[Alarm],
        (message, now_s): (&str, i64),
        deliveries: impl Iterator<Item = &'a str>,
    ) -> Result<(), StoreError> {
        self.write(|writing| {
            alarms::write(writing, alarms)?;
            for name in deliveries {
                queue::put(writing, name, message, now_s)?;
            }
            Ok(())
        })
    }

    /// The oldest message of a delivery, where it is time to send it.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn due(&self, delivery: &str, now_s: i64) -> Result<Option<Queued>, StoreError> {
        queue::due(&self.connection, delivery, now_s).map_err(|source| error(&self.path, source))
    }

    /// Has a message that could not be sent wait until then, or where there is no such time removes it, as one that was
    /// sent.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn settle(&mut self, id: i64, again_s: Option<i64>) -> Result<(), StoreError> {
        self.write(|writing| match again_s {
            Some(next_s) => queue::postpone(writing, id, next_s),
            None => queue::remove(writing, id),
        })
    }

    /// All alarms that stand, the oldest first.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn standing(&self) -> Result<Vec<Alarm>, StoreError> {
        alarms::standing(&self.connection).map_err(|source| error(&self.path, source))
    }

    /// All alarms that stand, and those that were cleared at that time or later, the oldest first.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn alarms_since(&self, cleared_s: i64) -> Result<Vec<Alarm>, StoreError> {
        alarms::since(&self.connection, cleared_s).map_err(|source| error(&self.path, source))
    }

    /// The alarms of a target that stood at some time from `from_s` until before `to_s`, the oldest first.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn alarms_within(
        &self,
        name: &str,
        (from_s, to_s): (i64, i64),
    ) -> Result<Vec<Alarm>, StoreError> {
        alarms::within(&self.connection, name, (from_s, to_s))
            .map_err(|source| error(&self.path, source))
    }

    /// The latest alarms of a target, so many at most.
    ///
    /// # Errors
    /// Errors of the database.
    pub fn alarms(&self, name: &str, most: usize) -> Result<Vec<Alarm>, StoreError> {
        alarms::of_target(&self.connection, name, most).map_err(|source| error(&self.path, source))
    }

    /// Changes all that `change` does, or nothing.
    fn write(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let write = |connection: &mut Connection| {
            let writing = connection.transaction()?;
            change(&writing)?;
            writing.commit()
        };
        write(&mut self.connection).map_err(|source| error(&self.path, source))
    }

    /// Reads of a target by its name; nothing where there is none of that name.
    fn read<T>(
        &self,
        name: &str,
        query: impl FnOnce(&Connection, i64) -> rusqlite::Result<Vec<T>>,
    ) -> Result<Vec<T>, StoreError> {
        let read = || match samples::target_of(&self.connection, name)? {
            Some(target) => query(&self.connection, target),
            None => Ok(Vec::new()),
        };
        read().map_err(|source| error(&self.path, source))
    }
}

/// A connection that cannot change anything.
fn connected_to_read(path: &Path) -> Result<Connection, StoreError> {
    let failed = |source| error(path, source);
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => return Err(StoreError::None { path: path.into() }),
        Err(source) => {
            let path = path.to_owned();
            return Err(StoreError::File { path, source });
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    Ok(connection)
}

impl History for Store {
    type Error = StoreError;

    fn samples(&self, target: &str, from_s: i64) -> Result<Vec<Sample>, StoreError> {
        Store::samples(self, target, from_s)
    }

    fn quarters(
        &self,
        target: &str,
        within: (i64, i64),
    ) -> Result<Vec<(i64, Distribution)>, StoreError> {
        self.summed(target, Width::QuarterHour, within)
    }
}

/// Keeps others from writing. A file beside the database, whose own locks SQLite would lose (fcntl(2): they end with any
/// descriptor of the file).
fn lock(path: &Path) -> Result<File, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let path = path.to_owned();
    let opened = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&name);
    let file = match opened {
        Ok(file) => file,
        Err(source) => return Err(StoreError::File { path, source }),
    };
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Taken { path }),
        Err(TryLockError::Error(source)) => Err(StoreError::File { path, source }),
    }
}

#[cfg(test)]
mod tests;
