//! Databases of MaxMind's format (<https://maxmind.github.io/MaxMind-DB/>): the fields of GeoLite2 ASN
//! and GeoLite2 City, which others write too.

use std::fmt;
use std::net::IpAddr;

use maxminddb::{MaxMindDbError, Reader};
use plumb_model::printable;
use plumb_model::results::path::MapPlace;
use serde::Deserialize;

use super::entry::Entry;

/// What stands before the description at the end of a file.
const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";
/// The description is in so many of the last bytes.
const DESCRIPTION_BYTES: usize = 128 * 1024;
/// Names of networks are cut there.
const MAX_NAME_CHARACTERS: usize = 200;

/// Whether a file looks like one of this format.
pub(super) fn is_of_this_format(file: &[u8]) -> bool {
    let tail = file.len().saturating_sub(DESCRIPTION_BYTES);
    let tail = file.get(tail..).unwrap_or_default();
    tail.windows(MARKER.len()).any(|bytes| bytes == MARKER)
}

/// A database in memory.
pub(super) struct MaxMind(Reader<Vec<u8>>);

impl fmt::Debug for MaxMind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MaxMind").field(self.0.metadata()).finish()
    }
}

/// The fields that are looked at.
#[derive(Debug, Deserialize)]
struct Record<'a> {
    autonomous_system_number: Option<u32>,
    #[serde(borrow)]
    autonomous_system_organization: Option<&'a str>,
    location: Option<Location>,
}

#[derive(Debug, Deserialize)]
struct Location {
    latitude: Option<f64>,
    longitude: Option<f64>,
}

impl MaxMind {
    pub(super) fn open(file: Vec<u8>) -> Result<Self, MaxMindDbError> {
        Reader::from_source(file).map(Self)
    }

    /// What is known of the network that an address is in; `None` where it is in none.
    pub(super) fn look_up(&self, address: IpAddr) -> Result<Option<Entry>, MaxMindDbError> {
        if address.is_ipv6() && self.0.metadata().ip_version == 4 {
            return Ok(None);
        }
        let record: Option<Record<'_>> = self.0.lookup(address)?.decode()?;
        Ok(record.map(|record| Entry {
            asn: record.autonomous_system_number,
            name: record
                .autonomous_system_organization
                .map(|name| printable::clipped(name, MAX_NAME_CHARACTERS).into_owned()),
            place: record.location.and_then(place),
        }))
    }
}

