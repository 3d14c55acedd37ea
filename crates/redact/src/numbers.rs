//! What is a number, a time or a version, and names no host and no person.

use std::net::{IpAddr, Ipv4Addr};

use crate::words::Words;

/// Digits of the largest number that is taken for one: a counter of bytes up to a terabyte. Serial numbers and hardware
/// addresses without separators have twelve and more.
const MOST_DIGITS: usize = 11;

/// Whether a token is a number with or without a unit, a range of two, a time of day, a date or a moment.
pub(crate) fn is_number(token: &str) -> bool {
    let token = token
        .strip_prefix(['+', '-', '−', '~', '≈', '±'])
        .unwrap_or(token);
    is_quantity(token) || is_moment(token) || is_range(token)
}

fn is_quantity(token: &str) -> bool {
    let end = token.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (digits, unit) = token.split_at(end.unwrap_or(token.len()));
    is_plain(digits) && (unit.is_empty() || Words::is_unit(unit))
}

/// Digits with at most two dots, as 1.5 and 6.1.0; a number of several digits does not begin with 0.
fn is_plain(digits: &str) -> bool {
    let groups: Vec<&str> = digits.split('.').collect();
    let whole = groups.first().copied().unwrap_or_default();
    let is_group = |group: &&str| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit());
    groups.len() <= 3
        && groups.iter().all(is_group)
        && whole.len() <= MOST_DIGITS
        && (whole.len() == 1 || !whole.starts_with('0'))
}

fn is_range(token: &str) -> bool {
    token
        .split_once(['-', '–'])
        .is_some_and(|(from, to)| is_plain(from) && is_quantity(to))
}

/// A time of day, a date, or both (RFC 3339).
fn is_moment(token: &str) -> bool {
    let (date, time) = match token.split_once('T') {
        Some((date, time)) => (Some(date), Some(time)),
        None if token.contains(':') => (None, Some(token)),
        None => (Some(token), None),
    };
    date.is_none_or(is_date) && time.is_none_or(is_time)
}

fn is_date(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    matches!(groups.as_slice(), [year, month, day]
        if digits(year, 4) && digits(month, 2) && digits(day, 2))
}

fn is_time(text: &str) -> bool {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let groups: Vec<&str> = clock.split(':').collect();
    (2..=3).contains(&groups.len())
        && groups.iter().all(|group| digits(group, 2))
        && fraction.len() <= 9
        && fraction.bytes().all(|b| b.is_ascii_digit())
}

fn digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|b| b.is_ascii_digit())
}

/// The numbers that a version begins with, where more follows: `6.1.0` of `6.1.0-18-amd64`.
pub(crate) fn version(token: &str) -> Option<&str> {
    let end = token.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (version, rest) = token.split_at(end);
    let joined = rest.starts_with(['-', '+', '~', '_']);
    (joined && version.contains('.') && is_plain(version)).then_some(version)
}

/// Spellings of an address of IPv4 in digits alone, where the text is one: as a number, in either order of its bytes, and
/// the same in hexadecimal where that has no letter.
pub(crate) fn of_address(text: &str) -> Vec<String> {
    let address = text.split(['/', '%']).next().unwrap_or_default();
    let address: Option<IpAddr> = address.parse().ok();
    let Some(IpAddr::V4(v4)) = address.map(|address| address.to_canonical()) else {
        return Vec::new();
    };
    if v4 == Ipv4Addr::UNSPECIFIED || v4.is_broadcast() || v4.is_loopback() {
        return Vec::new();
    }
    let bits = v4.to_bits();
    [bits, bits.swap_bytes()]
        .into_iter()
        .flat_map(|bits| [bits.to_string(), format!("{bits:08x}"), format!("{bits:x}")])
        .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_times_and_versions_are_known() {
        for number in [
            "0",
            "18.9",
            "−3",
            "95%",
            "95th",
            "15s",
            "100ms",
            "10-20",
            "1500",
            "6.1.0",
            "67108864",
            "10:15",
            "09:48:18",
            "2026-11-27",
            "2026-11-27T09:48:18.123456789Z",
            "10995116277",
        ] {
            assert!(is_number(number), "{number}");
        }
        for other in [
            "192-0-2-1",
            "192.0.2.1",
            "1.2.3.4.5",
            "001122334455",
            "123456789012",
            "0100007f",
            "3c22fb",
            "00",
            "4e",
            "12a",
            "1-2-3",
            "10:15:aa",
            "",
            ".",
            "-",
        ] {
            assert!(!is_number(other), "{other}");
        }
        assert_eq!(version("6.1.0-18-amd64"), Some("6.1.0"));
        assert_eq!(version("192.0.2.1-x"), None);
        assert_eq!(version("18-amd64"), None);
    }

    #[test]
    fn addresses_are_found_in_digits() {
        let all = of_address("10.0.0.1/24");
        assert!(all.contains(&"167772161".to_owned()) && !all.contains(&"0100000".to_owned()));
        assert!(of_address("::ffff:16.0.0.1").contains(&"10000001".to_owned()));
        assert!(of_address("not one").is_empty());
    }
}
