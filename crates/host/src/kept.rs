//! What is kept of changes until they are undone: files in a directory of which one plumb at a time has the lock, each
//! on disk before anything is changed, whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use plumb_model::json;
use serde::Serialize;

/// Larger than any journal, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The kernel's name for this start of the machine (random(4), boot_id).
pub(crate) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

/// The journal cannot be kept, or not be understood.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// No place for it.
    #[error("cannot keep a journal in {directory}: {source}: nothing was changed; run it as root")]
    NoPlace {
        /// Where it should be.
        directory: PathBuf,
        source: io::Error,
    },
    /// Another plumb is at it.
    #[error(
        "another plumb is changing this machine at the moment: nothing was changed; wait until it is done"
    )]
    Busy,
    /// Not the journal that plumb wrote.
    #[error(
        "the journal {file} is damaged ({reason}): nothing was changed. It holds what the settings were: read it, put them back by hand, and then remove it"
    )]
    Corrupt {
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The disk does not take it.
    #[error("cannot write the journal {file}: {source}")]
    Write { file: PathBuf, source: io::Error },
}

/// Whether the machine was started anew since `boot`.
pub(crate) fn is_another_boot(boot: &str) -> bool {
    let now = self::boot();
    // Without a boot id from the kernel, no restart is assumed.
    !now.is_empty() && boot != now
}

/// Name of the file that is locked.
const LOCK: &str = "lock";

/// How often a lock is tried that others take away: each time another plumb had finished meanwhile.
const TRIES: usize = 100;

/// What is not there any more when it is opened, or is there again when it is made.
const COMES_AND_GOES: [io::ErrorKind; 2] = [io::ErrorKind::NotFound, io::ErrorKind::AlreadyExists];

/// A directory that is this process's as long as this lives. It goes with it where nothing is kept in it.
#[derive(Debug)]
pub(crate) struct Locked {
    path: PathBuf,
    _lock: Flock<File>,
}

impl Locked {
    /// Makes the directory if need be, and locks it.
    pub(crate) fn lock(path: &Path) -> Result<Self, JournalError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::try_lock(path) {
                Err(JournalError::NoPlace { source, .. })
                    if COMES_AND_GOES.contains(&source.kind()) && tries < TRIES => {}
                locked => return locked,
            }
        }
    }

    /// Fails by one of [`COMES_AND_GOES`] where another plumb took directory or lock away in between, or made it.
    fn try_lock(path: &Path) -> Result<Self, JournalError> {
        let no_place = |source| JournalError::NoPlace {
            directory: path.to_owned(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(path)
            .map_err(no_place)?;
        let name = path.join(LOCK);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&name)
            .map_err(no_place)?;
        let lock =
            Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(
                |(_, errno)| match errno {
                    Errno::EWOULDBLOCK => JournalError::Busy,
                    errno => no_place(errno.into()),
                },
            )?;
        let of = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let held = lock.metadata().map(of).map_err(no_place)?;
        let there = fs::metadata(&name).map(of).map_err(no_place)?;
        // A lock on a file that was removed excludes no other process.
        if held != there {
            return Err(no_place(io::ErrorKind::NotFound.into()));
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: lock,
        })
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a journal; when this returns, it is on disk.
    pub(crate) fn save(&self, name: &str, journal: &impl Serialize) -> Result<(), JournalError> {
        let file = self.file(name);
        let error = |source: io::Error| JournalError::Write {
            file: file.clone(),
            source,
        };
        let text = json::pretty(journal).map_err(|e| error(e.into()))? + "\n";
        // What could not be read again could not be undone.
        if text.len() as u64 > MOST_BYTES {
            return Err(error(io::ErrorKind::FileTooLarge.into()));
        }
        replace(&file, text.as_bytes()).map_err(error)
    }

    /// Takes a journal away.
    pub(crate) fn remove(&self, name: &str) -> Result<(), JournalError> {
        let file = self.file(name);
        fs::remove_file(&file)
            .and_then(|()| sync_directory(&self.path))
            .map_err(|source| JournalError::Write { file, source })
    }
}

impl Drop for Locked {
    /// Leaves nothing where nothing is kept. What is not empty stays, as does what may not be removed.
    fn drop(&mut self) {
        let others = fs::read_dir(&self.path).map(|mut entries| {
            entries.any(|entry| entry.map_or(true, |entry| entry.file_name() != LOCK))
        });
        if !others.unwrap_or(true) {
            let _ = fs::remove_file(self.path.join(LOCK));
            let mut directories = self.path.ancestors().take(2);
            let _ = directories.try_for_each(fs::remove_dir);
        }
    }
}

/// Reads a journal by `parse`, which says what is wrong with it; `None` where there is none.
pub(crate) fn read<T>(
    file: &Path,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, JournalError> {
    let corrupt = |reason: String| JournalError::Corrupt {
        file: file.to_owned(),
        reason,
    };
    match fs::metadata(file) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(corrupt(e.to_string())),
        Ok(meta) if meta.len() > MOST_BYTES => {
            return Err(corrupt(format!("{} bytes are too many", meta.len())));
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(file).map_err(|e| corrupt(e.to_string()))?;
    parse(&text).map(Some).map_err(corrupt)
}

/// Writes a file beside its place and moves it there, so that it is there whole or not at all; when this
/// returns, it is on disk.
pub(crate) fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let part = unfinished(file);
    let mut written = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o644)
        .open(&part)?;
    written.write_all(content)?;
    written.sync_all()?;
    fs::rename(&part, file)?;
    sync_directory(file.parent().unwrap_or(Path::new("/")))
}

/// Where a file is written before it is moved to its place.
pub(crate) fn unfinished(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!(".{name}.part"))
}

pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn below(path: &Path) -> BTreeSet<String> {
        let entries = fs::read_dir(path).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn a_lock_leaves_nothing_where_nothing_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("plumb/shape");
        let locked = Locked::lock(&path).unwrap();
        assert!(matches!(Locked::lock(&path), Err(JournalError::Busy)));
        locked.save("eth0.json", &1).unwrap();
        drop(locked);
        assert_eq!(
            below(&path),
            ["eth0.json", "lock"].map(str::to_owned).into()
        );
        Locked::lock(&path).unwrap().remove("eth0.json").unwrap();
        assert!(below(root.path()).is_empty());
        // The directory beside it has a file of another program.
        fs::create_dir_all(root.path().join("plumb/tune")).unwrap();
        drop(Locked::lock(&path).unwrap());
        assert_eq!(
            below(&root.path().join("plumb")),
            ["tune".to_owned()].into()
        );
    }

    /// However often it goes and comes again, one has it at a time.
    #[test]
    fn a_lock_that_comes_and_goes_is_of_one_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("plumb/shape");
        let (inside, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while taken.load(Ordering::SeqCst) < 2000 {
                        match Locked::lock(&path) {
                            Ok(_locked) => {
                                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                                taken.fetch_add(1, Ordering::SeqCst);
                                inside.fetch_sub(1, Ordering::SeqCst);
                            }
                            Err(error) => assert!(matches!(error, JournalError::Busy), "{error}"),
                        }
                    }
                });
            }
        });
        assert!(below(root.path()).is_empty());
    }
}
