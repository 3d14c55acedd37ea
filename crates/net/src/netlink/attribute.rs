//! Attributes as the kernel writes them (`struct nlattr`, `linux/netlink.h`), read leniently: what
//! breaks off ends the list, and an attribute that is too short has no value.

use std::net::IpAddr;

/// `struct nlattr`: length and kind, two bytes each.
const HEADER_BYTES: usize = 4;

/// Flags in the kind: made of attributes (`NLA_F_NESTED`), and a number in network order
/// (`NLA_F_NET_BYTEORDER`).
const NESTED: u16 = 1 << 15;
const NETWORK_ORDER: u16 = 1 << 14;

/// One attribute of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attribute<'a> {
    /// Its number, without the flags.
    pub(crate) kind: u16,
    /// What it holds; attributes again, where it is nested.
    pub(crate) value: &'a [u8],
}

/// The attributes that follow each other in `bytes`.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    std::iter::from_fn(move || {
        let length = usize::from(bytes_at(bytes, 0).map(u16::from_ne_bytes)?);
        let kind = bytes_at(bytes, 2).map(u16::from_ne_bytes)? & !(NESTED | NETWORK_ORDER);
        let value = bytes.get(HEADER_BYTES..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Attribute { kind, value })
    })
}

/// The first attribute of that number.
pub(crate) fn find(bytes: &[u8], kind: u16) -> Option<Attribute<'_>> {
    attributes(bytes).find(|attribute| attribute.kind == kind)
}

impl Attribute<'_> {
    pub(crate) fn u8(&self) -> Option<u8> {
        self.value.first().copied()
    }

    pub(crate) fn u16(&self) -> Option<u16> {
        self.value.first_chunk().copied().map(u16::from_ne_bytes)
    }

    pub(crate) fn u32(&self) -> Option<u32> {
        self.value.first_chunk().copied().map(u32::from_ne_bytes)
    }

    pub(crate) fn u64(&self) -> Option<u64> {
        self.value.first_chunk().copied().map(u64::from_ne_bytes)
    }

    /// Text that a zero may end.
    pub(crate) fn text(&self) -> String {
        let end = self.value.iter().position(|byte| *byte == 0);
        String::from_utf8_lossy(
            self.value
                .get(..end.unwrap_or(self.value.len()))
                .unwrap_or_default(),
        )
        .into_owned()
    }

    /// An address of four or of sixteen bytes.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self.value.len() {
            4 => <[u8; 4]>::try_from(self.value).ok().map(Into::into),
            16 => <[u8; 16]>::try_from(self.value).ok().map(Into::into),
            _ => None,
        }
    }
}

/// An attribute as bytes, padded to the next multiple of four.
pub(crate) fn encode(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(HEADER_BYTES + value.len()).unwrap_or(u16::MAX);
    let mut bytes = Vec::with_capacity(usize::from(length) + 3);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An attribute made of attributes. Newer commands insist on the flag (`NL_VALIDATE_STRICT`), older ones allow it.
pub(crate) fn nested(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    encode(kind | NESTED, &parts.concat())
}

pub(crate) fn number(kind: u16, value: u32) -> Vec<u8> {
    encode(kind, &value.to_ne_bytes())
}

/// Text that a zero ends.
pub(crate) fn text(kind: u16, value: &str) -> Vec<u8> {
    encode(kind, &[value.as_bytes(), &[0]].concat())
}

pub(crate) fn address(kind: u16, value: IpAddr) -> Vec<u8> {
    match value {
        IpAddr::V4(address) => encode(kind, &address.octets()),
        IpAddr::V6(address) => encode(kind, &address.octets()),
    }
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
