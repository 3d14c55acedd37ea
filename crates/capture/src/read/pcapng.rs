//! Capture files of the second generation (draft-ietf-opsawg-pcapng): sections of blocks, of several interfaces.

use std::net::IpAddr;

use super::record::{Found, MAX_PACKET_BYTES, ReadError, on_the_wire};
use super::window::Window;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
/// The packet block that the enhanced one replaced (appendix A).
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const NAMES: u32 = 4;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const SECRETS: u32 = 10;

const OPTION_COMMENT: u16 = 1;
const OPTION_IF_NAME: u16 = 2;
const OPTION_IF_TSRESOL: u16 = 9;
const OPTION_IF_TSOFFSET: u16 = 14;
/// What the interface dropped and what the operating system dropped before the capture got it (section 4.6).
const OPTION_ISB_IFDROP: u16 = 5;
const OPTION_ISB_OSDROP: u16 = 7;

/// A block's type, its length, and the length once more at its end.
const FRAME: usize = 12;
/// Comments and names kept of a file; the others are counted.
const MOST_KEPT: usize = 1000;
/// Interfaces of a section; more would be no capture but an attack on memory.
const MOST_INTERFACES: usize = 65_536;
const NS_PER_S: u64 = 1_000_000_000;

/// What a file says beside its packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// Comments on the file, an interface or a packet.
    pub comments: Vec<String>,
    /// Addresses with their names (name resolution blocks).
    pub names: Vec<(IpAddr, String)>,
    /// Names of the interfaces, where they have one.
    pub interfaces: Vec<String>,
    /// Packets that the capture lost, as the last statistics of each interface count them.
    pub dropped: u64,
    /// Blocks of secrets that decrypt, which are passed over.
    pub secrets: u64,
    /// Blocks of unknown types, which are passed over.
    pub unknown_blocks: u64,
    /// Comments and names beyond those kept.
    pub not_kept: u64,
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link: u16,
    snap_bytes: u32,
    units: Units,
    offset_s: u64,
    dropped: u64,
}

/// How long a unit of a time stamp is.
#[derive(Debug, Clone, Copy)]
enum Units {
    /// Units of so many nanoseconds each.
    Nanoseconds(u64),
    /// So many of them in a nanosecond.
    Shorter(u64),
    /// Units of 2⁻ⁿ seconds each.
    Binary(u32),
}

impl Units {
    /// `if_tsresol`: a power of ten, or with the upper bit of two.
    fn new(resolution: u8) -> Self {
        let exponent = u32::from(resolution & 0x7f);
        match (resolution & 0x80, exponent) {
            (0, 0..=9) => Self::Nanoseconds(10_u64.pow(9 - exponent)),
            (0, _) => Self::Shorter(10_u64.saturating_pow(exponent - 9)),
            (_, _) => Self::Binary(exponent.min(64)),
        }
    }

    fn to_ns(self, stamp: u64) -> u64 {
        match self {
            Self::Nanoseconds(each) => stamp.saturating_mul(each),
            Self::Shorter(each) => stamp / each.max(1),
            Self::Binary(exponent) => {
                ((u128::from(stamp) * u128::from(NS_PER_S)) >> exponent) as u64
            }
        }
    }
}

/// A file that is being read.
#[derive(Debug)]
pub(super) struct Pcapng {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Packets that the capture lost, of sections before.
    dropped_before: u64,
    /// Bytes of a block that are to be passed over.
    skips: u64,
    /// Time of the packet before, for those that have none.
    last_ns: u64,
    pub(super) told: Told,
}

/// Numbers in the byte order of a section.
#[derive(Clone, Copy)]
struct Fields<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Fields<'a> {
    fn u16(&mut self) -> Option<u16> {
        let (head, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(match self.big_endian {
            true => u16::from_be_bytes(*head),
            false => u16::from_le_bytes(*head),
        })
    }

    fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(match self.big_endian {
            true => u32::from_be_bytes(*head),
            false => u32::from_le_bytes(*head),
        })
    }

    /// A time stamp, its upper half first.
    fn stamp(&mut self) -> Option<u64> {
        let (high, low) = (self.u32()?, self.u32()?);
        Some(u64::from(high) << 32 | u64::from(low))
    }

    fn u64(&mut self) -> Option<u64> {
        let (first, second) = (u64::from(self.u32()?), u64::from(self.u32()?));
        Some(match self.big_endian {
            true => first << 32 | second,
            false => second << 32 | first,
        })
    }

    /// A value of so many bytes, and the padding behind it.
    fn padded(&mut self, length: usize) -> Option<&'a [u8]> {
        let value = self.bytes.get(..length)?;
        let rest = self.bytes.get(length.next_multiple_of(4)..);
        self.bytes = rest.unwrap_or_default();
        Some(value)
    }

    /// The next option, until the end of them or the first that is not whole.
    fn option(&mut self) -> Option<(u16, &'a [u8])> {
        let code = self.u16()?;
        let length = self.u16()?;
        match code {
            0 => None,
            _ => Some((code, self.padded(usize::from(length))?)),
        }
    }
}

