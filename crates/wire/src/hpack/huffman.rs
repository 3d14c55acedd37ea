//! The Huffman code of HPACK (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: of two codes of one length the smaller belongs to the smaller symbol, and a shorter code is
//! smaller than the beginning of any longer one. So the lengths alone determine it.

use std::sync::LazyLock;

/// Length of the code of each byte in bits (RFC 7541, appendix B).
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The longest code in bits.
const LONGEST: usize = 30;

/// The codes of one length.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    /// The smallest of them.
    first: u32,
    /// How many there are.
    count: u32,
    /// Where the symbol of the smallest stands in [`Code::symbols`].
    at: usize,
}

struct Code {
    rows: [Row; LONGEST + 1],
    /// Bytes in the order of their codes.
    symbols: Vec<u8>,
}

static CODE: LazyLock<Code> = LazyLock::new(|| {
    let mut rows = [Row::default(); LONGEST + 1];
    let mut symbols = Vec::with_capacity(LENGTHS.len());
    let mut next = 0_u32;
    for (length, row) in rows.iter_mut().enumerate() {
        next <<= 1;
        let at = symbols.len();
        let of_length = (0..=u8::MAX).zip(LENGTHS);
        symbols.extend(
            of_length
                .filter(|(_, bits)| usize::from(*bits) == length)
                .map(|(symbol, _)| symbol),
        );
        let count = u32::try_from(symbols.len() - at).unwrap_or(0);
        *row = Row {
            first: next,
            count,
            at,
        };
        next += count;
    }
    Code { rows, symbols }
});

/// The bytes that a string encodes; `None` where it is invalid: it has the code of the end (EOS) in it, or its padding
/// is not the beginning of that code and shorter than a byte.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let code_of = &*CODE;
    // The shortest code has five bits.
    let mut out = Vec::with_capacity(bytes.len() * 8 / 5);
    let (mut code, mut length) = (0_u32, 0_usize);
    for byte in bytes {
        for bit in (0..8).rev() {
            code = code << 1 | u32::from(byte >> bit & 1);
            length += 1;
            // Longer than any code. The code of the end (EOS), the only one of 30 bits that is no byte's, comes here
            // too.
            let row = code_of.rows.get(length)?;
            let above = code.wrapping_sub(row.first);
            if above < row.count {
                out.push(*code_of.symbols.get(row.at + above as usize)?);
                (code, length) = (0, 0);
            }
        }
    }
    // Section 5.2: the most significant bits of EOS, which are ones.
    (length < 8 && code == (1 << length) - 1).then_some(out)
}

/// For tests, whose servers compress as real ones do.
#[cfg(test)]
pub(crate) fn encode(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut bits, mut held) = (Vec::new(), 0_u64, 0_u32);
    for byte in bytes {
        let length = usize::from(LENGTHS[usize::from(*byte)]);
        let row = CODE.rows[length];
        let symbols = &CODE.symbols[row.at..];
        let above = symbols.iter().position(|symbol| symbol == byte).unwrap();
        bits = bits << length | u64::from(row.first + above as u32);
        held += length as u32;
        while held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
        bits &= (1 << held) - 1;
    }
    if held > 0 {
        out.push((bits << (8 - held) | ((1 << (8 - held)) - 1)) as u8);
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    /// Codes as appendix B writes them, of several lengths.
    #[test]
    fn codes_are_those_of_the_appendix() {
        for (symbol, code, length) in [
            (b'0', 0x0, 5_u32),
            (b't', 0x9, 5),
            (b' ', 0x14, 6),
            (b'&', 0xf8, 8),
            (0, 0x1ff8, 13),
            (b'\\', 0x7fff0, 19),
            (0xf9, 0xffffffe, 28),
            (0x0a, 0x3ffffffc, 30),
            (0x16, 0x3ffffffe, 30),
        ] {
            let row = CODE.rows[length as usize];
            let at = CODE.symbols[row.at..]
                .iter()
                .position(|s| *s == symbol)
                .unwrap();
            assert_eq!(row.first + at as u32, code, "{symbol}");
        }
        // With the code of the end every sequence of bits is the beginning of some code.
        let used: u64 = LENGTHS.iter().map(|bits| 1 << (LONGEST as u8 - bits)).sum();
        assert_eq!(used + 1, 1 << LONGEST);
    }

    #[test]
    fn padding_and_the_end_are_checked() {
        // 'a' is 00011, padded by 111.
        assert_eq!(decode(&[0b0001_1111]), Some(b"a".to_vec()));
        assert_eq!(decode(&[0b0001_1110]), None, "padded by another code");
        assert_eq!(decode(&[0b0001_1111, 0xff]), None, "padded by a byte more");
        assert_eq!(decode(&[0xff; 4]), None, "the end");
        assert_eq!(decode(&[]), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            if let Some(text) = decode(&bytes) {
                prop_assert!(text.len() * 5 <= bytes.len() * 8);
            }
        }
    }
}
