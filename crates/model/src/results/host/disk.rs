//! How fast files can feed a transfer, and take one.

use crate::vocabulary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a folder's file system can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskResult {
    /// Folder in which files were written and read.
    pub folder: String,
    /// Kind of its file system, as the kernel names it. Null where the kernel does not report it.
    pub file_system: Option<String>,
    /// Size of the one large file in bytes.
    pub file_bytes: u64,
    /// Number of small files.
    pub small_files: u64,
    /// Size of each small file in bytes.
    pub small_file_bytes: u64,
    /// Passes that were made, in order.
    pub passes: Vec<DiskPass>,
    /// Rate in bit/s that a transfer is to have. Null where none was asked for.
    pub rate_bps: Option<f64>,
}

impl DiskResult {
    /// What a copy does, one file by read and write through the page cache, with the place of each in the list.
    pub fn copies(&self) -> impl Iterator<Item = (usize, &DiskPass)> {
        self.passes.iter().enumerate().filter(|(_, pass)| {
            matches!(pass.work, FileWork::ReadLarge | FileWork::WriteLarge)
                && pass.access == FileAccess::ReadWrite
                && pass.cache != PageCache::Direct
        })
    }
}

/// One pass over files with one kind of access.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskPass {
    /// What was done with the files.
    pub work: FileWork,
    /// System calls that were used.
    pub access: FileAccess,
    /// What kept the page cache from answering.
    pub cache: PageCache,
    /// Payload of the pass in bytes.
    pub bytes: u64,
    /// Time of the pass in seconds, the last byte on the disk included when writing.
    pub duration_s: f64,
    /// Payload of the pass in bit/s.
    pub bps: f64,
    /// Files a second. Null for a pass over the one large file.
    pub files_per_s: Option<f64>,
    /// Whether time or size ended it before all was done.
    pub cut_short: bool,
}

vocabulary! {
    /// What is done with files.
    pub enum FileWork {
        /// One large file, from its beginning to its end, written.
        WriteLarge = "write_large" as "write one file",
        /// The same file, read.
        ReadLarge = "read_large" as "read one file",
        /// Many small ones, each created, written and on the disk before the next.
        WriteSmall = "write_small" as "write small files",
        /// The same, each opened and read.
        ReadSmall = "read_small" as "read small files",
    }
}

impl FileWork {
    /// Whether it feeds a transfer, and does not take one.
    pub fn reads(self) -> bool {
        matches!(self, Self::ReadLarge | Self::ReadSmall)
    }
}

vocabulary! {
    /// System calls that carry the payload.
    pub enum FileAccess {
        /// The system calls read(2) and write(2).
        ReadWrite = "read_write" as "read/write",
        /// Memory mapped by mmap(2).
        Mmap = "mmap",
        /// sendfile(2) to a socket.
        Sendfile = "sendfile",
    }
}

vocabulary! {
    /// What keeps memory from standing in for the disk.
    pub enum PageCache {
        /// O_DIRECT goes around the page cache.
        Direct = "direct" as "around it (O_DIRECT)",
        /// The kernel was asked to drop the file from the page cache (POSIX_FADV_DONTNEED), and did.
        Forgotten = "forgotten" as "emptied (fadvise)",
        /// Written through it, and waited for the disk (fdatasync).
        Synced = "synced" as "through it (fdatasync)",
        /// The file stayed in memory: this is the speed of memory, not of a disk.
        Memory = "memory" as "answered: memory",
    }
}
