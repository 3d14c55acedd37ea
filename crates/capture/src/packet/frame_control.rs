//! What the headers of IEEE 802.11 say of a frame, and of the header itself.

/// What a frame is for (IEEE 802.11-2020, section 9.2.4.1.3).
const MANAGEMENT: u8 = 0;
const CONTROL: u8 = 1;
const DATA: u8 = 2;
/// Bits of the subtype of data frames (table 9-1): nothing is carried; there is a QoS Control field.
const NO_DATA: u8 = 0b0100;
const QOS: u8 = 0b1000;
/// Flags of the Frame Control field (section 9.2.4.1).
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const RETRY: u8 = 0x08;
const PROTECTED: u8 = 0x40;
const HT_CONTROL: u8 = 0x80;
/// An A-MSDU is present (section 9.2.4.5.9), in the first byte of QoS Control.
pub(crate) const AGGREGATED: u8 = 0x80;
/// Bytes of the frame check sequence.
pub(crate) const CHECK_BYTES: u32 = 4;
/// What LLC begins with where an EtherType follows: SNAP of RFC 1042, and of bridges (IEEE 802.1H).
pub(crate) const SNAP: [[u8; 6]; 2] = [[0xaa, 0xaa, 3, 0, 0, 0], [0xaa, 0xaa, 3, 0, 0, 0xf8]];

/// Flags of a radiotap header (radiotap.org, field "Flags").
pub(crate) mod radiotap {
    /// The frame ends in its check sequence.
    pub(crate) const CHECKED: u8 = 0x10;
    /// What is carried begins at a multiple of four bytes.
    pub(crate) const PADDED: u8 = 0x20;
    /// The check sequence was wrong.
    pub(crate) const BAD: u8 = 0x40;

    /// The flags of a header that is whole; `None` where it has none, or is not whole.
    pub(crate) fn flags(header: &[u8]) -> Option<u8> {
        let word = |at: usize| {
            let bytes = header.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let present = word(4)?;
        let mut at = 8;
        let mut last = present;
        // Ends with the header: the uppermost bit says that another word follows.
        while last >> 31 == 1 {
            last = word(at)?;
            at += 4;
        }
        // Bit 0 is a time of eight bytes, aligned to as many; bit 1 are the flags.
        if present & 1 != 0 {
            at = at.next_multiple_of(8) + 8;
        }
        (present & 2 != 0).then(|| header.get(at).copied())?
    }
}

/// The Frame Control field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Control {
    kind: u8,
    subtype: u8,
    flags: u8,
}

impl Control {
    /// `None` for an unknown version.
    pub(crate) fn new([first, flags]: [u8; 2]) -> Option<Self> {
        (first & 0b11 == 0).then_some(Self {
            kind: first >> 2 & 0b11,
            subtype: first >> 4,
            flags,
        })
    }

    fn has(self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    pub(crate) fn is_management(self) -> bool {
        self.kind == MANAGEMENT
    }

    pub(crate) fn is_control(self) -> bool {
        self.kind == CONTROL
    }

    pub(crate) fn is_data(self) -> bool {
        self.kind == DATA
    }

    pub(crate) fn is_retry(self) -> bool {
        self.has(RETRY)
    }

    pub(crate) fn is_protected(self) -> bool {
        self.has(PROTECTED)
    }

    /// Whether a data frame carries something.
    pub(crate) fn carries(self) -> bool {
        self.subtype & NO_DATA == 0
    }

    /// Whether the third address is the destination's (table 9-30).
    pub(crate) fn is_to_access_point(self) -> bool {
        self.has(TO_DS)
    }

    pub(crate) fn has_four_addresses(self) -> bool {
        self.has(TO_DS | FROM_DS)
    }

    pub(crate) fn is_qos(self) -> bool {
        self.subtype & QOS != 0
    }

    pub(crate) fn has_ht_control(self) -> bool {
        self.is_qos() && self.has(HT_CONTROL)
    }
}

/// What is known of a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wireless {
    /// `None` where its check sequence was wrong, so that nothing of it is sure.
    pub(crate) control: Option<Control>,
    /// Whether it carries several frames (A-MSDU).
    pub(crate) is_aggregated: bool,
}
