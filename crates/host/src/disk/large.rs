//! One large file, from its beginning to its end.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::thread;

use plumb_model::results::host::{DiskPass, FileAccess, FileWork, PageCache};
use plumb_net::file::{forget_cached, reopen_direct, sync_data};
use plumb_net::mmap::Mapping;
use plumb_net::tcp::copyless::{discard, send_from_at};

use super::pass::{BLOCK_BYTES, DiskError, Pass, Plan, noise};

/// O_DIRECT wants memory that begins at a block of the disk; 4 KiB is the largest that is usual.
const ALIGNMENT: usize = 4096;

/// Above this share in memory a file that the kernel was asked to drop is read from memory.
const STILL_THERE_RATIO: f64 = 0.05;

/// A file being worked on.
struct Work<'a> {
    plan: &'a Plan,
    file: File,
    bytes: u64,
    step: &'a dyn Fn(&str),
    /// What O_DIRECT comes to here: tmpfs takes it, and goes around nothing.
    around: PageCache,
}

pub(super) fn passes(
    plan: &Plan,
    bytes: u64,
    step: &dyn Fn(&str),
    passes: &mut Vec<DiskPass>,
) -> Result<(), DiskError> {
    let folder = || plan.folder.display().to_string();
    let file = tempfile::tempfile_in(&plan.folder).map_err(|source| DiskError::Folder {
        folder: folder(),
        source,
    })?;
    let mut work = Work {
        plan,
        file,
        bytes,
        step,
        around: PageCache::Direct,
    };
    let mut run = |what: &'static str, pass: io::Result<Option<DiskPass>>| {
        let pass = pass.map_err(|source| DiskError::Failed {
            what,
            folder: folder(),
            source,
        })?;
        passes.extend(pass);
        Ok(())
    };
    run("write", work.write().map(Some))?;
    // The file has its whole length from here on, whatever time allowed to be written.
    run("write", work.file.set_len(bytes).map(|()| None))?;
    if matches!(work.forget(), Ok(PageCache::Memory)) {
        work.around = PageCache::Memory;
    }
    let direct = reopen_direct(&work.file).ok();
    if let Some(direct) = &direct {
        run("write around the cache", work.write_direct(direct))?;
    }
    run("write through memory", work.write_mapped().map(Some))?;
    run("read", work.read().map(Some))?;
    if let Some(direct) = &direct {
        run("read around the cache", work.read_direct(direct))?;
    }
    run("read through memory", work.read_mapped().map(Some))?;
    run("send a file", work.send().map(Some))
}

