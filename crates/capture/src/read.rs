//! Captures, packet by packet: pcap and pcapng, also in gzip, zstd or lz4, from any stream and in bounded memory.

mod blocks;
mod packed;
mod pcap;
mod pcapng;
mod record;
mod window;

use std::io::{self, Read};

use blocks::Blocks;
use pcap::Pcap;
use pcapng::Pcapng;
pub use pcapng::Told;
use record::Found;
pub use record::{Frame, ReadError};
use window::Window;

/// As many bytes as distinguish formats.
const MAGIC_BYTES: usize = 4;

/// A capture that is being read.
pub struct Reader {
    window: Window,
    format: Format,
    current: Found,
    /// Whether the end, or an error, was reached.
    ended: bool,
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl Reader {
    /// Looks what a stream is. It is read ahead by a thread where there is a second processor.
    ///
    /// # Errors
    /// When it is no capture that can be read.
    pub fn new(source: impl Read + Send + 'static) -> Result<Self, ReadError> {
        let unpacked = packed::unpacked(source)?;
        Self::begin(Window::new(Blocks::of(unpacked)))
    }

    /// Looks what a stream is that grows: where it has nothing for now it gives `ErrorKind::WouldBlock`, and so does
    /// [`Self::advance`], after which it can be asked again.
    ///
    /// # Errors
    /// When it is no capture that can be read, or is packed, or has not all of its first header.
    pub fn growing(source: impl Read + 'static) -> Result<Self, ReadError> {
        let mut window = Window::new(Blocks::Asked(Box::new(source)));
        window.fill(MAGIC_BYTES)?;
        match packed::is_packed(window.bytes()) {
            true => Err(ReadError::Packed),
            false => Self::begin(window),
        }
    }

    fn begin(mut window: Window) -> Result<Self, ReadError> {
        let format = match Pcapng::begin(&mut window)? {
            Some(pcapng) => Format::Pcapng(pcapng),
            None => Format::Pcap(Pcap::begin(&mut window)?.ok_or_else(|| unknown(&window))?),
        };
        Ok(Self {
            window,
            format,
            current: Found::default(),
            ended: false,
        })
    }

    /// Moves to the next packet; returns when it was captured, or `None` at the end and after an error.
    ///
    /// # Errors
    /// When it cannot be read on. What was read before stays good.
    #[inline]
    pub fn advance(&mut self) -> Result<Option<u64>, ReadError> {
        if self.ended {
            return Ok(None);
        }
        let found = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.window),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.window),
        };
        let has_more = match &found {
            Ok(found) => found.is_some(),
            Err(ReadError::Io(error)) => error.kind() == io::ErrorKind::WouldBlock,
            Err(_) => false,
        };
        self.ended = !has_more;
        if let Some(found) = found? {
            self.current = found;
            return Ok(Some(found.unix_ns));
        }
        Ok(None)
    }

    /// The packet that [`Self::advance`] went on to.
    #[inline]
    pub fn frame(&self) -> Frame<'_> {
        Frame {
            unix_ns: self.current.unix_ns,
            link: self.current.link,
            bytes: self.window.passed(self.current.back, self.current.captured),
            original_bytes: self.current.original,
        }
    }

    /// What the file says beside its packets, in the part read so far.
    pub(crate) fn told(&self) -> Told {
        match &self.format {
            Format::Pcap(_) => Told::default(),
            Format::Pcapng(pcapng) => pcapng.told.clone(),
        }
    }

    /// The name of the format.
    pub fn format(&self) -> &'static str {
        match self.format {
            Format::Pcap(_) => "pcap",
            Format::Pcapng(_) => "pcapng",
        }
    }
}

fn unknown(window: &Window) -> ReadError {
    let begins: Vec<String> = window
        .bytes()
        .iter()
        .take(MAGIC_BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    match begins.is_empty() {
        true => ReadError::Empty,
        false => ReadError::Unknown(begins.join(" ")),
    }
}

#[cfg(test)]
#[path = "read/tests.rs"]
mod tests;
