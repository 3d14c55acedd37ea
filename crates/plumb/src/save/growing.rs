//! Files that grow while a program runs: a laboratory's log and captures. Where the directory takes no new file, the old
//! one is overwritten from the beginning.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Seek as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::NamedTempFile;

use super::{End, descriptor, end_of_links, is_kept_out, new_beside, put_in_place};

/// A file whose content grows while a program runs. The old content stays until the new one is whole, which
/// [`Self::keep`] states; without that it is left.
pub(crate) struct Growing {
    file: File,
    /// The file that is to take the place of another; none where `file` is written to itself.
    beside: Option<Beside>,
}

struct Beside {
    new: NamedTempFile,
    path: PathBuf,
    old: Option<Metadata>,
}

impl Growing {
    pub(crate) fn begin(file: &Path) -> anyhow::Result<Self> {
        Self::open(file).with_context(|| format!("cannot write {}", file.display()))
    }

    fn open(file: &Path) -> io::Result<Self> {
        let directly = |file| Self { file, beside: None };
        let path = match end_of_links(file)? {
            End::Descriptor(path) => return descriptor(&path).map(directly),
            End::Path(path) => path,
        };
        let old = match fs::metadata(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            old => Some(old?),
        };
        if let Some(old) = &old {
            // What may not be written to stays what it is; a pipe or a device is written to.
            let open = File::options().write(true).open(&path)?;
            if !old.is_file() {
                return Ok(directly(open));
            }
        }
        match new_beside(&path) {
            Err(e) if old.is_some() && is_kept_out(&e) => File::create(&path).map(directly),
            new => {
                let new = new?;
                let file = new.as_file().try_clone()?;
                let beside = Some(Beside { new, path, old });
                Ok(Self { file, beside })
            }
        }
    }

    /// Another descriptor of the file to write to.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Puts what was written in its place; where the old file may not be replaced, as one that is mounted by itself, it
    /// is overwritten.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        let Some(Beside { new, path, old }) = self.beside else {
            return Ok(());
        };
        match put_in_place(new, &path, old.as_ref()) {
            Err(e) if old.is_some() && is_kept_out(&e) => {
                self.file.rewind()?;
                io::copy(&mut self.file, &mut File::create(&path)?).map(drop)
            }
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    #[test]
    fn what_grows_takes_its_place_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        fs::write(&file, "first").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let growing = Growing::begin(&file).unwrap();
        growing.file().unwrap().write_all(b"second").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "first");
        growing.keep().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "second");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
        // One that is given up leaves nothing.
        let given_up = Growing::begin(&file).unwrap();
        given_up.file().unwrap().write_all(b"third").unwrap();
        drop(given_up);
        assert_eq!(fs::read_to_string(&file).unwrap(), "second");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let device = Growing::begin(Path::new("/dev/null")).unwrap();
        device.file().unwrap().write_all(b"x").unwrap();
        device.keep().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