impl Work<'_> {
    fn begin(&self, work: FileWork, access: FileAccess) -> Pass {
        (self.step)(&format!("{}, {}", work.shown(), access.shown()));
        Pass::begin(work, access, self.plan.pass_within)
    }

    /// Makes the kernel forget the file; whether it has.
    fn forget(&self) -> io::Result<PageCache> {
        sync_data(&self.file)?;
        forget_cached(&self.file);
        // What is mapped is not forgotten, so it is mapped only to ask.
        let there = Mapping::new(&self.file)?.in_memory_ratio()?;
        Ok(if there <= STILL_THERE_RATIO {
            PageCache::Forgotten
        } else {
            PageCache::Memory
        })
    }

    /// Whether there is a disk to wait for: a file system in memory forgets nothing.
    fn synced(&self) -> io::Result<PageCache> {
        Ok(match self.forget()? {
            PageCache::Memory => PageCache::Memory,
            _ => PageCache::Synced,
        })
    }

    fn write(&self) -> io::Result<DiskPass> {
        let block = noise(BLOCK_BYTES);
        let mut pass = self.begin(FileWork::WriteLarge, FileAccess::ReadWrite);
        while pass.bytes < self.bytes {
            self.file.write_all_at(&block, pass.bytes)?;
            if !pass.done(block.len()) {
                break;
            }
        }
        sync_data(&self.file)?;
        self.end_of_write(pass)
    }

    /// The time of a write ends with the disk's answer, and before the cache is asked.
    fn end_of_write(&self, pass: Pass) -> io::Result<DiskPass> {
        let mut done = pass.end(self.bytes, None, PageCache::Synced);
        // An empty file cannot be asked, nor does it matter.
        if self.file.metadata()?.len() > 0 {
            done.cache = self.synced()?;
        }
        Ok(done)
    }

    /// `None` where the file system takes O_DIRECT and then refuses to write so.
    fn write_direct(&self, direct: &File) -> io::Result<Option<DiskPass>> {
        let memory = noise(BLOCK_BYTES + ALIGNMENT);
        let block = aligned(&memory);
        let mut pass = self.begin(FileWork::WriteLarge, FileAccess::ReadWrite);
        while pass.bytes < self.bytes {
            match direct.write_all_at(block, pass.bytes) {
                Err(e) if e.kind() == io::ErrorKind::InvalidInput => return Ok(None),
                other => other?,
            }
            if !pass.done(block.len()) {
                break;
            }
        }
        sync_data(direct)?;
        Ok(Some(pass.end(self.bytes, None, self.around)))
    }

    fn write_mapped(&self) -> io::Result<DiskPass> {
        let block = noise(BLOCK_BYTES);
        self.forget()?;
        let mut mapping = Mapping::new(&self.file)?;
        let mut pass = self.begin(FileWork::WriteLarge, FileAccess::Mmap);
        while pass.bytes < self.bytes {
            let at = usize::try_from(pass.bytes).unwrap_or(usize::MAX);
            let written = mapping.write_at(at, &block);
            if written == 0 || !pass.done(written) {
                break;
            }
        }
        mapping.sync()?;
        drop(mapping);
        self.end_of_write(pass)
    }

    fn read(&self) -> io::Result<DiskPass> {
        let cache = self.forget()?;
        let mut block = vec![0; BLOCK_BYTES];
        let mut pass = self.begin(FileWork::ReadLarge, FileAccess::ReadWrite);
        while pass.bytes < self.bytes {
            let read = self.file.read_at(&mut block, pass.bytes)?;
            if read == 0 || !pass.done(read) {
                break;
            }
        }
        Ok(pass.end(self.bytes, None, cache))
    }

    fn read_direct(&self, direct: &File) -> io::Result<Option<DiskPass>> {
        let mut memory = vec![0; BLOCK_BYTES + ALIGNMENT];
        let begin = memory.as_ptr().align_offset(ALIGNMENT);
        let Some(block) = memory.get_mut(begin..begin.saturating_add(BLOCK_BYTES)) else {
            return Ok(None);
        };
        self.forget()?;
        let mut pass = self.begin(FileWork::ReadLarge, FileAccess::ReadWrite);
        while pass.bytes < self.bytes {
            let read = match direct.read_at(block, pass.bytes) {
                Err(e) if e.kind() == io::ErrorKind::InvalidInput => return Ok(None),
                other => other?,
            };
            if read == 0 || !pass.done(read) {
                break;
            }
        }
        Ok(Some(pass.end(self.bytes, None, self.around)))
    }

    fn read_mapped(&self) -> io::Result<DiskPass> {
        let cache = self.forget()?;
        let mapping = Mapping::new(&self.file)?;
        let mut block = vec![0; BLOCK_BYTES];
        let mut pass = self.begin(FileWork::ReadLarge, FileAccess::Mmap);
        while pass.bytes < self.bytes {
            let at = usize::try_from(pass.bytes).unwrap_or(usize::MAX);
            let read = mapping.read_at(at, &mut block);
            // The block is not used otherwise, and a compiler leaves out unused reads.
            black_box(&block);
            if read == 0 || !pass.done(read) {
                break;
            }
        }
        Ok(pass.end(self.bytes, None, cache))
    }

    /// To a connection on loopback whose other end throws everything away. It ends with the
    /// connection, which this function closes.
    fn send(&self) -> io::Result<DiskPass> {
        let cache = self.forget()?;
        let listener =
            TcpListener::bind("127.0.0.1:0").or_else(|_| TcpListener::bind("[::1]:0"))?;
        let socket = TcpStream::connect(listener.local_addr()?)?;
        let (sink, _) = listener.accept()?;
        thread::scope(|scope| {
            scope.spawn(move || while discard(&sink, BLOCK_BYTES).is_ok_and(|count| count > 0) {});
            let mut pass = self.begin(FileWork::ReadLarge, FileAccess::Sendfile);
            let mut result = Ok(());
            while pass.bytes < self.bytes {
                match send_from_at(&socket, &self.file, pass.bytes, BLOCK_BYTES) {
                    Ok(0) => break,
                    Ok(sent) if pass.done(sent) => {}
                    Ok(_) => break,
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
            }
            drop(socket);
            result.map(|()| pass.end(self.bytes, None, cache))
        })
    }
}

/// The part of some memory that begins at a block.
fn aligned(memory: &[u8]) -> &[u8] {
    let begin = memory.as_ptr().align_offset(ALIGNMENT);
    memory
        .get(begin..begin.saturating_add(BLOCK_BYTES))
        .unwrap_or_default()
}
