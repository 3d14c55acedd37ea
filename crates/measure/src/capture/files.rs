//! Captured packets in files of pcapng: one, or a ring of which the oldest goes.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use plumb_capture::Frame;
use plumb_wire::pcapng::{self, Direction};

/// What is written at once: as much as a disk takes well.
const BUFFER_BYTES: usize = 1 << 18;

/// How many files a ring has, and how large each of them becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    pub files: usize,
    pub bytes: u64,
}

/// Files that packets go to.
#[derive(Debug)]
pub struct Files {
    path: PathBuf,
    ring: Option<Ring>,
    /// What each file begins with.
    head: Vec<u8>,
    /// Link types of its interfaces, by their numbers.
    links: Vec<u16>,
    out: Option<BufWriter<File>>,
    written: u64,
    last_ns: u64,
    /// The files of a ring, the oldest first.
    kept: VecDeque<PathBuf>,
    /// How many were begun.
    count: u64,
}

impl Files {
    /// None is made before the capture begins.
    pub fn new(path: &Path, ring: Option<Ring>) -> Self {
        Self {
            path: path.to_owned(),
            ring,
            head: Vec::new(),
            links: Vec::new(),
            out: None,
            written: 0,
            last_ns: 0,
            kept: VecDeque::new(),
            count: 0,
        }
    }

    /// Makes the first file, for packets of an interface.
    pub(super) fn begin(&mut self, interface: &str, link: u16, snaplen: u32) -> io::Result<()> {
        self.links = vec![link];
        self.head = pcapng::section_header("captured by plumb");
        self.head
            .extend(pcapng::interface(interface, link, snaplen));
        self.next_file()
    }

    /// Makes the first file, for packets of whatever link type comes.
    pub(super) fn begin_copy(&mut self) -> io::Result<()> {
        self.head = pcapng::section_header("copied by plumb");
        self.next_file()
    }

    /// The number of the interface with a link type; one that was not met before is written.
    fn interface(&mut self, link: u16) -> io::Result<u32> {
        let known = self.links.iter().position(|known| *known == link);
        let number = known.unwrap_or(self.links.len());
        if known.is_none() {
            let block = pcapng::interface("", link, pcapng::NO_LIMIT);
            self.links.push(link);
            self.head.extend(&block);
            self.write(&block)?;
        }
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Writes a packet, in the next file of a ring where this one is full.
    pub(super) fn packet(&mut self, frame: &Frame<'_>, direction: Direction) -> io::Result<()> {
        self.last_ns = frame.unix_ns;
        let block = pcapng::packet(
            self.interface(frame.link)?,
            frame.unix_ns,
            direction,
            frame.bytes,
            frame.original_bytes,
        );
        let is_full = self.ring.is_some_and(|ring| {
            let head = self.head.len() as u64;
            self.written > head && self.written + block.len() as u64 > ring.bytes
        });
        if is_full {
            self.flush()?;
            self.next_file()?;
        }
        self.write(&block)
    }

    /// Writes how many packets were lost, and what is still held back.
    pub(super) fn end(&mut self, dropped: u64) -> io::Result<()> {
        // A copy of no packet has no interface to speak of.
        if !self.links.is_empty() {
            self.write(&pcapng::interface_statistics(0, self.last_ns, dropped))?;
        }
        self.flush()
    }

    fn write(&mut self, block: &[u8]) -> io::Result<()> {
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        let written = out.write_all(block);
        self.written += block.len() as u64;
        written.map_err(|error| self.failed(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.as_mut().map_or(Ok(()), Write::flush);
        flushed.map_err(|error| self.failed(&error))
    }

    fn next_file(&mut self) -> io::Result<()> {
        self.count += 1;
        let path = match self.ring {
            None => self.path.clone(),
            Some(_) => numbered(&self.path, self.count),
        };
        let file = File::create(&path).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot write {}: {error}", path.display()),
            )
        })?;
        self.out = Some(BufWriter::with_capacity(BUFFER_BYTES, file));
        self.kept.push_back(path);
        if self.ring.is_some_and(|ring| self.kept.len() > ring.files)
            && let Some(oldest) = self.kept.pop_front()
        {
            std::fs::remove_file(oldest)?;
        }
        self.written = 0;
        let head = std::mem::take(&mut self.head);
        let written = self.write(&head);
        self.head = head;
        written
    }

