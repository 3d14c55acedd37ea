//! The journal of a shaper: a file for each interface, on disk before anything is changed, and gone when it is undone.

use std::path::Path;

use plumb_model::json;
use plumb_model::shape::Scheme;
use serde::{Deserialize, Serialize};

use super::request::Request;
use super::restore::Recorded;
use crate::kept::{self, JournalError, Locked, boot};

/// Version of the file; the number rises when a reader of the old one would misread it.
const SCHEMA: &str = "plumb.shape-journal/1";

/// Where the journals are, unless a test says otherwise. A laboratory's node has its own.
pub const STATE: &str = "/var/lib/plumb/shape";

/// How far a shaper has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Some of it may be made.
    Applying,
    /// All of it is.
    Applied,
    /// Some of it may be undone.
    Undoing,
}

/// What was made, and how to put back what was there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// Always the version of this file.
    pub schema: String,
    pub id: String,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// When it is undone unless it is confirmed, RFC 3339 in UTC.
    pub until: Option<String>,
    /// Which start of the machine it was made in: no queue outlives it.
    pub boot: String,
    pub state: State,
    pub request: Request,
    /// What the request came to.
    pub scheme: Scheme,
    /// Number of the interface, which another one of its name does not have.
    pub index: u32,
    pub mtu_bytes: u32,
    /// Whether the interface's packets have Ethernet's header.
    pub ethernet: bool,
    /// The device for what is received.
    pub ifb: Option<String>,
    /// The configured discipline at the root before; absent where it was the kernel's own choice.
    pub before: Option<Recorded>,
    /// What the kernel had chosen.
    pub chosen: Option<String>,
    /// Whether there was a place for filters of received packets.
    pub had_received: bool,
}

impl Journal {
    /// A journal that has nothing to put back but what bears plumb's marks.
    pub(super) fn of_nothing(request: Request, index: u32) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            id: String::new(),
            started: String::new(),
            until: None,
            boot: boot(),
            state: State::Applying,
            request,
            scheme: Scheme::Cake,
            index,
            mtu_bytes: 0,
            ethernet: false,
            ifb: Some(super::objects::ifb_name(index)),
            before: None,
            chosen: None,
            had_received: false,
        }
    }
}

/// The journals of a directory, locked as long as this lives.
#[derive(Debug)]
pub struct Journals {
    locked: Locked,
}

impl Journals {
    /// Makes the directory if need be, and locks it.
    ///
    /// # Errors
    /// When it cannot be made, or another plumb holds it.
    pub fn lock(path: &Path) -> Result<Self, JournalError> {
        Ok(Self {
            locked: Locked::lock(path)?,
        })
    }

    /// Reads an interface's journal without the lock, to look at.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    pub fn look(path: &Path, device: &str) -> Result<Option<Journal>, JournalError> {
        read(&path.join(file(device)), device)
    }

    /// The journal of an interface, if there is one that a new start of the machine has not made void.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    pub fn load(&self, device: &str) -> Result<Option<Journal>, JournalError> {
        read(&self.locked.file(&file(device)), device)
    }

    /// Writes it; when that returns, it is on disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, journal: &Journal) -> Result<(), JournalError> {
        self.locked.save(&file(&journal.request.device), journal)
    }

    /// Removes the journal of an interface.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, device: &str) -> Result<(), JournalError> {
        self.locked.remove(&file(device))
    }
}

/// One for each network namespace: the same name is another interface there.
fn file(device: &str) -> String {
    let namespace = std::fs::read_link("/proc/thread-self/ns/net").unwrap_or_default();
    let number: String = namespace
        .to_string_lossy()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    format!("{}@{number}.json", device.replace('/', "_"))
}

fn read(file: &Path, device: &str) -> Result<Option<Journal>, JournalError> {
    let journal = kept::read(file, |text| parse(text, device))?;
    Ok(journal.filter(|journal| !kept::is_another_boot(&journal.boot)))
}

/// Reads a journal, and refuses what plumb would not have written for this interface.
fn parse(text: &str, device: &str) -> Result<Journal, String> {
    let journal: Journal = json::from_slice(text.as_bytes()).map_err(|e| e.to_string())?;
    if journal.schema != SCHEMA {
        let found: String = journal.schema.chars().take(40).collect();
        return Err(format!(
            "it says '{found}', and this plumb keeps '{SCHEMA}'"
        ));
    }
    if journal.request.device != device {
        return Err("it is of another interface".to_owned());
    }
    let own = super::objects::ifb_name(journal.index);
    if journal.ifb.as_ref().is_some_and(|ifb| *ifb != own) {
        return Err("plumb would not make that device".to_owned());
    }
    Ok(journal)
}
