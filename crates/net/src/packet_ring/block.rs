//! A block of TPACKET_V3 (linux/if_packet.h): a header, and packets each with one of its own.

/// Places in `struct tpacket_block_desc`.
const COUNT_AT: usize = 12;
const FIRST_AT: usize = 16;
/// Places in `struct tpacket3_hdr`, which `struct sockaddr_ll` follows.
const NEXT_AT: usize = 0;
const SECONDS_AT: usize = 4;
const NANOSECONDS_AT: usize = 8;
const CAPTURED_AT: usize = 12;
const ORIGINAL_AT: usize = 16;
const STATUS_AT: usize = 20;
const FRAME_AT: usize = 24;
const TAG_AT: usize = 32;
const TAG_PROTOCOL_AT: usize = 36;
const ADDRESS_AT: usize = 48;
/// Places in `struct sockaddr_ll`.
const PROTOCOL_AT: usize = ADDRESS_AT + 2;
const INDEX_AT: usize = ADDRESS_AT + 4;
const HARDWARE_AT: usize = ADDRESS_AT + 8;
const KIND_AT: usize = ADDRESS_AT + 10;
const LENGTH_AT: usize = ADDRESS_AT + 11;
const FROM_AT: usize = ADDRESS_AT + 12;

/// What Linux puts before packets of any interface (LINKTYPE_LINUX_SLL2): protocol, interface, kind, address.
pub(super) const COOKED_BYTES: usize = 20;

/// Bits of a packet's status: its tag is known, and the protocol of the tag.
const HAS_TAG: u32 = 1 << 4;
const HAS_TAG_PROTOCOL: u32 = 1 << 6;
/// The usual protocol of a tag (IEEE 802.1Q).
const TAG_PROTOCOL: u16 = 0x8100;

const NS_PER_S: u64 = 1_000_000_000;

/// What is left to read of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    left: u32,
    at: usize,
}

/// Where a packet is in its block, and what stands in its header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) unix_ns: u64,
    pub(super) original_bytes: u32,
    pub(super) sent: bool,
    /// A VLAN tag that the kernel took out, as it was on the wire.
    pub(super) vlan: Option<[u8; 4]>,
    at: usize,
    captured: usize,
    protocol: [u8; 2],
    index: u32,
    hardware: u16,
    kind: u8,
    address_bytes: u8,
    address: [u8; 8],
}

impl Block {
    /// All packets of a block that was handed over.
    pub(super) fn begin(bytes: &[u8]) -> Self {
        Self {
            left: u32_at(bytes, COUNT_AT).unwrap_or(0),
            at: u32_at(bytes, FIRST_AT).unwrap_or(0) as usize,
        }
    }

    /// The next packet; `None` at the end, and where a place is outside of the block.
    pub(super) fn next(&mut self, bytes: &[u8]) -> Option<Record> {
        self.left = self.left.checked_sub(1)?;
        let header = bytes.get(self.at..)?;
        let record = Record::read(header, self.at)?;
        self.at = self.at.saturating_add(u32_at(header, NEXT_AT)? as usize);
        Some(record)
    }
}

impl Record {
    fn read(header: &[u8], at: usize) -> Option<Self> {
        let word = |at: usize| u32_at(header, at);
        let half = |at: usize| bytes_at::<2>(header, at).map(u16::from_ne_bytes);
        let status = word(STATUS_AT)?;
        let protocol = match status & HAS_TAG_PROTOCOL {
            0 => TAG_PROTOCOL,
            _ => half(TAG_PROTOCOL_AT)?,
        };
        let tag = (word(TAG_AT)? as u16).to_be_bytes();
        let [p0, p1] = protocol.to_be_bytes();
        let [t0, t1] = tag;
        let [kind] = bytes_at(header, KIND_AT)?;
        let [address_bytes] = bytes_at(header, LENGTH_AT)?;
        let seconds = u64::from(word(SECONDS_AT)?) * NS_PER_S;
        Some(Self {
            unix_ns: seconds + u64::from(word(NANOSECONDS_AT)?),
            original_bytes: word(ORIGINAL_AT)?,
            sent: kind == libc::PACKET_OUTGOING,
            vlan: (status & HAS_TAG != 0).then_some([p0, p1, t0, t1]),
            at: at.saturating_add(half(FRAME_AT)?.into()),
            captured: word(CAPTURED_AT)? as usize,
            protocol: bytes_at(header, PROTOCOL_AT)?,
            index: word(INDEX_AT)?,
            hardware: half(HARDWARE_AT)?,
            kind,
            address_bytes,
            address: bytes_at(header, FROM_AT)?,
        })
    }

    /// Its bytes, as far as they are in the block.
    pub(super) fn bytes<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        let from = block.get(self.at..).unwrap_or_default();
        from.get(..self.captured).unwrap_or(from)
    }

    /// Whether it was sent over the loopback, which delivers it a second time as received.
    pub(super) fn is_sent_over_loopback(&self) -> bool {
        self.sent && self.hardware == libc::ARPHRD_LOOPBACK
    }

    /// How many bytes of it were captured.
    pub(super) fn captured(&self) -> usize {
        self.captured
    }

    /// The header that replaces any link header (LINKTYPE_LINUX_SLL2).
    pub(super) fn cooked(&self) -> [u8; COOKED_BYTES] {
        let [p0, p1] = self.protocol;
        let [i0, i1, i2, i3] = self.index.to_be_bytes();
        let [h0, h1] = self.hardware.to_be_bytes();
        let [a0, a1, a2, a3, a4, a5, a6, a7] = self.address;
        let kind = [self.kind, self.address_bytes];
        let [k0, k1] = kind;
        [
            p0, p1, 0, 0, i0, i1, i2, i3, h0, h1, k0, k1, a0, a1, a2, a3, a4, a5, a6, a7,
        ]
    }
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_ne_bytes)
}
