//! Where facts are read from, and what of it could not be.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use plumb_model::results::host::Unread;
use plumb_net::netlink::NetlinkError;

/// The most that is read of one file: /proc/interrupts of a machine with 512 processors has 4 MB.
const MOST_BYTES: u64 = 16 << 20;

/// The files of the kernel.
#[derive(Debug)]
pub struct Source {
    root: PathBuf,
    unread: Vec<Unread>,
}

impl Source {
    /// The files of the running system.
    pub fn system() -> Self {
        Self::below(Path::new("/"))
    }

    /// Those that stand below another folder, where a test has put them.
    pub fn below(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            unread: Vec::new(),
        }
    }

    /// The text of a file that every machine should have; when it cannot be read, that is noted.
    pub(crate) fn text(&mut self, path: &str) -> Option<String> {
        match self.read(path) {
            Ok(text) => Some(text),
            Err(error) => {
                self.note(path, &error);
                None
            }
        }
    }

    /// The text of a file that many machines do not have; that it may not be read is noted, and that
    /// it is not there, or has nothing to say, is not.
    pub(crate) fn optional(&mut self, path: &str) -> Option<String> {
        match self.read(path) {
            Ok(text) => Some(text.trim().to_owned()),
            Err(error) => {
                if error.kind() == ErrorKind::PermissionDenied {
                    self.note(path, &error);
                }
                None
            }
        }
    }

    /// The same, without a note in any case.
    pub(crate) fn silent(&self, path: &str) -> Option<String> {
        self.read(path).ok()
    }

    /// Whether there is such a file.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.place(path).exists()
    }

    /// A number in such a file.
    pub(crate) fn number(&mut self, path: &str) -> Option<u64> {
        self.optional(path)?.parse().ok()
    }

    /// The names in a folder, sorted; none where it is not there.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.place(path)).into_iter().flatten();
        let mut names: Vec<_> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// Where a path leads when all links are followed, as a path below the root.
    pub(crate) fn follow(&self, path: &str) -> Option<String> {
        let real = std::fs::canonicalize(self.place(path)).ok()?;
        let root = std::fs::canonicalize(&self.root).ok()?;
        let inside = real.strip_prefix(root).ok()?;
        Some(format!("/{}", inside.to_str()?))
    }

    /// The last part of what a link points to.
    pub(crate) fn link_name(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.place(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// What the kernel answered, or nothing and a note; that this kernel has no such part, or has
    /// lost it meanwhile, is an answer.
    pub(crate) fn asked<T: Default>(&mut self, what: &str, answer: Result<T, NetlinkError>) -> T {
        answer.unwrap_or_else(|error| {
            if !error.is_absent() {
                self.note(what, &error);
            }
            T::default()
        })
    }

    /// Notes what could not be read.
    pub(crate) fn note(&mut self, what: &str, why: &dyn std::fmt::Display) {
        self.unread.push(Unread {
            what: what.to_owned(),
            why: why.to_string(),
        });
    }

    /// What could not be read so far; the account begins anew.
    pub fn take_unread(&mut self) -> Vec<Unread> {
        std::mem::take(&mut self.unread)
    }

    fn read(&self, path: &str) -> std::io::Result<String> {
        let file = std::fs::File::open(self.place(path))?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}
