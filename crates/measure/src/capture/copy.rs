//! Packets that count of a capture, copied into files of their own.

use std::io;

use plumb_capture::{Frame, Keeper};
use plumb_wire::pcapng::Direction;

use super::files::Files;

/// A copy that is being made.
#[derive(Debug)]
pub struct PacketCopy {
    files: Files,
    failed: Option<io::Error>,
}

impl PacketCopy {
    /// Begins the first file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(mut files: Files) -> io::Result<Self> {
        files.begin_copy()?;
        Ok(Self {
            files,
            failed: None,
        })
    }

    /// Whether all could be written.
    ///
    /// # Errors
    /// Why not.
    pub fn finish(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }
}

impl Keeper for PacketCopy {
    fn packet(&mut self, frame: &Frame<'_>) {
        if self.failed.is_none() {
            self.failed = self.files.packet(frame, Direction::Unknown).err();
        }
    }

    fn end(&mut self, dropped: u64) {
        if self.failed.is_none() {
            self.failed = self.files.end(dropped).err();
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.is_some()
    }
}