impl Pcapng {
    /// The state before the first section; `None` where it is no file of this format.
    pub(super) fn begin(window: &mut Window) -> Result<Option<Self>, ReadError> {
        window.fill(4)?;
        let begins = window.bytes().first_chunk() == Some(&SECTION_HEADER.to_be_bytes());
        Ok(begins.then(|| Self {
            big_endian: false,
            interfaces: Vec::new(),
            dropped_before: 0,
            skips: 0,
            last_ns: 0,
            told: Told::default(),
        }))
    }

    /// The next packet; other blocks before it are read or passed over.
    pub(super) fn next(&mut self, window: &mut Window) -> Result<Option<Found>, ReadError> {
        // Ends with the stream: each turn passes a block.
        loop {
            let at = window.offset();
            if !window.skip(&mut self.skips)? {
                return Err(ReadError::Cut { at });
            }
            let at = window.offset();
            match window.fill(FRAME)? {
                0 => return Ok(None),
                FRAME.. => {}
                _ => return Err(ReadError::Cut { at }),
            }
            let kind = self.fields(window.bytes()).u32().unwrap_or_default();
            if kind == SECTION_HEADER {
                self.section(window, at)?;
            }
            let mut head = self.fields(window.bytes());
            let (_, length) = (head.u32(), head.u32().unwrap_or_default());
            if (length as usize) < FRAME || length % 4 != 0 {
                let what = "has a length that no block can have";
                return Err(ReadError::Damaged { at, what });
            }
            let read = matches!(
                kind,
                SECTION_HEADER
                    | INTERFACE
                    | NAMES
                    | STATISTICS
                    | ENHANCED_PACKET
                    | SIMPLE_PACKET
                    | OLD_PACKET
            );
            if !read {
                match kind {
                    SECRETS => self.told.secrets += 1,
                    _ => self.told.unknown_blocks += 1,
                }
                self.skips = u64::from(length);
                continue;
            }
            // A packet block has at most a packet, and less than a megabyte around it.
            if length > MAX_PACKET_BYTES + (1 << 20) {
                let length = u64::from(length);
                return Err(ReadError::Absurd { at, length });
            }
            let length = length as usize;
            if window.fill(length)? < length {
                return Err(ReadError::Cut { at });
            }
            let block = window.bytes().get(..length).unwrap_or_default();
            let body = block.get(8..length - 4).unwrap_or_default();
            let mut trailer = self.fields(block.get(length - 4..).unwrap_or_default());
            if trailer.u32() != Some(length as u32) {
                let what = "ends in another length than it begins with";
                return Err(ReadError::Damaged { at, what });
            }
            let body = Fields {
                bytes: body,
                big_endian: self.big_endian,
            };
            let mut found = None;
            match kind {
                SECTION_HEADER => self.comments(body.after(16).unwrap_or(body)),
                INTERFACE => self.interface(body).ok_or_else(|| too_short(at))?,
                NAMES => self.names(body),
                STATISTICS => self.statistics(body).ok_or_else(|| too_short(at))?,
                _ => found = Some(self.packet(kind, body).ok_or_else(|| too_short(at))?),
            }
            window.pass(length);
            if let Some(mut found) = found {
                found.back = length - found.back;
                return Ok(Some(found));
            }
        }
    }

