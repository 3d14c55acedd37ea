//! What is read of a history: by the file that says what is watched, or by the database itself, such as a backup.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use plumb_net::clock::realtime_ns;
use plumb_watch::config::{Config, ConfigError};
use plumb_watch::store::Store;

use crate::usage::wrong;

/// How every SQLite database begins (SQLite's "Database File Format", section 1.3).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Which history, and what of it.
#[derive(Args)]
pub(super) struct Source {
    /// The file that says what is watched, or a database such as a backup
    file: PathBuf,
    /// Only this target; may be given again [default: all that are known]
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
}

impl Source {
    /// The history, and the names of the targets that are asked for: in the order of the file, and then what it has no more.
    pub(super) fn open(&self) -> anyhow::Result<(Store, Vec<String>)> {
        let (path, config) = located(&self.file)?;
        let mut names = names_of(config.as_ref());
        let store = Store::open_to_read(&path)?;
        let mut known = store.targets()?;
        // Of tens of thousands.
        let [of_history, of_file] =
            [&known, &names].map(|names| names.iter().cloned().collect::<HashSet<String>>());
        names.retain(|name| of_history.contains(name));
        known.retain(|name| !of_file.contains(name));
        names.append(&mut known);
        self.choose(&mut names, "target")?;
        Ok((store, names))
    }

    /// The history, and the names of the places that flows were sent to and that are asked for.
    pub(super) fn open_flows(&self) -> anyhow::Result<(Store, Vec<String>)> {
        let (path, _) = located(&self.file)?;
        let store = Store::open_to_read(&path)?;
        let sources = store.flow_sources()?.into_iter();
        let mut names: Vec<String> = sources.map(|(name, ..)| name).collect();
        self.choose(&mut names, "[[flows]]")?;
        Ok((store, names))
    }

    /// Leaves the names that are asked for.
    fn choose(&self, names: &mut Vec<String>, what: &str) -> anyhow::Result<()> {
        if let Some(missing) = self.targets.iter().find(|name| !names.contains(name)) {
            return Err(wrong(format!(
                "the history has no {what} '{missing}'; it has {}",
                match names.is_empty() {
                    true => "none".to_owned(),
                    false => names.join(", "),
                }
            )));
        }
        names.retain(|name| self.targets.is_empty() || self.targets.contains(name));
        Ok(())
    }

    /// The same without the series of targets, which have no outages, as far as the file says which those are; one that is
    /// named is there.
    pub(super) fn open_without_series(&self) -> anyhow::Result<(Store, Vec<String>)> {
        let (store, mut names) = self.open()?;
        let (_, config) = located(&self.file)?;
        let is_series = |name: &str| {
            config
                .as_ref()
                .is_some_and(|config| config.series(name).is_some())
        };
        names.retain(|name| self.targets.contains(name) || !is_series(name));
        Ok((store, names))
    }
}

/// The names of the targets of a file.
fn names_of(config: Option<&Config>) -> Vec<String> {
    let targets = config.iter().flat_map(|config| &config.targets);
    targets.map(|target| target.name.clone()).collect()
}

/// Where the database is, and what the file says, if it is one that says what is watched.
pub(super) fn located(file: &Path) -> anyhow::Result<(PathBuf, Option<Config>)> {
    let mut begin = [0; MAGIC.len()];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut begin));
    // What cannot be read, the reader of the file says.
    if read.is_ok() && begin == *MAGIC {
        return Ok((file.to_owned(), None));
    }
    let config = Config::read(file).map_err(in_words)?;
    Ok((config.store.clone(), Some(config)))
}

/// The time of day, s since 1970.
pub(super) fn now_s() -> i64 {
    i64::try_from(realtime_ns() / 1_000_000_000).unwrap_or(i64::MAX)
}

/// What is wrong in a file was written by a user, as what is typed.
pub(super) fn in_words(error: ConfigError) -> anyhow::Error {
    match error {
        ConfigError::Wrong(words) => wrong(words),
        error @ ConfigError::Read { .. } => error.into(),
    }
}
