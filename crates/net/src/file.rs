//! What a measurement of disks asks of files: that data is on the disk, and no longer in memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt as _;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Waits until what was written is on the disk (fdatasync(2)). What has no disk, such as a
/// device or a pipe, has nothing to wait for.
///
/// # Errors
/// When the disk failed.
pub fn sync_data(file: &File) -> io::Result<()> {
    match file.sync_data() {
        // EINVAL, EROFS: the file does not support it (fdatasync(2)).
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EROFS)) => Ok(()),
        other => other,
    }
}

/// Lets the kernel forget what it keeps of the file in memory (posix_fadvise(2),
/// POSIX_FADV_DONTNEED), so that it is read from the disk the next time. Only advice: it has no effect on a file that
/// is not on a disk.
pub fn forget_cached(file: &File) {
    // SAFETY: the descriptor is borrowed, hence open; the call takes only numbers.
    let _ = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// Opens the same file again, to be read and written around the page cache (O_DIRECT, open(2)).
/// Reads and writes must then be of whole blocks, from memory that lies at a block's beginning.
///
/// # Errors
/// When the file system cannot do that (EINVAL: tmpfs, some FUSE).
pub fn reopen_direct(file: &File) -> io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Bytes that a user without privilege can still write to the file system of a folder
/// (statvfs(3)); none where it has no size at all, as /proc.
///
/// # Errors
/// When there is no such folder.
pub fn free_bytes(folder: &std::path::Path) -> io::Result<Option<u64>> {
    let told = nix::sys::statvfs::statvfs(folder)?;
    let free = (told.blocks_available() as u64).saturating_mul(told.fragment_size() as u64);
    Ok((told.blocks() as u64 > 0).then_some(free))
}

/// How many files this process may have open (RLIMIT_NOFILE): now, and as far as it may raise that
/// itself.
pub fn descriptor_limits() -> Option<(u64, u64)> {
    getrlimit(Resource::RLIMIT_NOFILE).ok()
}

/// Lets this process, and what it starts from now on, have so many files open, where the limit is less.
///
/// # Errors
/// When more are not allowed, which root alone may change.
pub fn allow_descriptors(count: u64) -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= count {
        return Ok(());
    }
    Ok(setrlimit(Resource::RLIMIT_NOFILE, count, hard.max(count))?)
}

/// Size of a page of memory, in which the kernel counts (sysconf(3)).
pub fn page_bytes() -> u64 {
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    // Every Linux reports it; 4 KiB is by far the most common size.
    size.ok()
        .flatten()
        .and_then(|bytes| u64::try_from(bytes).ok())
        .unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn as_many_files_as_are_needed_and_no_more_than_may_be() {
        let (soft, _) = descriptor_limits().unwrap();
        allow_descriptors(soft).unwrap();
        assert_eq!(descriptor_limits().unwrap().0, soft);
        // Above what the kernel allows any process (fs.nr_open).
        assert!(allow_descriptors(u64::MAX - 1).is_err());
    }
}
