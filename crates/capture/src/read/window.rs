//! A stretch of a stream in memory, as long as what is looked at: large reads, and no copy of a record that is whole.

use std::io;

use super::blocks::{Block, Blocks, HEADROOM};

/// What is looked at of a stream.
pub(super) struct Window {
    blocks: Blocks,
    bytes: Vec<u8>,
    /// Memory of the block before.
    spare: Vec<u8>,
    start: usize,
    end: usize,
    /// Where `start` is in the stream.
    offset: u64,
}

impl Window {
    pub(super) fn new(blocks: Blocks) -> Self {
        Self {
            blocks,
            bytes: Vec::new(),
            spare: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
        }
    }

    /// Where in the stream the next byte is.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads until so many bytes can be looked at, or the stream ends; how many can be, which may be more.
    #[inline]
    pub(super) fn fill(&mut self, needed: usize) -> io::Result<usize> {
        match self.end - self.start {
            here if here >= needed => Ok(here),
            _ => self.read_on(needed),
        }
    }

    #[cold]
    fn read_on(&mut self, needed: usize) -> io::Result<usize> {
        // Ends when enough is here or the stream is over: each block has a byte at least.
        while self.end - self.start < needed {
            let block = self.blocks.next(std::mem::take(&mut self.spare))?;
            if block.end == HEADROOM {
                break;
            }
            self.take(block);
        }
        Ok(self.end - self.start)
    }

    /// Continues with a block, with what was not passed of the one before in front of it.
    fn take(&mut self, mut block: Block) {
        let left = self.bytes.get(self.start..self.end).unwrap_or_default();
        let start = HEADROOM.saturating_sub(left.len());
        match block.bytes.get_mut(start..HEADROOM) {
            Some(room) if room.len() == left.len() => {
                room.copy_from_slice(left);
                self.spare = std::mem::replace(&mut self.bytes, block.bytes);
                (self.start, self.end) = (start, block.end);
            }
            _ => {
                // A record that the room does not hold becomes whole in memory of its own size.
                self.bytes.truncate(self.end);
                self.bytes.drain(..self.start);
                let more = block.bytes.get(HEADROOM..block.end).unwrap_or_default();
                self.bytes.extend_from_slice(more);
                (self.start, self.end) = (0, self.bytes.len());
                self.spare = block.bytes;
            }
        }
    }

    /// What can be looked at.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// The bytes before what can be looked at, which [`Self::pass`] went by; they stay until the next [`Self::fill`].
    #[inline]
    pub(super) fn passed(&self, back: usize, length: usize) -> &[u8] {
        let from = self.start.saturating_sub(back);
        self.bytes.get(from..from + length).unwrap_or_default()
    }

    /// Moves on by so many bytes, within what can be looked at.
    #[inline]
    pub(super) fn pass(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Moves on by any number of bytes without keeping them, and counts them down. Returns whether the stream had as
    /// many.
    pub(super) fn skip(&mut self, count: &mut u64) -> io::Result<bool> {
        // Ends when all are passed or the stream is over.
        while *count > 0 {
            let here = self.fill(1)?;
            if here == 0 {
                return Ok(false);
            }
            let now = usize::try_from(*count).unwrap_or(usize::MAX).min(here);
            self.pass(now);
            *count -= now as u64;
        }
        Ok(true)
    }
}
