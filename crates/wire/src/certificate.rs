//! The names that an X.509 certificate is for (RFC 5280, section 4.2.1.6), found without reading the
//! rest of it, and until when it is valid. Nothing is verified.

/// The identifier of the extension subjectAltName, 2.5.29.17, as DER has it.
const ALT_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x1d, 0x11];

/// The tag of a DNS name among the general names.
const DNS_NAME: u8 = 0x82;

/// Most names that are returned: certificates of content networks have hundreds.
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

/// When it ends, s since 1970 (RFC 5280, sections 4.1 and 4.1.2.5); `None` where that cannot be read.
pub fn valid_until_s(der: &[u8]) -> Option<i64> {
    const SEQUENCE: u8 = 0x30;
    let inside = |der| match element(der) {
        Some((SEQUENCE, inner, _)) => Some(inner),
        _ => None,
    };
    // The certificate holds what was signed, which begins with the version where it is not the first.
    let mut rest = inside(inside(der)?)?;
    if let Some((0xa0, _, after)) = element(rest) {
        rest = after;
    }
    // The serial number, the algorithm and the issuer; then the times between which it is valid.
    for _ in 0..3 {
        (_, _, rest) = element(rest)?;
    }
    let (_, _, after) = element(inside(rest)?)?;
    let (tag, text, _) = element(after)?;
    time(tag, std::str::from_utf8(text).ok()?)
}

/// UTCTime and GeneralizedTime, as certificates have them: to the second, and UTC.
fn time(tag: u8, text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z')?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match tag {
        // Years from 1950 to 2049.
        0x17 => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: i64 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        0x18 => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    if rest.len() != 10 {
        return None;
    }
    let part = |at: usize| -> Option<i64> { rest.get(at..at + 2)?.parse().ok() };
    let (month, day) = (part(0)?, part(2)?);
    let (hour, minute, second) = (part(4)?, part(6)?, part(8)?);
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    Some(days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Of the Gregorian calendar, in which years begin with March, so that leap days come last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    /// From the first of March of the year 0 to 1970-01-01.
    const UNTIL_1970: i64 = 719_468;
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - UNTIL_1970
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

    #[test]
    fn times_of_certificates_are_read() {
        for (tag, text, expected) in [
            (0x17, "700101000000Z", Some(0)),
            (0x17, "000229120000Z", Some(951_825_600)),
            (0x17, "490101000000Z", Some(2_493_072_000)),
            (0x17, "500101000000Z", Some(-631_152_000)),
            (0x18, "20600101000000Z", Some(2_840_140_800)),
            (0x18, "99991231235959Z", Some(253_402_300_799)),
            (0x17, "701301000000Z", None),
            (0x17, "7001010000Z", None),
            (0x18, "700101000000Z", None),
            (0x04, "700101000000Z", None),
            (0x17, "+0-1+1+0-0+0Z", None),
        ] {
            assert_eq!(time(tag, text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_end_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..80), text in "[0-9Z]{0,16}") {
            let _ = valid_until_s(&bytes);
            let tagged = [&[0x30, 0x7f, 0x30, 0x7f], bytes.as_slice()].concat();
            let _ = valid_until_s(&tagged);
            let _ = time(0x17, &text);
            let _ = time(0x18, &text);
        }

        #[test]
        fn any_bytes_are_survived(before in proptest::collection::vec(any::<u8>(), 0..40), after in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = dns_names(&after);
            prop_assert!(dns_names(&[before.as_slice(), &ALT_NAME, &after].concat()).len() <= MOST_NAMES);
        }
    }
}