fn place(location: Location) -> Option<MapPlace> {
    let within = |degrees: Option<f64>, bound: f64| degrees.filter(|value| value.abs() <= bound);
    Some(MapPlace {
        latitude_deg: within(location.latitude, 90.0)?,
        longitude_deg: within(location.longitude, 180.0)?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    /// Values as the format writes them: a control byte of type and size, then the value.
    mod write {
        pub(super) fn text(text: &str) -> Vec<u8> {
            sized(2, text.as_bytes())
        }

        pub(super) fn number(value: u32) -> Vec<u8> {
            sized(6, &value.to_be_bytes())
        }

        pub(super) fn short(value: u16) -> Vec<u8> {
            sized(5, &value.to_be_bytes())
        }

        pub(super) fn double(value: f64) -> Vec<u8> {
            sized(3, &value.to_be_bytes())
        }

        pub(super) fn map(fields: &[(&str, Vec<u8>)]) -> Vec<u8> {
            let mut out = vec![7 << 5 | fields.len() as u8];
            for (name, value) in fields {
                out.extend(text(name));
                out.extend(value);
            }
            out
        }

        pub(super) fn epoch(value: u64) -> Vec<u8> {
            // An extended type: 9, less the 7 of the plain ones.
            [&[8, 2][..], &value.to_be_bytes()].concat()
        }

        pub(super) fn empty_array() -> Vec<u8> {
            // An extended type: 11, less the 7 of the plain ones.
            vec![0, 4]
        }

        fn sized(kind: u8, bytes: &[u8]) -> Vec<u8> {
            assert!(bytes.len() < 285);
            let mut out = match bytes.len() {
                size @ 0..29 => vec![kind << 5 | size as u8],
                size => vec![kind << 5 | 29, (size - 29) as u8],
            };
            out.extend(bytes);
            out
        }
    }

    /// A database of IPv4 with records of 24 bits: one network, named by its prefix of `length` bits.
    fn database(prefix: u32, length: u32, data: &[u8]) -> Vec<u8> {
        let nodes = length;
        let mut file = Vec::new();
        for bit in 0..length {
            let next = match bit + 1 == length {
                // Data stands behind the tree and 16 zeros.
                true => nodes + 16,
                false => bit + 1,
            };
            let one = prefix >> (31 - bit) & 1 == 1;
            let (left, right) = if one { (nodes, next) } else { (next, nodes) };
            for record in [left, right] {
                file.extend(&record.to_be_bytes()[1..]);
            }
        }
        file.extend([0; 16]);
        file.extend(data);
        file.extend(MARKER);
        file.extend(write::map(&[
            ("binary_format_major_version", write::short(2)),
            ("binary_format_minor_version", write::short(0)),
            ("build_epoch", write::epoch(1)),
            ("database_type", write::text("plumb-test")),
            ("description", write::map(&[])),
            ("ip_version", write::short(4)),
            ("languages", write::empty_array()),
            ("node_count", write::number(nodes)),
            ("record_size", write::short(24)),
        ]));
        file
    }

    fn record(asn: u32, name: &str, latitude: f64, longitude: f64) -> Vec<u8> {
        write::map(&[
            ("autonomous_system_number", write::number(asn)),
            ("autonomous_system_organization", write::text(name)),
            (
                "location",
                write::map(&[
                    ("latitude", write::double(latitude)),
                    ("longitude", write::double(longitude)),
                    ("time_zone", write::text("Europe/Amsterdam")),
                ]),
            ),
        ])
    }

    #[test]
    fn networks_and_places_are_read_and_what_is_in_none_is_unknown() {
        let file = database(0x0a01_0000, 16, &record(64_500, "A\u{1b}B", 52.37, 4.9));
        assert!(is_of_this_format(&file));
        let database = MaxMind::open(file).unwrap();
        let entry = database.look_up([10, 1, 2, 3].into()).unwrap().unwrap();
        assert_eq!(
            (entry.asn, entry.name.as_deref()),
            (Some(64_500), Some("A\u{fffd}B"))
        );
        let place = entry.place.unwrap();
        assert_eq!((place.latitude_deg, place.longitude_deg), (52.37, 4.9));
        assert_eq!(database.look_up([10, 2, 2, 3].into()).unwrap(), None);
        assert_eq!(
            database.look_up("2001:db8::1".parse().unwrap()).unwrap(),
            None
        );
    }

    #[test]
    fn places_off_the_globe_are_none() {
        for (latitude, longitude) in [(91.0, 0.0), (0.0, -181.0), (f64::NAN, 0.0)] {
            let file = database(0, 1, &record(1, "x", latitude, longitude));
            let entry = MaxMind::open(file).unwrap().look_up([1, 1, 1, 1].into());
            assert_eq!(entry.unwrap().unwrap().place, None);
        }
    }

    #[test]
    fn several_databases_complete_each_other() {
        let mut atlas = super::super::Atlas::default();
        let cities = write::map(&[(
            "location",
            write::map(&[
                ("latitude", write::double(1.0)),
                ("longitude", write::double(2.0)),
            ]),
        )]);
        atlas.add(database(0x0a00_0000, 8, &cities)).unwrap();
        atlas.add(b"10.0.0.0/8,64501,Text,3,4\n".to_vec()).unwrap();
        let entry = atlas.look_up([10, 0, 0, 1].into()).unwrap();
        assert_eq!(
            (entry.asn, entry.name.as_deref()),
            (Some(64_501), Some("Text"))
        );
        assert_eq!(entry.place.unwrap().latitude_deg, 1.0);
        assert!(atlas.add(vec![0xff, 0xfe]).is_err());
        let damaged = [MARKER, &[0xff; 8]].concat();
        assert!(
            atlas
                .add(damaged)
                .unwrap_err()
                .to_string()
                .contains("damaged")
        );
    }

    proptest! {
        #[test]
        fn a_network_written_is_a_network_read(prefix: u32, length in 1u32..=32, asn: u32) {
            let kept = u32::MAX << (32 - length);
            let file = database(prefix & kept, length, &record(asn, "n", 0.0, 0.0));
            let database = MaxMind::open(file).unwrap();
            let inside = std::net::Ipv4Addr::from(prefix);
            prop_assert_eq!(database.look_up(inside.into()).unwrap().unwrap().asn, Some(asn));
            let outside = std::net::Ipv4Addr::from(prefix ^ 1 << (32 - length));
            prop_assert_eq!(database.look_up(outside.into()).unwrap(), None);
        }

        #[test]
        fn any_damage_is_survived(at in 0usize..400, bytes in proptest::collection::vec(any::<u8>(), 1..20), address: u32) {
            let mut file = database(0x0a01_0000, 16, &record(1, "x", 1.0, 1.0));
            for (to, from) in file.iter_mut().skip(at).zip(&bytes) {
                *to = *from;
            }
            if let Ok(database) = MaxMind::open(file) {
                let _ = database.look_up(std::net::Ipv4Addr::from(address).into());
                let _ = database.look_up([10, 1, 0, 1].into());
            }
        }
    }
}
