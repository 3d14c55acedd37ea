//! A database in a text file, one network a line,
//! `prefix,asn,name` or `prefix,asn,name,latitude,longitude` in degrees north and east:
//!
//! ```text
//! # comment
//! 192.0.2.0/24,64496,Example Net,52.37,4.90
//! 2001:db8::/32,64497,"Example, Inc."
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use plumb_model::printable;
use plumb_model::results::path::MapPlace;

use super::entry::{Entry, degrees};

/// Networks in a file at most: twice the prefixes of today's Internet.
const MAX_NETWORKS: usize = 4_000_000;
/// Why a text is no database.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: {why}: write PREFIX,ASN,NAME or PREFIX,ASN,NAME,LATITUDE,LONGITUDE")]
pub struct TextError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// Networks, by their prefixes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TextAtlas {
    networks: BTreeMap<(bool, u8, u128), Entry>,
    /// Lengths that occur, of each version.
    lengths: BTreeSet<(bool, u8)>,
}

impl TextAtlas {
    /// Reads a database.
    ///
    /// # Errors
    /// The first line that is none.
    pub(super) fn parse(text: &str) -> Result<Self, TextError> {
        let mut atlas = Self::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| TextError {
                line: number + 1,
                why: why.to_owned(),
            };
            let (key, entry) = parse_line(line).map_err(wrong)?;
            if atlas.networks.len() >= MAX_NETWORKS {
                return Err(wrong("too many networks"));
            }
            atlas.lengths.insert((key.0, key.1));
            atlas.networks.insert(key, entry);
        }
        Ok(atlas)
    }

    /// The entry of the longest prefix that an address is in.
    pub(super) fn look_up(&self, address: IpAddr) -> Option<&Entry> {
        let (v6, bits) = bits(address);
        let lengths = self.lengths.range((v6, 0)..=(v6, 128)).rev();
        lengths
            .filter_map(|(_, length)| self.networks.get(&(v6, *length, cut(bits, *length))))
            .next()
    }
}

/// An address as 128 bits from the left, and whether it is of IPv6.
fn bits(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(v4) => (false, u128::from(v4.to_bits()) << 96),
        IpAddr::V6(v6) => (true, v6.to_bits()),
    }
}

fn cut(bits: u128, length: u8) -> u128 {
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    bits & mask
}

type Key = (bool, u8, u128);

fn parse_line(line: &str) -> Result<(Key, Entry), &'static str> {
    let fields = fields(line);
    let (prefix, asn, name, place) = match fields.as_slice() {
        [prefix, asn, name] => (prefix, asn, name, None),
        [prefix, asn, name, latitude, longitude] => {
            (prefix, asn, name, Some((latitude, longitude)))
        }
        _ => return Err("it has not three or five fields"),
    };
    let (address, length) = prefix.split_once('/').ok_or("the prefix has no length")?;
    let address: IpAddr = address.parse().map_err(|_| "the prefix has no address")?;
    let length: u8 = length.parse().map_err(|_| "the length is no number")?;
    let (v6, bits) = bits(address);
    if length > if v6 { 128 } else { 32 } {
        return Err("the length is longer than the address");
    }
    let asn = asn.trim_start_matches("AS");
    let asn = asn.parse().map_err(|_| "the AS is no number")?;
    let place = match place {
        None => None,
        Some((latitude, longitude)) => Some(MapPlace {
            latitude_deg: degrees(latitude, 90.0).ok_or("the latitude is not −90 to 90")?,
            longitude_deg: degrees(longitude, 180.0).ok_or("the longitude is not −180 to 180")?,
        }),
    };
    let name = printable::line(name).into_owned();
    Ok((
        (v6, length, cut(bits, length)),
        Entry {
            asn: Some(asn),
            name: Some(name),
            place,
        },
    ))
}

/// The fields of a line, without the quotation marks (RFC 4180).
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields
                .iter_mut()
                .next_back()
                .into_iter()
                .for_each(|f| f.push(other)),
        }
    }
    fields.iter().map(|field| field.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn place(latitude_deg: f64, longitude_deg: f64) -> MapPlace {
        MapPlace {
            latitude_deg,
            longitude_deg,
        }
    }

    #[test]
    fn the_longest_prefix_counts() {
        let text = "# comment\n\n10.0.0.0/8,64496,Big\n10.1.0.0/16,AS64497,\"Small, Inc.\",52.37,4.90\n2001:db8::/32,64498,Six\n0.0.0.0/0,1,All\n";
        let atlas = TextAtlas::parse(text).unwrap();
        let asn = |a: &str| atlas.look_up(a.parse().unwrap()).and_then(|e| e.asn);
        assert_eq!(asn("10.1.2.3"), Some(64497));
        assert_eq!(asn("10.2.2.3"), Some(64496));
        assert_eq!(asn("192.0.2.1"), Some(1));
        assert_eq!(
            (asn("2001:db8::1"), asn("2001:db9::1")),
            (Some(64498), None)
        );
        let entry = atlas.look_up([10, 1, 0, 1].into()).unwrap();
        assert_eq!(entry.name.as_deref(), Some("Small, Inc."));
        assert_eq!(entry.place, Some(place(52.37, 4.9)));
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, line) in [
            ("10.0.0.0/33,1,x", 1),
            ("\n10.0.0.0,1,x", 2),
            ("a/8,1,x", 1),
            ("10.0.0.0/8,one,x", 1),
            ("10.0.0.0/8,1,x,91,0", 1),
            ("10.0.0.0/8,1,x,NaN,0", 1),
            ("10.0.0.0/8,1", 1),
        ] {
            assert_eq!(TextAtlas::parse(text).unwrap_err().line, line, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[0-9a-f:./,\"# \nA-Z-]{0,200}") {
            let _ = TextAtlas::parse(&text);
        }

        #[test]
        fn a_line_written_is_a_line_read(octets: [u8; 4], length in 0u8..=32, asn: u32, latitude in -90.0..90.0f64, longitude in -180.0..180.0f64) {
            let address = IpAddr::from(octets);
            let atlas = TextAtlas::parse(&format!("{address}/{length},{asn},\"a, b\",{latitude},{longitude}")).unwrap();
            let entry = atlas.look_up(address).unwrap();
            prop_assert_eq!((entry.asn, entry.name.as_deref()), (Some(asn), Some("a, b")));
            prop_assert_eq!(entry.place, Some(place(latitude, longitude)));
        }
    }
}
