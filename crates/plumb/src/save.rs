//! Files that a user names, and that may hold something good already: a file is written beside the old one
//! and takes its place when it is whole and on the disk, so that a full disk or a kill leaves the old one.
//!
//! What is no file (a pipe, a device, /dev/stdout) is written to. A link stays a link: the file that it leads
//! to is replaced. Where the directory takes no new file, the old one is overwritten, its end first: a
//! full disk is noticed before anything of it is lost.

pub(crate) mod growing;

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::NamedTempFile;

/// Links that are followed one after the other (Linux `MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
/// The mode of a new file before the user's mask, the same as in every program (open(2), umask(2)).
const NEW_FILE_MODE: u32 = 0o666;
/// The bits of a mode that are permissions (inode(7)).
const PERMISSIONS: u32 = 0o7777;

/// Refuses a file that cannot be written, as far as that shows before there is anything to write.
pub(crate) fn check(file: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", file.display());
    let folder = folder(file);
    if !folder.is_dir() {
        anyhow::bail!("{}: there is no directory {}", cannot(), folder.display());
    }
    match fs::metadata(file) {
        Ok(data) if data.is_dir() => anyhow::bail!("{}: it is a directory", cannot()),
        // To open a pipe would wait for its reader.
        Ok(data) if data.is_file() => File::options().write(true).open(file).map(|_| ()),
        _ => Ok(()),
    }
    .with_context(cannot)
}

/// Saves a text or other content, with the file's name in the error.
pub(crate) fn save(file: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    write(file, content.as_ref()).with_context(|| format!("cannot write {}", file.display()))
}

fn write(file: &Path, content: &[u8]) -> io::Result<()> {
    match end_of_links(file)? {
        End::Descriptor(path) => descriptor(&path)?.write_all(content),
        End::Path(path) => match fs::metadata(&path) {
            Ok(data) if data.is_file() => replace(&path, &data, content),
            // A pipe, a device; a directory is refused by the system.
            Ok(_) => File::options().write(true).open(&path)?.write_all(content),
            Err(e) if e.kind() == ErrorKind::NotFound => put_beside(&path, None, content),
            Err(e) => Err(e),
        },
    }
}

/// Where a path leads.
enum End {
    /// To an open file of a process (proc(5), `/proc/PID/fd`), as /dev/stdout does.
    Descriptor(PathBuf),
    /// To a file that is there, or is to be made.
    Path(PathBuf),
}

/// Follows the links at the end of a path, also to where there is nothing yet.
fn end_of_links(file: &Path) -> io::Result<End> {
    let mut path = file.to_owned();
    for _ in 0..MAX_LINKS {
        let inside = folder(&path).canonicalize()?;
        let of_a_process = inside.starts_with("/proc") && inside.ends_with("fd");
        if of_a_process {
            return Ok(End::Descriptor(path));
        }
        match fs::read_link(&path) {
            Ok(next) => path = inside.join(next),
            Err(_) => return Ok(End::Path(path)),
        }
    }
    Err(io::Error::other("too many links"))
}

/// What a descriptor is open on. Standard output and standard error go on where they are; a file that another
/// descriptor is open on gets more at its end, since this is another opening of it.
fn descriptor(path: &Path) -> io::Result<File> {
    let standard = match path.file_name().and_then(|name| name.to_str()) {
        Some("1") => {
            io::stdout().flush()?;
            io::stdout().as_fd().try_clone_to_owned()?
        }
        Some("2") => io::stderr().as_fd().try_clone_to_owned()?,
        _ => return File::options().append(true).open(path),
    };
    Ok(standard.into())
}

fn replace(path: &Path, old: &Metadata, content: &[u8]) -> io::Result<()> {
    // A file that is protected against writing stays what it is, although its directory would allow it.
    let mut open = File::options().write(true).open(path)?;
    match put_beside(path, Some(old), content) {
        Err(e) if is_kept_out(&e) => overwrite(&mut open, old.len(), content),
        done => done,
    }
}

/// Whether a directory takes no new file, or a file may not be replaced, as one that is mounted by itself.
fn is_kept_out(error: &io::Error) -> bool {
    use ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem | Kind::ResourceBusy
    )
}

/// Writes a new file and puts it in the old one's place.
fn put_beside(path: &Path, old: Option<&Metadata>, content: &[u8]) -> io::Result<()> {
    let mut new = new_beside(path)?;
    new.write_all(content)?;
    put_in_place(new, path, old)
}

