//! A stream that is read, and unpacked, by a thread of its own, a few blocks ahead of what looks at it.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{JoinHandle, spawn};

use super::window::READ_BYTES;

/// Room before the bytes of a block, for the part of a record that the block before ended with: most records fit.
pub(super) const HEADROOM: usize = 64 << 10;

/// Blocks in use: one that is looked at, one that is read, and two between them. All together stay in a third-level cache.
const BLOCKS: usize = 4;

/// Bytes of the stream, from [`HEADROOM`] to `end`.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    pub(super) end: usize,
}

/// The blocks of a stream. The thread ends with the stream, with its first error, or when this is dropped: at the latest
/// when the read that it is in returns.
pub(super) struct Ahead {
    read: Receiver<io::Result<Block>>,
    free: SyncSender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    pub(super) fn new(mut source: Box<dyn Read + Send>) -> Self {
        let (free, to_fill) = sync_channel::<Vec<u8>>(BLOCKS);
        let (filled, read) = sync_channel(BLOCKS);
        for _ in 0..BLOCKS {
            // There is room for all of them.
            let _ = free.try_send(Vec::new());
        }
        let thread = spawn(move || {
            for bytes in to_fill {
                let block = fill(&mut *source, bytes);
                let is_last = !matches!(&block, Ok(block) if block.end > HEADROOM);
                if filled.send(block).is_err() || is_last {
                    break;
                }
            }
        });
        Self {
            read,
            free,
            thread: Some(thread),
        }
    }

    /// The next block, for one that is no longer looked at; an empty one at the end of the stream.
    ///
    /// # Errors
    /// Errors of the stream.
    pub(super) fn next(&mut self, looked_at: Vec<u8>) -> io::Result<Block> {
        // The thread that would read it may have ended.
        let _ = self.free.try_send(looked_at);
        if let Ok(block) = self.read.recv() {
            return block;
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(io::Error::other("what unpacks it failed")),
            _ => Ok(Block {
                bytes: Vec::new(),
                end: HEADROOM,
            }),
        }
    }
}

fn fill(source: &mut dyn Read, mut bytes: Vec<u8>) -> io::Result<Block> {
    // One that a large record made longer is made short again.
    bytes.resize(HEADROOM + READ_BYTES, 0);
    bytes.shrink_to(HEADROOM + READ_BYTES);
    // Ends with the first read that is not interrupted.
    loop {
        match source.read(bytes.get_mut(HEADROOM..).unwrap_or_default()) {
            Ok(count) => {
                return Ok(Block {
                    bytes,
                    end: HEADROOM + count,
                });
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
