//! How fast files can feed a transfer, and take one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a folder's file system can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskResult {
    /// The folder.
    pub folder: String,
    /// Kind of its file system, as the kernel names it.
    pub file_system: Option<String>,
    /// Size of the one large file.
    pub file_bytes: u64,
    /// Number of small files.
    pub small_files: u64,
    /// Size of each.
    pub small_file_bytes: u64,
    /// What was tried, in order.
    pub passes: Vec<DiskPass>,
    /// The rate that a transfer is to have, when asked.
    pub rate_bps: Option<f64>,
}

/// One way to use files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiskPass {
    /// What was done.
    pub work: FileWork,
    /// By which system calls.
    pub access: FileAccess,
    /// What kept the page cache from answering.
    pub cache: PageCache,
    /// Payload.
    pub bytes: u64,
    /// Time that it took, the last byte on the disk included when writing.
    pub duration_s: f64,
    /// Payload by time.
    pub bps: f64,
    /// Files in a second, of small ones.
    pub files_per_s: Option<f64>,
    /// Whether time or size ended it before all was done.
    pub cut_short: bool,
}

/// What is done with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileWork {
    /// One large file, from its beginning to its end, written.
    WriteLarge,
    /// The same, read.
    ReadLarge,
    /// Many small ones, each created, written and on the disk before the next.
    WriteSmall,
    /// The same, each opened and read.
    ReadSmall,
}

impl FileWork {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteLarge => "write one file",
            Self::ReadLarge => "read one file",
            Self::WriteSmall => "write small files",
            Self::ReadSmall => "read small files",
        }
    }

    /// Whether it feeds a transfer, and does not take one.
    pub fn reads(self) -> bool {
        matches!(self, Self::ReadLarge | Self::ReadSmall)
    }
}

/// System calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// read(2) and write(2).
    ReadWrite,
    /// mmap(2).
    Mmap,
    /// sendfile(2) to a socket.
    Sendfile,
}

impl FileAccess {
    /// The system call.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadWrite => "read/write",
            Self::Mmap => "mmap",
            Self::Sendfile => "sendfile",
        }
    }
}

/// What keeps memory from standing in for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageCache {
    /// O_DIRECT goes around it.
    Direct,
    /// The kernel was told to forget the file (POSIX_FADV_DONTNEED), and had.
    Forgotten,
    /// Written through it, and waited for the disk (fdatasync).
    Synced,
    /// The file stayed in memory: this is the speed of memory, not of a disk.
    Memory,
}

impl PageCache {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "around it (O_DIRECT)",
            Self::Forgotten => "emptied (fadvise)",
            Self::Synced => "through it (fdatasync)",
            Self::Memory => "answered: memory",
        }
    }
}