    fn fields<'a>(&self, bytes: &'a [u8]) -> Fields<'a> {
        Fields {
            bytes,
            big_endian: self.big_endian,
        }
    }

    /// A section begins: its byte order is its own, and so are its interfaces.
    fn section(&mut self, window: &mut Window, at: u64) -> Result<(), ReadError> {
        /// With version and length, behind which options come.
        const HEADER: usize = 24;
        if window.fill(HEADER)? < HEADER {
            return Err(ReadError::Cut { at });
        }
        let magic = window.bytes().get(8..12).unwrap_or_default();
        self.big_endian = match magic == BYTE_ORDER_MAGIC.to_be_bytes() {
            true => true,
            false if magic == BYTE_ORDER_MAGIC.to_le_bytes() => false,
            false => {
                let what = "begins a section without its byte order";
                return Err(ReadError::Damaged { at, what });
            }
        };
        let mut version = self.fields(window.bytes().get(12..16).unwrap_or_default());
        let (major, minor) = (version.u16(), version.u16());
        // Version 1.2 was written by mistake and reads as 1.0 (section 4.1).
        if major != Some(1) {
            return Err(ReadError::Version {
                format: "pcapng",
                major: major.unwrap_or_default(),
                minor: minor.unwrap_or_default(),
            });
        }
        self.dropped_before += self.interfaces.iter().map(|i| i.dropped).sum::<u64>();
        self.interfaces.clear();
        Ok(())
    }

    /// An interface; `None` where the block is too short for one.
    fn interface(&mut self, mut body: Fields<'_>) -> Option<()> {
        let (link, _reserved) = (body.u16()?, body.u16()?);
        let mut interface = Interface {
            link,
            snap_bytes: body.u32()?,
            units: Units::Nanoseconds(1000),
            offset_s: 0,
            dropped: 0,
        };
        // Ends with the options: each turn reads one.
        while let Some((code, value)) = body.option() {
            match code {
                OPTION_COMMENT => self.comment(value),
                OPTION_IF_NAME => keep(
                    &mut self.told.interfaces,
                    text(value),
                    &mut self.told.not_kept,
                ),
                OPTION_IF_TSRESOL => interface.units = Units::new(*value.first()?),
                OPTION_IF_TSOFFSET => interface.offset_s = self.fields(value).u64()?,
                _ => {}
            }
        }
        if self.interfaces.len() < MOST_INTERFACES {
            self.interfaces.push(interface);
        }
        Some(())
    }

    /// What an interface's capture lost so far.
    fn statistics(&mut self, mut body: Fields<'_>) -> Option<()> {
        let number = body.u32()?;
        body.stamp()?;
        let mut dropped = 0;
        // Ends with the options: each turn reads one.
        while let Some((code, value)) = body.option() {
            if matches!(code, OPTION_ISB_IFDROP | OPTION_ISB_OSDROP) {
                dropped += self.fields(value).u64()?;
            }
        }
        self.interfaces.get_mut(number as usize)?.dropped = dropped;
        let now = self.interfaces.iter().map(|interface| interface.dropped);
        self.told.dropped = self.dropped_before.saturating_add(now.sum());
        Some(())
    }

    /// Names of addresses (section 4.5), up to the first record that is not whole.
    fn names(&mut self, mut body: Fields<'_>) {
        const IPV4: u16 = 1;
        const IPV6: u16 = 2;
        // Ends with the records, which are laid out as options: each turn reads one.
        while let Some((kind, value)) = body.option() {
            let address = match kind {
                IPV4 => value
                    .split_first_chunk::<4>()
                    .map(|(a, name)| (IpAddr::from(*a), name)),
                IPV6 => value
                    .split_first_chunk::<16>()
                    .map(|(a, name)| (IpAddr::from(*a), name)),
                _ => None,
            };
            let Some((address, name)) = address else {
                continue;
            };
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            keep(
                &mut self.told.names,
                (address, text(name)),
                &mut self.told.not_kept,
            );
        }
    }

    /// A packet, whose `back` is where in the block it begins.
    #[inline]
    fn packet(&mut self, kind: u32, mut body: Fields<'_>) -> Option<Found> {
        let whole = body.bytes.len();
        let (interface, unix_ns, captured, original) = match kind {
            SIMPLE_PACKET => {
                let interface = self.interfaces.first()?;
                let original = body.u32()?;
                let snap = match interface.snap_bytes {
                    0 => u32::MAX,
                    snap => snap,
                };
                let captured = original.min(snap).min(body.bytes.len() as u32);
                (interface, self.last_ns, captured, original)
            }
            _ => {
                let number = match kind {
                    ENHANCED_PACKET => body.u32()?,
                    _ => {
                        let (number, _drops) = (body.u16()?, body.u16()?);
                        u32::from(number)
                    }
                };
                let interface = self.interfaces.get(number as usize)?;
                let stamp = interface.units.to_ns(body.stamp()?);
                let unix_ns = stamp.saturating_add(interface.offset_s.saturating_mul(NS_PER_S));
                (interface, unix_ns, body.u32()?, body.u32()?)
            }
        };
        let begins = 8 + whole - body.bytes.len();
        let link = interface.link;
        body.padded(captured as usize)?;
        if !body.bytes.is_empty() && kind != SIMPLE_PACKET {
            self.comments(body);
        }
        self.last_ns = unix_ns;
        Some(Found {
            unix_ns,
            link,
            back: begins,
            captured: captured as usize,
            original: on_the_wire(original, captured),
        })
    }

    fn comments(&mut self, mut options: Fields<'_>) {
        // Ends with the options: each turn reads one.
        while let Some((code, value)) = options.option() {
            if code == OPTION_COMMENT {
                self.comment(value);
            }
        }
    }

    fn comment(&mut self, value: &[u8]) {
        keep(
            &mut self.told.comments,
            text(value),
            &mut self.told.not_kept,
        );
    }
}

impl Fields<'_> {
    fn after(self, count: usize) -> Option<Self> {
        let bytes = self.bytes.get(count..)?;
        Some(Self { bytes, ..self })
    }
}

fn too_short(at: u64) -> ReadError {
    let what = "is too short for what it is to have";
    ReadError::Damaged { at, what }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn keep<T>(kept: &mut Vec<T>, value: T, not_kept: &mut u64) {
    match kept.len() < MOST_KEPT {
        true => kept.push(value),
        false => *not_kept += 1,
    }
}
