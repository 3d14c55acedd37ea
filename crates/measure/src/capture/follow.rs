//! A capture that another program still writes, read on as it grows.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use plumb_capture::{Frame, Next, ReadError, Reader, Source, Told};
use plumb_net::clock::monotonic_ns;

/// How long it waits before it looks whether the file has grown, or it is to end.
const LOOKS: Duration = Duration::from_millis(100);
/// How long what the file has by then is read once it is to end.
const READS_ON: Duration = Duration::from_millis(500);
/// The shortest file that is a capture: the header of a pcap (draft-ietf-opsawg-pcap, section 4).
const LEAST_BYTES: u64 = 24;

/// A file that is read while it grows: it ends after a time, when it is to stop, or when the file is no longer the same.
pub struct Follow {
    reader: Reader,
    stop: Arc<AtomicBool>,
    until_ns: Option<u64>,
    /// When reading ends at the latest, once it is to end.
    ends_ns: Option<u64>,
    /// When there was time for other things last.
    paused_ns: u64,
}

impl Follow {
    /// Begins with what the file has, and waits until it has a header. It ends within a second after `stop` was set.
    ///
    /// # Errors
    /// When it cannot be read, is no capture, is packed, or has no header when it is to end.
    pub fn begin(
        path: &Path,
        length: Option<Duration>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, ReadError> {
        let until_ns = length.map(|length| {
            let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
            monotonic_ns().saturating_add(length)
        });
        let file = File::open(path)?;
        let own = file.metadata()?;
        if !own.is_file() {
            return Err(io::Error::other("it is no file that grows").into());
        }
        // Ends when the header is there, or when it is to end.
        while file.metadata()?.len() < LEAST_BYTES {
            if stop.load(Ordering::Relaxed) || until_ns.is_some_and(|ns| monotonic_ns() >= ns) {
                return Err(ReadError::Empty);
            }
            sleep(LOOKS);
        }
        let reader = Reader::growing(Grows {
            file,
            path: path.to_owned(),
            own,
            read: 0,
        })?;
        Ok(Self {
            reader,
            stop: Arc::clone(stop),
            until_ns,
            ends_ns: None,
            paused_ns: monotonic_ns(),
        })
    }
}

impl Source for Follow {
    const SEES_STOP: bool = true;

    fn advance(&mut self) -> Result<Next, ReadError> {
        let now_ns = monotonic_ns();
        let is_over = self.until_ns.is_some_and(|until_ns| now_ns >= until_ns)
            || self.stop.load(Ordering::Relaxed);
        if self.ends_ns.is_none() && is_over {
            self.ends_ns = Some(now_ns.saturating_add(nanoseconds(READS_ON)));
        }
        if self.ends_ns.is_some_and(|ends_ns| now_ns >= ends_ns) {
            return Err(
                io::Error::other("it was to end, and the file has more than was read").into(),
            );
        }
        if now_ns.saturating_sub(self.paused_ns) >= nanoseconds(LOOKS) {
            self.paused_ns = now_ns;
            return Ok(Next::Nothing);
        }
        match self.reader.advance() {
            Err(ReadError::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
            next => return Ok(next?.map_or(Next::End, Next::Packet)),
        }
        if self.ends_ns.is_some() {
            return Ok(Next::End);
        }
        let left_ns = self.until_ns.map(|ns| ns.saturating_sub(now_ns));
        sleep(left_ns.map_or(LOOKS, |left_ns| LOOKS.min(Duration::from_nanos(left_ns))));
        self.paused_ns = monotonic_ns();
        Ok(Next::Nothing)
    }

    fn frame(&self) -> Frame<'_> {
        self.reader.frame()
    }

    fn told(&mut self) -> Told {
        Source::told(&mut self.reader)
    }

    fn format(&self) -> &'static str {
        self.reader.format()
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A file whose end is not the end of what there is to read.
struct Grows {
    file: File,
    path: PathBuf,
    /// What it was when it was opened.
    own: Metadata,
    read: u64,
}

impl Read for Grows {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        self.read = self.read.saturating_add(count as u64);
        match count {
            0 if !into.is_empty() => Err(self.why_nothing()),
            _ => Ok(count),
        }
    }
}

impl Grows {
    /// Why it has no more: nothing was written yet, or it is no longer what it was.
    fn why_nothing(&self) -> io::Error {
        let now = match fs::metadata(&self.path) {
            Ok(now) => now,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return io::Error::other("the file was removed");
            }
            Err(error) => return error,
        };
        if (now.dev(), now.ino()) != (self.own.dev(), self.own.ino()) {
            return io::Error::other("the file was replaced by another one");
        }
        match now.len() < self.read {
            true => io::Error::other("the file was truncated"),
            false => ErrorKind::WouldBlock.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write as _;

    use super::*;

    /// A file of the classic format with one packet of four bytes.
    fn capture() -> Vec<u8> {
        let fields = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 96, 101, 1, 0, 4, 4, 7];
        fields.map(u32::to_le_bytes).concat()
    }

    fn follow(path: &Path) -> Follow {
        let mut follow = Follow::begin(path, None, &Arc::default()).unwrap();
        assert_eq!(next(&mut follow).unwrap(), Next::Packet(1_000_000_000));
        follow
    }

    /// What comes next but pauses of which there is no end.
    fn next(follow: &mut Follow) -> Result<Next, ReadError> {
        let looks = (0..3).map(|_| follow.advance());
        let mut looks = looks.filter(|next| !matches!(next, Ok(Next::Nothing)));
        looks.next().unwrap_or(Ok(Next::Nothing))
    }

    #[test]
    fn a_record_that_is_not_whole_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcap");
        let (bytes, more) = (capture(), capture());
        fs::write(&path, &bytes).unwrap();
        let mut follow = follow(&path);
        let mut file = File::options().append(true).open(&path).unwrap();
        let (first, second) = more.get(24..).unwrap().split_at(9);
        file.write_all(first).unwrap();
        assert_eq!(next(&mut follow).unwrap(), Next::Nothing);
        file.write_all(second).unwrap();
        assert_eq!(next(&mut follow).unwrap(), Next::Packet(1_000_000_000));
        assert_eq!(follow.frame().bytes, [7, 0, 0, 0]);
        file.write_all(first).unwrap();
        follow.stop.store(true, Ordering::Relaxed);
        assert_eq!(next(&mut follow).unwrap(), Next::End);
    }

    #[test]
    fn a_file_that_is_another_one_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcap");
        for (what, said) in [(0, "truncated"), (1, "replaced"), (2, "removed")] {
            fs::write(&path, capture()).unwrap();
            let mut follow = follow(&path);
            match what {
                0 => File::create(&path).map(drop).unwrap(),
                1 => {
                    let other = folder.path().join("b.pcap");
                    fs::write(&other, capture()).unwrap();
                    fs::rename(other, &path).unwrap();
                }
                _ => fs::remove_file(&path).unwrap(),
            }
            let error = next(&mut follow).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcap.gz");
        fs::write(&path, [&[0x1f, 0x8b][..], &[0; 40]].concat()).unwrap();
        let refused = |path: &Path| {
            let length = Some(Duration::from_millis(1));
            let error = Follow::begin(path, length, &Arc::default()).err();
            error.unwrap().to_string()
        };
        assert!(refused(&path).contains("packed"));
        fs::write(&path, [7; 40]).unwrap();
        assert!(refused(&path).contains("no capture"));
        fs::write(&path, [7; 20]).unwrap();
        assert!(refused(&path).contains("empty"));
        assert!(refused(folder.path()).contains("no file"));
    }
}
