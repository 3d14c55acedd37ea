//! The frames of HTTP/2 (RFC 9113, sections 4 and 6).

/// What a client sends first (RFC 9113, section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes before the payload of a frame.
pub const HEADER_BYTES: usize = 9;

/// The longest payload that may come without this end having allowed more (SETTINGS_MAX_FRAME_SIZE's first value).
pub const MAX_PAYLOAD_BYTES: usize = 16_384;

/// Types of frames (RFC 9113, section 6).
pub mod kind {

    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames (RFC 9113, section 6).
pub mod flag {

    pub const END_STREAM: u8 = 0x1;
    /// Of SETTINGS and PING.
    pub const ACK: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// Parameters of SETTINGS (RFC 9113, section 6.5.2).
pub mod setting {

    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The beginning of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Length of the payload in bytes.
    pub length: usize,
    /// One of those in [`kind`], or unknown.
    pub kind: u8,
    /// Any of those in [`flag`], added.
    pub flags: u8,
    /// Stream, 0 for the connection.
    pub stream: u32,
}

impl Header {
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Self {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes;
        Self {
            length: u32::from_be_bytes([0, l0, l1, l2]) as usize,
            kind,
            flags,
            // The highest bit is reserved.
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & 0x7fff_ffff,
        }
    }

    /// Whether it bears a flag.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame, whose payload must be no longer than the other end allows.
pub fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let [_, l0, l1, l2] = (payload.len() as u32).to_be_bytes();
    out.extend_from_slice(&[l0, l1, l2, kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// The payload of SETTINGS.
pub fn settings(parameters: &[(u16, u32)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(parameters.len() * 6);
    for (parameter, value) in parameters {
        out.extend_from_slice(&parameter.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
    out
}

/// The parameters in the payload of SETTINGS; `None` where it is not made of six bytes each.
pub fn parameters(payload: &[u8]) -> Option<impl Iterator<Item = (u16, u32)> + '_> {
    let (six, rest) = payload.as_chunks::<6>();
    let each = six.iter().map(|[i0, i1, v0, v1, v2, v3]| {
        (
            u16::from_be_bytes([*i0, *i1]),
            u32::from_be_bytes([*v0, *v1, *v2, *v3]),
        )
    });
    rest.is_empty().then_some(each)
}

/// A payload without its padding (sections 6.1 and 6.2); `None` where there is more padding than payload.
pub fn unpadded(header: Header, payload: &[u8]) -> Option<&[u8]> {
    if !header.has(flag::PADDED) {
        return Some(payload);
    }
    let (padding, rest) = payload.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(*padding))?)
}
