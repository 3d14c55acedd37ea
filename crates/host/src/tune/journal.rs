//! The journal of what was changed, with the old values: one file, on disk before anything is changed,
//! and gone when all of it is undone. A lock beside it lets one plumb at a time do either.

use std::path::{Path, PathBuf};

use plumb_model::json;
use serde::{Deserialize, Serialize};

use super::interface::Setting;
pub use crate::kept::JournalError;
use crate::kept::{self, Locked, boot};

/// Version of the file; the number rises when a reader of the old one would misread it.
const SCHEMA: &str = "plumb.tune-journal/1";

/// Where the journal is, unless a test says otherwise. A laboratory's node has its own.
pub const STATE: &str = "/var/lib/plumb/tune";

/// The file that brings settings back at boot (sysctl.d(5)).
pub const DROP_IN: &str = "/etc/sysctl.d/90-plumb-tune.conf";

/// Something that is changed and put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Target {
    Sysctl(String),
    /// The outermost queueing discipline of an interface. Its value is kind and handle, or `default`
    /// where the kernel chose it.
    Qdisc(String),
    /// Another setting of an interface.
    Interface(String, Setting),
    /// A file; absent is a value too.
    File(PathBuf),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sysctl(key) => f.write_str(key),
            Self::Qdisc(device) => write!(f, "the queueing discipline of {device}"),
            Self::Interface(device, setting) => write!(f, "{setting} of {device}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A change: what was, and what is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub target: Target,
    /// What it had; `None` for a file that was not there.
    pub old: Option<String>,
    /// What it is given.
    pub new: Option<String>,
    /// What plans before gave it, on top of which this one came: plumb's values too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<String>,
}

impl Step {
    /// A change that is yet to be made; what it had is yet to be read.
    pub fn to(target: Target, new: String) -> Self {
        Self {
            target,
            old: None,
            new: Some(new),
            earlier: Vec::new(),
        }
    }
}

/// How far a plan has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Some of its changes may be made.
    Applying,
    /// All of them are.
    Applied,
    /// Some of them may be undone.
    Undoing,
}

/// What was changed, and how to put it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// Always the version of this file.
    pub schema: String,
    pub id: String,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// When it is to be undone by itself, RFC 3339 in UTC.
    pub until: Option<String>,
    /// Which start of the machine it was made in: values do not outlive it, files do.
    pub boot: String,
    /// How far it has come.
    pub state: State,
    /// The changes, in the order in which they are made.
    pub steps: Vec<Step>,
}

impl Journal {
    /// A journal of changes that are yet to be made.
    pub fn new(id: String, started: String, until: Option<String>, steps: Vec<Step>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            id,
            started,
            until,
            boot: boot(),
            state: State::Applying,
            steps,
        }
    }

    /// Whether the machine was started anew since.
    pub fn is_of_another_boot(&self) -> bool {
        kept::is_another_boot(&self.boot)
    }

    /// Whether a file brings its variables back at boot.
    pub fn is_permanent(&self) -> bool {
        let file = |step: &Step| matches!(step.target, Target::File(_));
        self.steps.iter().any(file)
    }

    /// Whether it set a variable, of those that `stand` as it set them, that no file brings back at boot.
    pub fn has_variables_lost_at_boot(&self, mut stand: impl FnMut(&Step) -> bool) -> bool {
        let file = |step: &Step| matches!(step.target, Target::File(_));
        let file = self.steps.iter().find(|step| file(step));
        let text = file
            .and_then(|step| step.new.as_deref())
            .unwrap_or_default();
        self.steps
            .iter()
            .any(|step| match (&step.target, &step.new) {
                (Target::Sysctl(key), Some(new)) => {
                    let line = format!("{key} = {new}");
                    !text.lines().any(|there| there == line) && stand(step)
                }
                _ => false,
            })
    }

    /// Whether nothing of it is left to undo: what does not come back at boot ended with the last one.
    fn is_over(&self) -> bool {
        self.is_of_another_boot() && !self.is_permanent()
    }
}

/// Where a journal is kept.
pub trait Store {
    /// The journal, if there is one that a new start of the machine has not made void.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    fn load(&mut self) -> Result<Option<Journal>, JournalError>;
    /// Writes it; when that returns, it is on disk.
    ///
    /// # Errors
    /// When it cannot be written.
    fn save(&mut self, journal: &Journal) -> Result<(), JournalError>;
    /// Removes the journal of what is undone.
    ///
    /// # Errors
    /// When it cannot be taken away.
    fn remove(&mut self) -> Result<(), JournalError>;
}

/// A journal in a directory, locked as long as this lives.
#[derive(Debug)]
pub struct Directory {
    locked: Locked,
    /// What may stand in it, so that a damaged journal writes nowhere else.
    drop_in: PathBuf,
}

/// Name of the file.
const FILE: &str = "journal.json";

impl Directory {
    /// Makes the directory if need be, and locks it.
    ///
    /// # Errors
    /// When it cannot be made, or another plumb holds it.
    pub fn lock(path: &Path, drop_in: &Path) -> Result<Self, JournalError> {
        Ok(Self {
            locked: Locked::lock(path)?,
            drop_in: drop_in.to_owned(),
        })
    }