    /// Nothing more is written after a failure: what follows would leave a hole.
    fn failed(&mut self, error: &io::Error) -> io::Error {
        // Dropping a buffer would try to write it again.
        drop(self.out.take().map(BufWriter::into_parts));
        let path = self.kept.back().unwrap_or(&self.path).display();
        io::Error::new(error.kind(), format!("cannot write {path}: {error}"))
    }
}

/// The name of a file of a ring: FILE-00001.pcapng of FILE.pcapng.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!("-{number:05}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn frame(bytes: &[u8]) -> Frame<'_> {
        Frame {
            unix_ns: 1_000_000_000,
            link: 1,
            bytes,
            original_bytes: 1500,
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let files = std::fs::read_dir(folder).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn the_oldest_file_of_a_ring_goes() {
        let folder = tempfile::tempdir().unwrap();
        let ring = Ring {
            files: 2,
            bytes: 1000,
        };
        let mut files = Files::new(&folder.path().join("a.b.pcapng"), Some(ring));
        files.begin("eth0", 1, 96).unwrap();
        for _ in 0..30 {
            files.packet(&frame(&[7; 96]), Direction::Inbound).unwrap();
        }
        files.end(3).unwrap();
        let names = names(folder.path());
        assert_eq!(names.len(), 2);
        let of_ring = |name: &String| name.starts_with("a.b-0000") && name.ends_with(".pcapng");
        assert!(names.iter().all(of_ring), "{names:?}");
        for name in &names {
            let length = std::fs::metadata(folder.path().join(name)).unwrap().len();
            // The statistics of the end come behind the last packet.
            assert!((150..=1060).contains(&length), "{length}");
        }
    }

    #[test]
    fn a_packet_larger_than_a_file_of_a_ring_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let ring = Ring { files: 3, bytes: 1 };
        let mut files = Files::new(&folder.path().join("x"), Some(ring));
        files.begin("eth0", 1, 0).unwrap();
        for _ in 0..3 {
            files.packet(&frame(&[7; 9]), Direction::Outbound).unwrap();
        }
        files.end(0).unwrap();
        assert_eq!(names(folder.path()), ["x-00001", "x-00002", "x-00003"]);
    }

    #[test]
    fn a_copy_has_an_interface_for_each_link_type() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy.pcapng");
        let mut files = Files::new(&path, None);
        files.begin_copy().unwrap();
        for link in [1, 101, 1] {
            let of = Frame {
                link,
                ..frame(&[7; 9])
            };
            files.packet(&of, Direction::Unknown).unwrap();
        }
        files.end(3).unwrap();
        let mut reader = plumb_capture::Reader::new(File::open(&path).unwrap()).unwrap();
        for link in [1, 101, 1] {
            assert_eq!(reader.advance().unwrap(), Some(1_000_000_000));
            let of = reader.frame();
            assert_eq!(
                (of.link, of.bytes, of.original_bytes),
                (link, &[7; 9][..], 1500)
            );
        }
        assert_eq!(reader.advance().unwrap(), None);
    }

    #[test]
    fn a_full_disk_is_said_once() {
        let mut files = Files::new(Path::new("/dev/full"), None);
        files.begin("eth0", 1, 0).unwrap();
        let packet = frame(&[7; 1500]);
        let failed = (0..1000).find_map(|_| files.packet(&packet, Direction::Inbound).err());
        let said = failed.unwrap().to_string();
        assert!(said.starts_with("cannot write /dev/full: "), "{said}");
        files.end(0).unwrap();
    }
}