fn new_beside(path: &Path) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt as _;
    tempfile::Builder::new()
        .prefix(".plumb-")
        .suffix(".part")
        .permissions(fs::Permissions::from_mode(NEW_FILE_MODE))
        .tempfile_in(folder(path))
}

/// Gives a new file the old one's permissions and its place.
fn put_in_place(new: NamedTempFile, path: &Path, old: Option<&Metadata>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if let Some(old) = old {
        // Who may not give files away owns what is written.
        let _ = fchown(new.as_file(), Some(old.uid()), Some(old.gid()));
        let mode = fs::Permissions::from_mode(old.mode() & PERMISSIONS);
        new.as_file().set_permissions(mode)?;
    }
    new.as_file().sync_all()?;
    new.persist(path).map_err(|e| e.error)?;
    // The new name is there; some file systems do not sync directories.
    let _ = File::open(folder(path)).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Overwrites a file: first what is longer than the old content, which takes room on the disk.
fn overwrite(file: &mut File, old_bytes: u64, content: &[u8]) -> io::Result<()> {
    let same = usize::try_from(old_bytes)
        .unwrap_or(usize::MAX)
        .min(content.len());
    let (begin, end) = content.split_at(same);
    let extended = file
        .seek(SeekFrom::Start(old_bytes))
        .and_then(|_| file.write_all(end))
        .and_then(|()| file.sync_all());
    if let Err(e) = extended {
        file.set_len(old_bytes)?;
        return Err(e);
    }
    file.write_all_at(begin, 0)?;
    file.set_len(content.len() as u64)?;
    file.sync_all()
}

/// The directory of a file.
fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn mode(file: &Path) -> u32 {
        fs::metadata(file).unwrap().mode() & PERMISSIONS
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.json");
        save(&file, "first").unwrap();
        let plain = mode(&file);
        assert_eq!(plain & 0o600, 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        // A program that reads the old one continues to read it.
        let reader = File::open(&file).unwrap();
        let inode = fs::metadata(&file).unwrap().ino();
        save(&file, "second").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "second");
        assert_eq!(io::read_to_string(reader).unwrap(), "first");
        assert_ne!(fs::metadata(&file).unwrap().ino(), inode);
        assert_eq!(mode(&file), 0o640);
        assert_eq!(
            names(folder.path()),
            ["run.json"],
            "nothing is left beside it"
        );
    }

    #[test]
    fn links_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("run.json"), folder.path().join("latest"));
        // One that leads nowhere yet, and relative to where it is.
        symlink("run.json", &link).unwrap();
        for text in ["first", "second"] {
            save(&link, text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        let round = folder.path().join("round");
        symlink("round", &round).unwrap();
        assert!(save(&round, "x").is_err());
    }

    #[test]
    fn what_is_no_file_is_written_to() {
        save(Path::new("/dev/null"), "x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let error = save(Path::new("/dev/full"), "x").unwrap_err();
        assert!(
            format!("{error:#}").contains("cannot write /dev/full: "),
            "{error:#}"
        );
        let folder = tempfile::tempdir().unwrap();
        assert!(save(folder.path(), "x").is_err());
        // An open file by its descriptor, as a shell's 3>FILE.
        let file = folder.path().join("all");
        let mut open = File::create(&file).unwrap();
        open.write_all(b"first ").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        save(Path::new(&format!("/dev/fd/{number}")), "second").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "first second");
    }

    #[test]
    fn what_cannot_be_replaced_is_overwritten_and_shrinks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        for (old, new) in [
            ("long content", "short"),
            ("short", "long content"),
            ("", "x"),
            ("x", ""),
        ] {
            fs::write(&path, old).unwrap();
            let mut file = File::options().write(true).open(&path).unwrap();
            overwrite(&mut file, old.len() as u64, new.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), new);
        }
    }

    #[test]
    fn what_cannot_be_written_is_refused_before_there_is_anything_to_write() {
        let folder = tempfile::tempdir().unwrap();
        let error = |file: &Path| format!("{:#}", check(file).unwrap_err());
        assert!(error(folder.path()).contains("it is a directory"));
        assert!(error(&folder.path().join("no/run.json")).contains("there is no directory"));
        check(&folder.path().join("run.json")).unwrap();
    }
}
