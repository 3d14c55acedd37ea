//! The classic capture file of libpcap (draft-ietf-opsawg-pcap).

use super::record::{Found, MAX_PACKET_BYTES, ReadError, on_the_wire};
use super::window::Window;

/// What the file begins with, in the byte order of who wrote it: times in microseconds, or in nanoseconds.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Bytes of the file's header and of each record's (sections 4 and 5).
const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const NS_PER_S: u64 = 1_000_000_000;

/// How the records of a file are to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pcap {
    big_endian: bool,
    nanoseconds: bool,
    link: u16,
}

impl Pcap {
    /// The header of a file; `None` where it is no file of this format.
    pub(super) fn begin(window: &mut Window) -> Result<Option<Self>, ReadError> {
        window.fill(FILE_HEADER)?;
        let Some(header) = window.bytes().first_chunk::<FILE_HEADER>() else {
            return Ok(None);
        };
        let [m0, m1, m2, m3, a, b, c, d, .., l0, l1, l2, l3] = *header;
        let magic = [m0, m1, m2, m3];
        let kinds = [MICROSECONDS, NANOSECONDS];
        let big_endian = kinds.contains(&u32::from_be_bytes(magic));
        if !big_endian && !kinds.contains(&u32::from_le_bytes(magic)) {
            return Ok(None);
        }
        let number = |bytes: [u8; 4]| match big_endian {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        };
        let (major, minor) = match big_endian {
            true => (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])),
            false => (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])),
        };
        if major != 2 {
            return Err(ReadError::Version {
                format: "pcap",
                major,
                minor,
            });
        }
        window.pass(FILE_HEADER);
        Ok(Some(Self {
            big_endian,
            nanoseconds: number(magic) == NANOSECONDS,
            // The upper half says whether frames end in their check sequence.
            link: number([l0, l1, l2, l3]) as u16,
        }))
    }

    /// The next record, where it is whole.
    #[inline]
    pub(super) fn next(self, window: &mut Window) -> Result<Option<Found>, ReadError> {
        let at = window.offset();
        match window.fill(RECORD_HEADER)? {
            0 => return Ok(None),
            RECORD_HEADER.. => {}
            _ => return Err(ReadError::Cut { at }),
        }
        let Some(header) = window.bytes().first_chunk::<RECORD_HEADER>() else {
            return Err(ReadError::Cut { at });
        };
        let number = |bytes: [u8; 4]| match self.big_endian {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        };
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *header;
        let seconds = u64::from(number([a, b, c, d]));
        let fraction = u64::from(number([e, f, g, h]));
        let (captured, original) = (number([i, j, k, l]), number([m, n, o, p]));
        if captured > MAX_PACKET_BYTES {
            let length = u64::from(captured);
            return Err(ReadError::Absurd { at, length });
        }
        let captured = captured as usize;
        if window.fill(RECORD_HEADER + captured)? < RECORD_HEADER + captured {
            return Err(ReadError::Cut { at });
        }
        window.pass(RECORD_HEADER + captured);
        let fraction_ns = match self.nanoseconds {
            true => fraction,
            false => fraction * 1000,
        };
        Ok(Some(Found {
            unix_ns: seconds * NS_PER_S + fraction_ns,
            link: self.link,
            back: captured,
            captured,
            original: on_the_wire(original, captured as u32),
        }))
    }
}
