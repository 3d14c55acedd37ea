//! A copy of a database that may be written to meanwhile: SQLite makes it of one state (VACUUM INTO), and it has its name only
//! when it is whole and on the disk.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::OpenFlags;

use super::tables::{StoreError, error, version};
use super::{Connection, connected_to_read};

/// Copies the database into a file that is not there yet, and returns its size in bytes.
///
/// # Errors
/// When there is no such database, it is of something else or damaged, or the copy cannot be written; nothing stays of it then.
pub fn back_up(from: &Path, to: &Path) -> Result<u64, StoreError> {
    let connection = connected_to_read(from)?;
    // A database of an older plumb is copied unchanged.
    version(&connection, from)?;
    if fs::symlink_metadata(to).is_ok() {
        return Err(StoreError::There { path: to.into() });
    }
    let part = Part::beside(to);
    let failed = |source| StoreError::File {
        path: to.to_owned(),
        source,
    };
    // SQLite takes names of files in UTF-8.
    let name = part.0.to_str().ok_or_else(|| {
        failed(std::io::Error::other(
            "the name is not UTF-8: choose another one",
        ))
    })?;
    connection
        .execute("VACUUM INTO ?1", [name])
        .map_err(|source| error(from, source))?;
    check(&part.0)?;
    let file = File::open(&part.0).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    // Unlike a renaming it replaces nothing that came meanwhile.
    fs::hard_link(&part.0, to).map_err(failed)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Some file systems do not sync directories.
    let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    Ok(bytes)
}

/// Sees that the copy can be read, all of it.
fn check(copy: &Path) -> Result<(), StoreError> {
    let failed = |source| error(copy, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(copy, flags).map_err(failed)?;
    let said: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(failed)?;
    match said.as_str() {
        "ok" => Ok(()),
        why => Err(StoreError::Damaged {
            path: copy.into(),
            why: why.replace('\n', " "),
        }),
    }
}

/// A copy under way, which goes when it is done with.
struct Part(PathBuf);

impl Part {
    fn beside(to: &Path) -> Self {
        let mut name = OsString::from(".");
        name.push(to.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        Self(to.with_file_name(name))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It need not have been made.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::sample::Sample;
    use crate::store::Store;

    fn pair(s: i64) -> Vec<(String, Sample)> {
        let of = |name: &str, rtt| (name.to_owned(), Sample::timed(s * 1_000_000, rtt));
        vec![of("a", Some(Duration::from_millis(7))), of("b", None)]
    }

    /// Whatever is written meanwhile, a copy has whole transactions: both targets have the same samples in it.
    #[test]
    fn a_database_that_is_written_to_is_copied_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.db");
        let mut store = Store::open(&path).unwrap();
        store.append(&pair(0)).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut written = 1;
                while !stop.load(Ordering::Relaxed) {
                    store.append(&pair(written)).unwrap();
                    written += 1;
                }
                written
            });
            let mut before = 0;
            for number in 0..5 {
                let copy = folder.path().join(format!("copy-{number}.db"));
                let bytes = back_up(&path, &copy).unwrap();
                assert_eq!(bytes, fs::metadata(&copy).unwrap().len());
                let copied = Store::open_to_read(&copy).unwrap();
                let [a, b] = ["a", "b"].map(|name| copied.samples(name, 0).unwrap().len());
                assert!(a == b && a > before, "{a} {b} {before}");
                before = a;
                std::thread::sleep(Duration::from_millis(20));
            }
            stop.store(true, Ordering::Relaxed);
            assert!(usize::try_from(writer.join().unwrap()).unwrap() >= before);
        });
        // A copy is a database that can be gone on with.
        Store::open(&folder.path().join("copy-0.db")).unwrap();
        let parts = fs::read_dir(folder.path()).unwrap();
        let names = parts.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(names.into_iter().all(|name| !name.ends_with(".part")));
    }

    #[test]
    fn nothing_is_replaced_and_nothing_of_something_else_copied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.db");
        let copy = folder.path().join("copy.db");
        let refused = |from: &Path, to: &Path| back_up(from, to).unwrap_err().to_string();
        assert!(refused(&path, &copy).contains("there is no history"));
        drop(Store::open(&path).unwrap());
        let why = refused(&path, &path);
        assert!(why.contains("is there already"), "{why}");
        let why = refused(&path, &folder.path().join("none/copy.db"));
        assert!(why.contains("unable to open"), "{why}");
        fs::write(&copy, "no database".repeat(1000)).unwrap();
        let why = refused(&copy, &folder.path().join("other.db"));
        assert!(why.contains("is damaged"), "{why}");
        assert_eq!(
            fs::read_dir(folder.path())
                .unwrap()
                .filter(|e| {
                    e.as_ref()
                        .unwrap()
                        .file_name()
                        .to_str()
                        .unwrap()
                        .contains("part")
                })
                .count(),
            0
        );
    }
}
