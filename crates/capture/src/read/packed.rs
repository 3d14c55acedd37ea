//! What captures are packed in, known by what it begins with: gzip, zstd and lz4. Each is unpacked while it is read, in
//! bounded memory, one member or frame after the other.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder as BlockDecoder};

/// As many bytes as distinguish packings.
const MAGIC_BYTES: usize = 4;
/// What gzip begins with (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What a frame of zstd begins with (RFC 8878, section 3.1.1).
const ZSTD: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// What a frame of lz4 begins with (lz4's lz4_Frame_format.md).
const LZ4: [u8; 4] = 0x184d_2204_u32.to_le_bytes();

/// Whether a stream is packed, by its first bytes.
pub(super) fn is_packed(begins: &[u8]) -> bool {
    [&GZIP[..], &ZSTD, &LZ4]
        .iter()
        .any(|magic| begins.starts_with(magic))
}

/// A stream without its packing.
pub(super) fn unpacked(mut source: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut begins = Vec::with_capacity(MAGIC_BYTES);
    source
        .by_ref()
        .take(MAGIC_BYTES as u64)
        .read_to_end(&mut begins)?;
    let [gzip, zstd, lz4] = [&GZIP[..], &ZSTD, &LZ4].map(|magic| begins.starts_with(magic));
    let whole = Cursor::new(begins).chain(source);
    Ok(match (gzip, zstd, lz4) {
        (true, ..) => Box::new(MultiGzDecoder::new(whole)),
        (_, true, _) => Box::new(Zstd {
            source: BufReader::new(whole),
            decoder: BlockDecoder::new(),
            within: false,
        }),
        (.., true) => Box::new(Lz4(FrameDecoder::new(BufReader::new(whole)))),
        _ => Box::new(whole),
    })
}

/// Frames of lz4, of which a file may have several.
struct Lz4<R: Read>(FrameDecoder<BufReader<R>>);

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Ends with bytes, the end or an error: a frame that is over takes bytes of the source.
        loop {
            let count = self.0.read(into)?;
            if count > 0 || into.is_empty() || self.0.get_mut().fill_buf()?.is_empty() {
                return Ok(count);
            }
        }
    }
}

/// Frames of zstd, of which a file may have several.
struct Zstd<R: Read> {
    source: BufReader<R>,
    decoder: BlockDecoder,
    /// Whether a frame was begun and has more.
    within: bool,
}

impl<R: Read> Zstd<R> {
    /// Begins the next frame, or passes one that is to be skipped (RFC 8878, section 3.1.2); `false` at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        if self.source.fill_buf()?.is_empty() {
            return Ok(false);
        }
        match self.decoder.init(&mut self.source) {
            Ok(()) => self.within = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let mut skipped = self.source.by_ref().take(length.into());
                io::copy(&mut skipped, &mut io::sink())?;
            }
            Err(error) => return Err(invalid(error)),
        }
        Ok(true)
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Ends with bytes, the end or an error: each turn takes bytes of the source, or gives some.
        loop {
            if !self.within && !self.next_frame()? {
                return Ok(0);
            }
            let at_a_time = BlockDecodingStrategy::UptoBytes(into.len());
            if self.within && !self.decoder.is_finished() && self.decoder.can_collect() < into.len()
            {
                self.decoder
                    .decode_blocks(&mut self.source, at_a_time)
                    .map_err(invalid)?;
            }
            let count = self.decoder.read(into)?;
            self.within = !(self.decoder.is_finished() && self.decoder.can_collect() == 0);
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
        }
    }
}

fn invalid(error: FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
