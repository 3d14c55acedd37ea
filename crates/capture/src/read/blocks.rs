//! A stream in blocks: read when they are asked for, or by a thread of its own that is a few blocks ahead and also unpacks.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{JoinHandle, available_parallelism, spawn};

/// Bytes asked for at a time. Of a file of 2 GB, blocks of 1 MiB from a second processor took 0.28 s, and of 256 KiB 0.55 s: handing
/// one over costs more than what the caches win.
const READ_BYTES: usize = 1 << 20;

/// Room before the bytes of a block, for the part of a record that the block before ended with: most records fit.
pub(super) const HEADROOM: usize = 64 << 10;

/// Blocks between the thread and who looks at them; with the one that each of them holds they stay in a third-level cache.
const AHEAD: usize = 2;

/// Bytes of the stream, from [`HEADROOM`] to `end`; none at the end of the stream.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    pub(super) end: usize,
}

/// Where the blocks of a stream come from.
pub(super) enum Blocks {
    Asked(Box<dyn Read>),
    Ahead(Ahead),
}

impl Blocks {
    /// Of a stream that has its bytes at hand, or waits for them; it is read ahead where there is a second processor.
    pub(super) fn of(source: Box<dyn Read + Send>) -> Self {
        match available_parallelism().is_ok_and(|processors| processors.get() > 1) {
            true => Self::Ahead(Ahead::new(source)),
            false => Self::Asked(source),
        }
    }

    /// The next block, in memory that is no longer looked at.
    ///
    /// # Errors
    /// Errors of the stream.
    pub(super) fn next(&mut self, memory: Vec<u8>) -> io::Result<Block> {
        match self {
            Self::Asked(source) => read(source, memory),
            Self::Ahead(ahead) => ahead.next(memory),
        }
    }
}

/// The thread ends with the stream, with its first error, or when this is dropped: at the latest when the read that it is in
/// returns.
pub(super) struct Ahead {
    blocks: Receiver<io::Result<Block>>,
    memory: SyncSender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    fn new(mut source: Box<dyn Read + Send>) -> Self {
        let (memory, to_fill) = sync_channel::<Vec<u8>>(AHEAD + 2);
        let (send, blocks) = sync_channel(AHEAD);
        for _ in 0..=AHEAD {
            // There is room for it.
            let _ = memory.try_send(Vec::new());
        }
        let thread = spawn(move || {
            for memory in to_fill {
                let block = read(&mut source, memory);
                let is_last = !matches!(&block, Ok(block) if block.end > HEADROOM);
                if send.send(block).is_err() || is_last {
                    break;
                }
            }
        });
        Self {
            blocks,
            memory,
            thread: Some(thread),
        }
    }

    fn next(&mut self, memory: Vec<u8>) -> io::Result<Block> {
        // It is not taken where the thread has ended.
        let _ = self.memory.try_send(memory);
        if let Ok(block) = self.blocks.recv() {
            return block;
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(io::Error::other("unpacking it failed")),
            _ => Ok(Block {
                bytes: Vec::new(),
                end: HEADROOM,
            }),
        }
    }
}

fn read<R: Read + ?Sized>(source: &mut Box<R>, mut memory: Vec<u8>) -> io::Result<Block> {
    // What a large record made longer is made short again.
    memory.resize(HEADROOM + READ_BYTES, 0);
    memory.shrink_to_fit();
    // Ends with the first read that is not interrupted.
    loop {
        match source.read(memory.get_mut(HEADROOM..).unwrap_or_default()) {
            Ok(count) => {
                return Ok(Block {
                    bytes: memory,
                    end: HEADROOM + count,
                });
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
