//! Reading numbers in network byte order. What reads each field of each record is inlined here and in `element` and `template`, so
//! that it is compiled for speed where the flows are summed up, though this crate is compiled for size.

/// Bytes that are read one after the other; `None` where they end too soon.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn v4(&mut self) -> Option<std::net::Ipv4Addr> {
        self.array::<4>().map(Into::into)
    }

    pub(super) fn v6(&mut self) -> Option<std::net::Ipv6Addr> {
        self.array::<16>().map(Into::into)
    }

    /// The content of a field of variable length, which begins with its length (RFC 7011, section 7).
    #[inline]
    pub(super) fn variable(&mut self) -> Option<&'a [u8]> {
        let length = match self.u8()? {
            255 => usize::from(self.u16()?),
            short => usize::from(short),
        };
        self.take(length)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A number of up to eight bytes; of more, what the last eight have.
#[inline]
pub(super) fn number(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_be_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_be_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes
            .iter()
            .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)),
    }
}

/// A number of up to eight bytes, the largest of 32 bits where it is larger.
#[inline]
pub(super) fn number32(bytes: &[u8]) -> u32 {
    u32::try_from(number(bytes)).unwrap_or(u32::MAX)
}
