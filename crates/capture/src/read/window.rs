//! A stretch of a stream in memory, as long as what is looked at: large reads, and no copy of a record that is whole.

use std::io::{self, Read};

/// Bytes asked for at a time: few system calls, and what was read is still in a second-level cache when it is looked at.
const READ_BYTES: usize = 256 << 10;

/// What is looked at of a stream.
pub(super) struct Window {
    source: Box<dyn Read>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Where `start` is in the stream.
    offset: u64,
}

impl Window {
    pub(super) fn new(source: Box<dyn Read>) -> Self {
        Self {
            source,
            bytes: vec![0; READ_BYTES],
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
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.bytes.len() < needed {
            self.bytes.resize(needed.next_multiple_of(READ_BYTES), 0);
        }
        // Ends when enough is here or the stream is over: each turn reads at least a byte.
        while self.end < needed {
            let room = self.bytes.get_mut(self.end..).unwrap_or_default();
            match self.source.read(room) {
                Ok(0) => break,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end)
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
