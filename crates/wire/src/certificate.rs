//! The names that an X.509 certificate is for (RFC 5280, section 4.2.1.6), found without reading the
//! rest of it. Nothing is verified.

/// The identifier of the extension subjectAltName, 2.5.29.17, as DER has it.
const ALT_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x1d, 0x11];

/// The tag of a DNS name among the general names.
const DNS_NAME: u8 = 0x82;

/// Names told at most: edges of content networks bear hundreds.
const MOST_NAMES: usize = 100;

/// The DNS names in the extension, in its order; none when there is no such extension.
pub fn dns_names(der: &[u8]) -> Vec<String> {
    let begins = der.windows(ALT_NAME.len()).position(|w| w == ALT_NAME);
    let Some(mut rest) = begins.and_then(|at| der.get(at + ALT_NAME.len()..)) else {
        return Vec::new();
    };
    // Whether it is critical, which may be left out.
    if let Some((0x01, _, after)) = element(rest) {
        rest = after;
    }
    // An octet string that holds a sequence of names.
    let names = match element(rest) {
        Some((0x04, inner, _)) => match element(inner) {
            Some((0x30, names, _)) => names,
            _ => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    let mut rest = names;
    while let Some((tag, value, after)) = element(rest) {
        if tag == DNS_NAME && found.len() < MOST_NAMES {
            found.push(String::from_utf8_lossy(value).into_owned());
        }
        rest = after;
    }
    found
}

/// The first element of a DER encoding: tag, value, and what follows (X.690, section 8.1).
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        // As many bytes of length follow; certificates are shorter than 2^24.
        0x81..=0x83 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (
                bytes
                    .iter()
                    .fold(0, |sum, byte| sum << 8 | usize::from(*byte)),
                rest,
            )
        }
        _ => return None,
    };
    let (value, after) = rest.split_at_checked(length)?;
    Some((*tag, value, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extension(names: &[(u8, &str)], critical: bool) -> Vec<u8> {
        let mut list = vec![];
        for (tag, name) in names {
            list.extend([*tag, name.len() as u8]);
            list.extend(name.as_bytes());
        }
        let mut out = vec![0x30, 0x82, 1, 2, 3];
        out.extend(ALT_NAME);
        if critical {
            out.extend([1, 1, 0xff]);
        }
        out.extend([
            0x04,
            0x81,
            list.len() as u8 + 3,
            0x30,
            0x81,
            list.len() as u8,
        ]);
        out.extend(list);
        out.extend([0x30, 0]);
        out
    }

    #[test]
    fn names_are_found_wherever_the_extension_is() {
        let names = [
            (DNS_NAME, "example.net"),
            (0x87, "ip"),
            (DNS_NAME, "*.example.net"),
        ];
        for critical in [false, true] {
            assert_eq!(
                dns_names(&extension(&names, critical)),
                ["example.net", "*.example.net"]
            );
        }
        assert!(dns_names(b"nothing").is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(before in proptest::collection::vec(any::<u8>(), 0..40), after in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = dns_names(&after);
            prop_assert!(dns_names(&[before.as_slice(), &ALT_NAME, &after].concat()).len() <= MOST_NAMES);
        }
    }
}