    /// Reads a journal without locking it, to look at.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    pub fn look(path: &Path, drop_in: &Path) -> Result<Option<Journal>, JournalError> {
        read(&path.join(FILE), drop_in)
    }
}

impl Store for Directory {
    fn load(&mut self) -> Result<Option<Journal>, JournalError> {
        read(&self.locked.file(FILE), &self.drop_in)
    }

    fn save(&mut self, journal: &Journal) -> Result<(), JournalError> {
        self.locked.save(FILE, journal)
    }

    fn remove(&mut self) -> Result<(), JournalError> {
        self.locked.remove(FILE)
    }
}

fn read(file: &Path, drop_in: &Path) -> Result<Option<Journal>, JournalError> {
    let journal = kept::read(file, |text| parse(text, drop_in))?;
    Ok(journal.filter(|journal| !journal.is_over()))
}

/// Reads a journal, and refuses what plumb would not have written: the only file that it may name is the
/// drop-in, and names of variables and interfaces lead nowhere else.
fn parse(text: &str, drop_in: &Path) -> Result<Journal, String> {
    let journal: Journal = json::from_slice(text.as_bytes()).map_err(|e| e.to_string())?;
    if journal.schema != SCHEMA {
        let found: String = journal.schema.chars().take(40).collect();
        return Err(format!(
            "it says '{found}', and this plumb keeps '{SCHEMA}'"
        ));
    }
    let plain = |name: &str| {
        !name.is_empty() && !name.contains(['/', '\0']) && !name.contains(char::is_whitespace)
    };
    for step in &journal.steps {
        let sound = match &step.target {
            Target::Sysctl(key) => plain(key) && step.old.is_some() && step.new.is_some(),
            Target::Qdisc(device) | Target::Interface(device, _) => {
                plain(device) && step.old.is_some() && step.new.is_some()
            }
            Target::File(path) => path == drop_in,
        };
        if !sound {
            return Err(format!("plumb would not change {}", step.target));
        }
    }
    Ok(journal)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn journal() -> Journal {
        let step = |target, old: Option<&str>, new: &str| Step {
            old: old.map(str::to_owned),
            ..Step::to(target, new.to_owned())
        };
        Journal::new(
            "id".to_owned(),
            "2026-01-01T00:00:00Z".to_owned(),
            None,
            vec![
                step(
                    Target::Sysctl("net.ipv4.tcp_wmem".into()),
                    Some("1\t2\t3"),
                    "1 2 4",
                ),
                step(Target::Qdisc("eth0".into()), Some("default"), "fq 7586:"),
                step(
                    Target::Interface("eth0".into(), Setting::Offload("rx-gro".into())),
                    Some("off"),
                    "on",
                ),
                step(
                    Target::Interface("eth0".into(), Setting::DriverQueue(3)),
                    Some("3000"),
                    "1879048192",
                ),
                step(Target::File(DROP_IN.into()), None, "x\n"),
            ],
        )
    }

    #[test]
    fn written_and_read_back_by_one_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let open = || Directory::lock(place.path(), Path::new(DROP_IN));
        let mut store = open().unwrap();
        assert!(matches!(open(), Err(JournalError::Busy)));
        assert_eq!(store.load().unwrap(), None);
        store.save(&journal()).unwrap();
        drop(store);
        let mut store = open().unwrap();
        assert_eq!(store.load().unwrap(), Some(journal()));
        store.remove().unwrap();
        assert_eq!(store.load().unwrap(), None);
    }

    /// A start of the machine leaves what a file brings back, and nothing else.
    #[test]
    fn a_new_start_ends_what_has_no_file() {
        let place = tempfile::tempdir().unwrap();
        let mut store = Directory::lock(place.path(), Path::new(DROP_IN)).unwrap();
        let mut journal = journal();
        journal.boot = "another".to_owned();
        store.save(&journal).unwrap();
        assert_eq!(store.load().unwrap(), Some(journal.clone()));
        journal.steps.pop();
        store.save(&journal).unwrap();
        assert_eq!(store.load().unwrap(), None);
        let seen = Directory::look(place.path(), Path::new(DROP_IN));
        assert_eq!(seen.unwrap(), None);
    }

    #[test]
    fn a_damaged_one_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("journal.json");
        let whole = serde_json::to_string(&journal()).unwrap();
        let elsewhere = whole.replace(DROP_IN, "/etc/passwd");
        let up = whole.replace("net.ipv4.tcp_wmem", "../../etc/passwd");
        let device = whole.replace("eth0", "../../../etc");
        let setting = whole.replace("driver_queue", "firmware");
        for text in [
            "",
            "{}",
            &whole[..whole.len() / 2],
            &elsewhere,
            &up,
            &device,
            &setting,
        ] {
            fs::write(&file, text).unwrap();
            let error = Directory::look(place.path(), Path::new(DROP_IN)).unwrap_err();
            assert!(error.to_string().contains("nothing was changed"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,200}") {
            let _ = parse(&text, Path::new(DROP_IN));
        }

        #[test]
        fn cut_anywhere_it_is_refused(at in 0.0..1.0f64) {
            let whole = serde_json::to_string(&journal()).unwrap();
            let cut = (at * whole.len() as f64) as usize;
            prop_assert!(parse(&whole[..cut], Path::new(DROP_IN)).is_err());
        }
    }
}
