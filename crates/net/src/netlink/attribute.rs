//! Attributes as the kernel writes them (`struct nlattr`, `linux/netlink.h`), read leniently: what
//! breaks off ends the list, and an attribute of an unexpected length has no value.

use netlink_packet_core::NlasIterator;

/// `struct nlattr`: length and kind, two bytes each.
const HEADER_BYTES: usize = 4;

/// One attribute of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its number, without the flags.
    pub kind: u16,
    /// What it holds; attributes again, where it is nested.
    pub value: &'a [u8],
}

/// The attributes that follow each other in `bytes`.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    NlasIterator::new(bytes)
        .map_while(Result::ok)
        .filter_map(|attribute| {
            let (kind, length) = (attribute.kind(), attribute.value_length());
            let value = attribute
                .into_inner()
                .get(HEADER_BYTES..HEADER_BYTES + length)?;
            Some(Attribute { kind, value })
        })
}

/// The value of the first attribute of that number.
pub fn find(bytes: &[u8], kind: u16) -> Option<Attribute<'_>> {
    attributes(bytes).find(|attribute| attribute.kind == kind)
}

impl Attribute<'_> {
    /// A byte.
    pub fn u8(&self) -> Option<u8> {
        self.value.first().copied()
    }

    /// 16 bits.
    pub fn u16(&self) -> Option<u16> {
        self.value.first_chunk().copied().map(u16::from_ne_bytes)
    }

    /// 32 bits.
    pub fn u32(&self) -> Option<u32> {
        self.value.first_chunk().copied().map(u32::from_ne_bytes)
    }

    /// 64 bits.
    pub fn u64(&self) -> Option<u64> {
        self.value.first_chunk().copied().map(u64::from_ne_bytes)
    }

    /// Text that a zero may end.
    pub fn text(&self) -> String {
        let end = self.value.iter().position(|byte| *byte == 0);
        String::from_utf8_lossy(
            self.value
                .get(..end.unwrap_or(self.value.len()))
                .unwrap_or_default(),
        )
        .into_owned()
    }

    /// An address of four or of sixteen bytes.
    pub fn address(&self) -> Option<std::net::IpAddr> {
        match self.value.len() {
            4 => <[u8; 4]>::try_from(self.value).ok().map(Into::into),
            16 => <[u8; 16]>::try_from(self.value).ok().map(Into::into),
            _ => None,
        }
    }
}

/// An attribute as bytes, padded to the next multiple of four.
pub fn encode(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(HEADER_BYTES + value.len()).unwrap_or(u16::MAX);
    let mut bytes = Vec::with_capacity(usize::from(length) + 3);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// `N` bytes of a fixed structure; `None` where it ends before.
pub(crate) fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// 32 bits of a fixed structure.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes_at(bytes, at).map(u32::from_ne_bytes)
}

/// 64 bits of a fixed structure.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes_at(bytes, at).map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_written_is_read(list in prop::collection::vec((0_u16..0x3fff, prop::collection::vec(any::<u8>(), 0..40)), 0..8)) {
            let bytes: Vec<u8> = list.iter().flat_map(|(kind, value)| encode(*kind, value)).collect();
            let read: Vec<_> = attributes(&bytes).map(|a| (a.kind, a.value.to_vec())).collect();
            prop_assert_eq!(read, list);
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for a in attributes(&bytes) {
                let _ = (a.u8(), a.u16(), a.u32(), a.u64(), a.text(), a.address());
            }
        }
    }

    #[test]
    fn a_value_of_another_length_is_none() {
        let bytes = encode(3, &[1, 2]);
        let short = find(&bytes, 3).unwrap();
        assert_eq!(
            (short.u8(), short.u32(), short.address()),
            (Some(1), None, None)
        );
        let bytes = encode(1, b"eth0\0junk");
        assert_eq!(find(&bytes, 1).unwrap().text(), "eth0");
        assert!(find(&bytes, 2).is_none());
    }
}
