//! Files as the source or the destination of a stream, and the time that they take.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use plumb_net::file::{forget_cached, sync_data};
use plumb_net::tcp::wait_readable;

use crate::phase_state::POLL_INTERVAL;

/// Bytes read at once: what the kernel reads ahead at most by default (128 KiB), several times.
const READ_BYTES: usize = 512 * 1024;

/// Bytes after which what was written must be on the disk: without that, memory would be measured
/// in place of the disk. Small enough for a disk of 1 MB/s to be done before the phase's record is
/// asked for.
const SYNC_BYTES: u64 = 8 << 20;

/// A file that a stream's payload comes from or goes to.
#[derive(Debug, Clone)]
pub struct StreamFile {
    /// What people call it.
    pub name: String,
    /// Open for what it is used for.
    pub file: Arc<File>,
    /// At its end it is read again from the beginning, from the disk and not from memory.
    pub endless: bool,
}

/// What a [`Source`] has.
pub(crate) enum Ready {
    Bytes(usize),
    /// Nothing at the moment.
    NotYet,
    End,
}

/// A file that is read in order.
#[derive(Debug)]
pub(crate) struct Source {
    from: StreamFile,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    read: u64,
    wait_us: Arc<AtomicU64>,
}

impl Source {
    /// Adds to `wait_us` what it waits for the file.
    pub(crate) fn new(from: StreamFile, wait_us: Arc<AtomicU64>) -> Self {
        Self {
            from,
            buffer: vec![0; READ_BYTES],
            begin: 0,
            end: 0,
            read: 0,
            wait_us,
        }
    }

    /// Reads when everything read before was used, for at most [`POLL_INTERVAL`] where the file
    /// is a pipe.
    pub(crate) fn ready(&mut self) -> io::Result<Ready> {
        if self.begin < self.end {
            return Ok(Ready::Bytes(self.end - self.begin));
        }
        let began = Instant::now();
        let read = self.fill();
        count_since(&self.wait_us, began);
        read.map_err(|error| named("read", &self.from.name, &error))
    }

    fn fill(&mut self) -> io::Result<Ready> {
        if !wait_readable(&*self.from.file, POLL_INTERVAL)? {
            return Ok(Ready::NotYet);
        }
        let mut file = &*self.from.file;
        let mut count = file.read(&mut self.buffer)?;
        if count == 0 && self.from.endless && self.read > 0 {
            forget_cached(file);
            file.seek(SeekFrom::Start(0))?;
            count = file.read(&mut self.buffer)?;
        }
        if count == 0 {
            return Ok(Ready::End);
        }
        self.read += count as u64;
        (self.begin, self.end) = (0, count);
        Ok(Ready::Bytes(count))
    }

    /// What was read and not used yet.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.begin..self.end).unwrap_or_default()
    }

    /// So much of it was used.
    pub(crate) fn used(&mut self, count: usize) {
        self.begin = (self.begin + count).min(self.end);
    }
}

/// A file that is written in order.
#[derive(Debug)]
pub(crate) struct Sink {
    to: StreamFile,
    unsynced: u64,
    wait_us: Arc<AtomicU64>,
}

impl Sink {
    /// Adds to `wait_us` what it waits for the file.
    pub(crate) fn new(to: StreamFile, wait_us: Arc<AtomicU64>) -> Self {
        Self {
            to,
            unsynced: 0,
            wait_us,
        }
    }

    /// Writes all of it.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let began = Instant::now();
        let written = self.put(bytes);
        count_since(&self.wait_us, began);
        written.map_err(|error| named("write", &self.to.name, &error))
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        (&*self.to.file).write_all(bytes)?;
        self.unsynced += bytes.len() as u64;
        if self.unsynced >= SYNC_BYTES {
            self.unsynced = 0;
            sync_data(&self.to.file)?;
            forget_cached(&self.to.file);
        }
        Ok(())
    }
}

fn count_since(wait_us: &AtomicU64, began: Instant) {
    let waited = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    wait_us.fetch_add(waited, Ordering::Relaxed);
}

fn named(what: &str, name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what} {name}: {error}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn source(file: File, endless: bool) -> Source {
        let from = StreamFile {
            name: "input".to_owned(),
            file: Arc::new(file),
            endless,
        };
        Source::new(from, Arc::default())
    }

    #[test]
    fn a_file_is_read_to_its_end_or_without_end() {
        for endless in [false, true] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"abc").unwrap();
            file.rewind().unwrap();
            let mut source = source(file, endless);
            assert!(matches!(source.ready().unwrap(), Ready::Bytes(3)));
            source.used(1);
            assert_eq!(source.bytes(), b"bc");
            assert!(matches!(source.ready().unwrap(), Ready::Bytes(2)));
            source.used(2);
            match source.ready().unwrap() {
                Ready::Bytes(3) => assert!(endless),
                Ready::End => assert!(!endless),
                _ => panic!("neither"),
            }
        }
        assert!(matches!(
            source(tempfile::tempfile().unwrap(), true).ready().unwrap(),
            Ready::End
        ));
    }

    #[test]
    fn a_slow_pipe_is_waited_for_and_counted() {
        let (reader, writer) = io::pipe().unwrap();
        let mut source = source(File::from(std::os::fd::OwnedFd::from(reader)), false);
        assert!(matches!(source.ready().unwrap(), Ready::NotYet));
        assert!(source.wait_us.load(Ordering::Relaxed) >= POLL_INTERVAL.as_micros() as u64);
        drop(writer);
        assert!(matches!(source.ready().unwrap(), Ready::End));
    }

    #[test]
    fn a_full_disk_is_said() {
        let to = StreamFile {
            name: "/dev/full".to_owned(),
            file: Arc::new(File::options().write(true).open("/dev/full").unwrap()),
            endless: false,
        };
        let error = Sink::new(to, Arc::default()).write(b"x").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("cannot write /dev/full: No space left"),
            "{error}"
        );
    }
}
