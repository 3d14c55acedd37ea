//! The Runs of several checks, each saved in a directory as it ends.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plumb_model::run::Run;

use crate::output::{json, message, read_run, say};
use crate::save::save;
use crate::usage::wrong;

/// The checks that were made.
pub(super) struct Kept {
    /// The directory; none where they are not to be saved.
    folder: Option<PathBuf>,
    /// The beginning of the name of a check's file.
    stem: fn(&Run) -> String,
    pub(super) runs: Vec<Run>,
    /// Those that could not be saved, as on a full disk, by the place in `runs`.
    unsaved: Vec<usize>,
}

impl Kept {
    /// With nothing in it yet, whatever is in the directory.
    pub(super) fn begin(folder: Option<&Path>, stem: fn(&Run) -> String) -> anyhow::Result<Self> {
        if let Some(folder) = folder {
            let name = folder.display();
            if folder.is_file() {
                return Err(wrong(format!(
                    "{name} is a file: with several checks, -o names a directory, in which each is saved"
                )));
            }
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the directory {name}"))?;
        }
        Ok(Self {
            folder: folder.map(Path::to_owned),
            stem,
            runs: Vec::new(),
            unsaved: Vec::new(),
        })
    }

    /// With what a series that was interrupted has left in the directory.
    pub(super) fn open(folder: &Path, stem: fn(&Run) -> String) -> anyhow::Result<Self> {
        let mut kept = Self::begin(Some(folder), stem)?;
        let name = folder.display();
        let entries = fs::read_dir(folder).with_context(|| format!("cannot read {name}"))?;
        for entry in entries.flatten() {
            let file = entry.path();
            if file.extension().is_some_and(|end| end == "json") {
                match read_run(&file) {
                    Ok(run) => kept.runs.push(run),
                    Err(why) => say(format_args!("left out: {}", message(&why))),
                }
            }
        }
        if !kept.runs.is_empty() {
            say(format_args!(
                "{} checks are in {name} already, and count",
                kept.runs.len()
            ));
        }
        Ok(kept)
    }

    /// Saves a check, and those before it that could not be saved.
    pub(super) fn keep(&mut self, run: Run) {
        self.unsaved.push(self.runs.len());
        self.runs.push(run);
        if let Err(why) = self.save_rest() {
            say(format_args!(
                "{}: it is kept in memory, and saved with the next check if it can be",
                message(&why)
            ));
        }
    }

    /// Saves what is not saved yet.
    pub(super) fn save_rest(&mut self) -> anyhow::Result<()> {
        while let Some(at) = self.unsaved.first().copied() {
            if let Some((run, folder)) = self.runs.get(at).zip(self.folder.as_ref()) {
                save(&free_name(folder, &(self.stem)(run), run), json(run)?)?;
            }
            self.unsaved.remove(0);
        }
        Ok(())
    }
}

/// A name that follows from the time, and that no file has.
fn free_name(folder: &Path, stem: &str, run: &Run) -> PathBuf {
    let whole = run.started.split('.').next().unwrap_or_default();
    let time: String = whole
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    let named = |end: &str| folder.join(format!("{stem}-{time}{end}.json"));
    let mut names = (1..).map(|more| named(&format!("-{more}")));
    let first = named("");
    match first.exists() {
        false => first,
        true => names.find(|name| !name.exists()).unwrap_or(first),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::usage::UsageError;

    fn check(second: u32) -> Run {
        let mut run = Run::from_json(include_str!("../../../model/fixtures/run-2.json")).unwrap();
        run.started = format!("2026-11-27T10:00:{second:02}.5Z");
        run
    }

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    fn open(folder: &Path) -> anyhow::Result<Kept> {
        Kept::open(folder, |_| "check".to_owned())
    }

    #[test]
    fn what_cannot_be_saved_is_saved_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("checks");
        let mut kept = open(&inner).unwrap();
        kept.keep(check(1));
        assert_eq!(files(&inner), 1);
        // Nothing can be written where the directory is gone, as on a full disk.
        fs::rename(&inner, folder.path().join("away")).unwrap();
        kept.keep(check(2));
        kept.keep(check(3));
        assert_eq!((kept.runs.len(), kept.unsaved.len()), (3, 2));
        assert!(kept.save_rest().is_err());
        fs::rename(folder.path().join("away"), &inner).unwrap();
        kept.keep(check(3));
        assert_eq!(files(&inner), 4);
        assert!(kept.save_rest().is_ok());
        fs::write(inner.join("other.json"), "{").unwrap();
        assert_eq!(open(&inner).unwrap().runs.len(), 4);
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(open(&file).is_err_and(|why| why.is::<UsageError>()));
    }

    #[test]
    fn what_is_not_to_be_saved_is_kept_in_memory() {
        let mut kept = Kept::begin(None, |_| "check".to_owned()).unwrap();
        kept.keep(check(1));
        assert_eq!((kept.runs.len(), kept.unsaved.len()), (1, 0));
    }
}
