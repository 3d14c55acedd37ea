//! Files that this end lends to a phase (`--disk`): what streams are read from and written to.
//! They have no name, so whatever happens, the system removes them with the last descriptor.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_load::file::StreamFile;
use plumb_load::streams::Stream;
use plumb_model::direction::OneDirection;
use plumb_net::file::{forget_cached, sync_data};
use plumb_wire::native::control::flow::{Flow, Flows};
use plumb_wire::native::control::{Refusal, Start};

/// Largest file that is made to be read from; it is read again and again, each time from the disk.
const LARGEST_BYTES: u64 = 256 << 20;

/// Longest time to make all of them: the client waits, and the session does not speak meanwhile.
const LONGEST: Duration = Duration::from_secs(2);

/// Bytes written at once, each of which must be on the disk before the next: a disk of 1 MB/s
/// overruns [`LONGEST`] by a second.
const CHUNK_BYTES: usize = 1 << 20;

/// Whether the phase may have the files that it asks for.
///
/// # Errors
/// What the client is answered when it may not.
pub(crate) fn admit(disk: Option<&PathBuf>, start: &Start) -> Result<(), (Refusal, String)> {
    let refused = |message: &str| Err((Refusal::Disk, message.to_owned()));
    match (start.flows.iter().any(asks), disk, start.byte_limit) {
        (false, _, _) | (true, Some(_), Some(_)) => Ok(()),
        (true, None, _) => refused("it lends no disk: start it with --disk DIRECTORY"),
        (true, _, None) => refused("a phase with a file needs a limit of bytes"),
    }
}

fn asks(flows: &Flows) -> bool {
    matches!(&flows.flow, Flow::Tcp(flow) if flow.far_disk)
}

/// The files of a phase, as many as it has streams that ask for one: for those down, with
/// something in them to read.
#[derive(Debug, Default)]
pub(crate) struct Files {
    down: Vec<StreamFile>,
    up: Vec<StreamFile>,
}

impl Files {
    /// Makes them in `disk`.
    ///
    /// # Errors
    /// When the disk is full, or the directory cannot be written to, or the responder stops meanwhile.
    pub(crate) fn make(disk: Option<&Path>, start: &Start, stop: &AtomicBool) -> io::Result<Self> {
        let mut files = Self::default();
        let Some(disk) = disk else {
            return Ok(files);
        };
        let count: u32 = start
            .flows
            .iter()
            .filter(|f| asks(f))
            .map(|f| f.count)
            .sum();
        let each = LONGEST / count.max(1);
        for flows in start.flows.iter().filter(|flows| asks(flows)) {
            for _ in 0..flows.count {
                if stop.load(Ordering::Relaxed) {
                    return Err(io::Error::other("the responder shuts down"));
                }
                let file = tempfile::tempfile_in(disk)?;
                match flows.role {
                    OneDirection::Down => {
                        fill(&file, start.byte_limit.unwrap_or(LARGEST_BYTES), each)?;
                        files.down.push(lent(file, true));
                    }
                    OneDirection::Up => files.up.push(lent(file, false)),
                }
            }
        }
        Ok(files)
    }

    /// The file for one more stream that asks for one.
    pub(crate) fn take(&mut self, role: OneDirection, stream: &Stream) -> Option<StreamFile> {
        match (stream, role) {
            (Stream::Tcp(stream), _) if !stream.flow.far_disk => None,
            (Stream::Tcp(_), OneDirection::Down) => self.down.pop(),
            (Stream::Tcp(_), OneDirection::Up) => self.up.pop(),
            (Stream::Udp(_) | Stream::Quic(_) | Stream::Transactions(_), _) => None,
        }
    }
}

fn lent(file: File, endless: bool) -> StreamFile {
    StreamFile {
        name: "the file on its disk".to_owned(),
        file: Arc::new(file),
        endless,
    }
}

/// Writes as much as the disk takes in the time, at least one chunk, at most `limit`; and leaves
/// nothing of it in memory.
fn fill(mut file: &File, limit: u64, longest: Duration) -> io::Result<()> {
    // Every file system that compresses takes zeros for less: these bytes count up.
    let chunk: Vec<u8> = (0_u64..)
        .flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes())
        .take(CHUNK_BYTES)
        .collect();
    let (until, mut written) = (Instant::now() + longest, 0);
    while written == 0 || (written < limit.min(LARGEST_BYTES) && Instant::now() < until) {
        file.write_all(&chunk)?;
        sync_data(file)?;
        written += CHUNK_BYTES as u64;
    }
    file.rewind()?;
    forget_cached(file);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_wire::native::control::flow::TcpFlow;

    fn start(far_disk: bool, byte_limit: Option<u64>) -> Start {
        let flow = TcpFlow {
            far_disk,
            ..TcpFlow::default()
        };
        Start {
            phase: 1,
            flows: vec![
                Flows::tcp(2, OneDirection::Down, flow.clone()),
                Flows::tcp(1, OneDirection::Up, flow),
            ],
            duration_s: 1.0,
            byte_limit,
        }
    }

    #[test]
    fn only_a_disk_that_is_lent_is_used_and_never_without_a_limit() {
        let disk = PathBuf::from("/tmp");
        assert!(admit(None, &start(false, None)).is_ok());
        assert!(admit(Some(&disk), &start(true, Some(1000))).is_ok());
        for (disk, limit, word) in [(None, Some(1000), "--disk"), (Some(&disk), None, "limit")] {
            let (reason, message) = admit(disk, &start(true, limit)).unwrap_err();
            assert!(
                reason == Refusal::Disk && message.contains(word),
                "{message}"
            );
        }
    }

    #[test]
    fn files_have_no_names_and_something_to_read() {
        let folder = tempfile::tempdir().unwrap();
        let start = start(true, Some(3_000_000));
        let make = |disk, stops| Files::make(Some(disk), &start, &AtomicBool::new(stops));
        let files = make(folder.path(), false).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!((files.down.len(), files.up.len()), (2, 1));
        for lent in &files.down {
            let length = lent.file.metadata().unwrap().len();
            assert!(lent.endless && (1..=4 << 20).contains(&length), "{length}");
        }
        assert!(files.up.iter().all(|lent| !lent.endless));
        assert!(make(Path::new("/proc/no-such"), false).is_err());
        assert!(make(folder.path(), true).is_err(), "the responder stops");
    }
}
