//! What is to be done with files, and one pass over them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use plumb_model::results::host::{DiskPass, FileAccess, FileWork, PageCache};
use plumb_model::units::si;

#[derive(Debug, Clone)]
pub struct Plan {
    pub folder: PathBuf,
    /// Size of the large file; made a multiple of [`BLOCK_BYTES`].
    pub file_bytes: u64,
    /// How many small files.
    pub small_files: u64,
    pub small_file_bytes: u64,
    /// Longest time of each pass; what is not done by then is left out.
    pub pass_within: Duration,
    /// The rate that a transfer is to have.
    pub rate_bps: Option<f64>,
}

/// What is read or written at once: as much as programs that copy files do, and a multiple of every
/// disk's block.
pub const BLOCK_BYTES: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The folder cannot be written to.
    #[error("cannot make a file in {folder}: {source}; name a folder that you may write to")]
    Folder {
        folder: String,
        source: std::io::Error,
    },
    /// A file system of the kernel's own, such as /proc.
    #[error("{folder} has no room for files at all ({kind}): name a folder on a disk")]
    NoDisk {
        folder: String,
        /// What the kernel calls it.
        kind: String,
    },
    /// There is too little room.
    #[error(
        "{folder} has {} free, and {} are needed, half of what is free at most: use a smaller --size",
        si(*free_bytes as f64, "B"),
        si(*needed_bytes as f64, "B")
    )]
    Full {
        folder: String,
        free_bytes: u64,
        needed_bytes: u64,
    },
    /// The disk failed, or filled meanwhile.
    #[error("cannot {what} in {folder}: {source}")]
    Failed {
        what: &'static str,
        folder: String,
        source: std::io::Error,
    },
}

/// A pass under way.
pub(super) struct Pass {
    pub(super) work: FileWork,
    pub(super) access: FileAccess,
    pub(super) begun: Instant,
    pub(super) within: Duration,
    pub(super) bytes: u64,
    pub(super) cut_short: bool,
}

impl Pass {
    pub(super) fn begin(work: FileWork, access: FileAccess, within: Duration) -> Self {
        Self {
            work,
            access,
            begun: Instant::now(),
            within,
            bytes: 0,
            cut_short: false,
        }
    }

    /// Counts what was done; whether there is time for more.
    pub(super) fn done(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        self.cut_short = self.begun.elapsed() >= self.within;
        !self.cut_short
    }

    /// Ends it now. `all` is how much there was to do, and `files` how many files were done.
    pub(super) fn end(self, all: u64, files: Option<u64>, cache: PageCache) -> DiskPass {
        let duration_s = self.begun.elapsed().as_secs_f64().max(1e-9);
        DiskPass {
            work: self.work,
            access: self.access,
            cache,
            bytes: self.bytes,
            duration_s,
            bps: self.bytes as f64 * 8.0 / duration_s,
            files_per_s: files.map(|files| files as f64 / duration_s),
            cut_short: self.cut_short && self.bytes < all,
        }
    }
}

/// Bytes that no disk can shrink: a file system that compresses would answer with the speed of
/// zeroes (splitmix64, Steele and others 2014).
pub(super) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(length.next_multiple_of(8));
    while bytes.len() < length {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend((z ^ (z >> 31)).to_ne_bytes());
    }
    bytes.truncate(length);
    bytes
}
