//! Files as memory (mmap(2)), and how much of a file is in memory (mincore(2)).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use crate::file::page_bytes;

/// A file mapped whole. Its bytes change under a reader when the file is written, so they are only copied in and out
/// and never borrowed.
///
/// The file must not be truncated while it is mapped: access beyond its end kills the process (SIGBUS). So only files
/// without a name are mapped, which no other process can open.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    /// Maps a nameless file that is this long, for reading and, shared with the file, for writing.
    ///
    /// # Errors
    /// When the file has a name or is empty, or the kernel refuses.
    pub fn new(file: &File) -> io::Result<Self> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        if nix::sys::stat::fstat(file)?.st_nlink != 0 {
            return Err(invalid());
        }
        let length = usize::try_from(file.metadata()?.len()).map_err(|_| invalid())?;
        if length == 0 {
            return Err(invalid());
        }
        // SAFETY: asks for new memory at a place of the kernel's choice; the descriptor is borrowed,
        // hence open.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(invalid)?;
        Ok(Self { start, length })
    }

    /// Copies from a place in the file; how many bytes, 0 from its end on.
    pub fn read_at(&self, offset: usize, buffer: &mut [u8]) -> usize {
        let count = buffer.len().min(self.length.saturating_sub(offset));
        // SAFETY: the mapping is readable for `length`, of which `offset` and `count` stay inside;
        // the file behind it has no name and is not cut; `buffer` is other memory.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.start.as_ptr().add(offset.min(self.length)),
                buffer.as_mut_ptr(),
                count,
            );
        }
        count
    }

    /// Copies to a place in the file; how many bytes, 0 from its end on.
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.length.saturating_sub(offset));
        // SAFETY: as in `read_at`, and the mapping is writable.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.start.as_ptr().add(offset.min(self.length)),
                count,
            );
        }
        count
    }

    /// Waits until what was written is on the disk (msync(2)).
    ///
    /// # Errors
    /// When the disk failed.
    pub fn sync(&self) -> io::Result<()> {
        // SAFETY: the mapping that `new` made, of that length.
        match unsafe { libc::msync(self.start.as_ptr().cast(), self.length, libc::MS_SYNC) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Share of the file that is in memory.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn in_memory_ratio(&self) -> io::Result<f64> {
        let page = usize::try_from(page_bytes()).unwrap_or(4096).max(1);
        let mut pages = vec![0_u8; self.length.div_ceil(page)];
        // SAFETY: the mapping that `new` made, of that length; `pages` has a byte for each page.
        let rc =
            unsafe { libc::mincore(self.start.as_ptr().cast(), self.length, pages.as_mut_ptr()) };
        if rc != 0 {
            return Err(io::Error::last_os_error());
        }
        let here = pages.iter().filter(|page| **page & 1 == 1).count();
        Ok(here as f64 / pages.len() as f64)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, to which no reference exists now.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_nameless_file_is_read_and_written() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"plumb line").unwrap();
        let mut mapping = Mapping::new(&file).unwrap();
        let mut got = [0; 20];
        assert_eq!(mapping.read_at(6, &mut got), 4);
        assert_eq!(&got[..4], b"line");
        assert_eq!(mapping.write_at(6, b"bobs and more"), 4);
        assert_eq!(
            (mapping.read_at(10, &mut got), mapping.write_at(99, b"x")),
            (0, 0)
        );
        mapping.sync().unwrap();
        file.read_exact_at(&mut got[..10], 0).unwrap();
        assert_eq!(&got[..10], b"plumb bobs");
        assert_eq!(
            mapping.in_memory_ratio().unwrap(),
            1.0,
            "it was just written"
        );
    }

    #[test]
    fn what_others_could_cut_is_refused() {
        let named = tempfile::NamedTempFile::new().unwrap();
        named.as_file().write_all(b"x").unwrap();
        assert!(Mapping::new(named.as_file()).is_err());
        assert!(
            Mapping::new(&tempfile::tempfile().unwrap()).is_err(),
            "empty"
        );
    }
}
