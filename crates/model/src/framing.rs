//! What a link adds to each IP packet, under the names of tc-cake(8) and with the arithmetic of
//! the kernel's sch_cake.c (`cake_calc_overhead`).

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// ATM: bytes of a cell on the line, and of those the bytes that carry the packet (ITU-T I.361).
const ATM_CELL: u32 = 53;
const ATM_CELL_PAYLOAD: u32 = 48;
/// PTM sends one byte of synchronisation with every 64 (64b/65b, IEEE 802.3 clause 61).
const PTM_BLOCK: u32 = 64;
/// A tag of IEEE 802.1Q in bytes: the keyword `ether-vlan`.
const VLAN_TAG: i16 = 4;
/// The ranges that tc-cake(8) accepts, in bytes.
const OVERHEAD_RANGE: std::ops::RangeInclusive<i16> = -64..=256;
const MPU_RANGE: std::ops::RangeInclusive<u16> = 0..=256;

/// The keywords: overhead in bytes, minimum packet unit in bytes, cells.
const KEYWORDS: [(&str, i16, u16, Cells); 15] = [
    ("raw", 0, 0, Cells::None),
    ("conservative", 48, 0, Cells::Atm),
    ("ethernet", 38, 84, Cells::None),
    ("docsis", 18, 64, Cells::None),
    ("pppoe-ptm", 30, 0, Cells::Ptm),
    ("bridged-ptm", 22, 0, Cells::Ptm),
    ("pppoa-vcmux", 10, 0, Cells::Atm),
    ("pppoa-llc", 14, 0, Cells::Atm),
    ("pppoe-vcmux", 32, 0, Cells::Atm),
    ("pppoe-llcsnap", 40, 0, Cells::Atm),
    ("bridged-vcmux", 24, 0, Cells::Atm),
    ("bridged-llcsnap", 32, 0, Cells::Atm),
    ("ipoa-vcmux", 8, 0, Cells::Atm),
    ("ipoa-llcsnap", 16, 0, Cells::Atm),
    ("ether-vlan", VLAN_TAG, 0, Cells::None),
];

/// How the line cuts packets up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cells {
    /// Packets are not cut up at all.
    #[default]
    None,
    /// Into 53-byte cells that carry 48 (ADSL).
    Atm,
    /// Into 65-byte blocks that carry 64 (VDSL2).
    Ptm,
}

/// What the line adds to an IP packet. The default adds nothing.
///
/// Written as keywords separated by spaces or commas: one of tc-cake(8)'s, or `overhead N`,
/// `mpu N` and `atm` or `ptm`; `ether-vlan` may follow, also more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Framing {
    /// Bytes added to each packet, −64…256.
    pub overhead_bytes: i16,
    /// Smallest size that the line sends, 0…256.
    pub mpu_bytes: u16,
    /// How the line cuts packets up.
    pub cells: Cells,
}

/// What was written is not a framing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// A word that is no keyword.
    #[error(
        "unknown framing '{word}': write one of {}, or 'overhead N', 'mpu N', 'atm', 'ptm'; 'ether-vlan' may follow",
        KEYWORDS.map(|k| k.0).join(", ")
    )]
    Unknown {
        /// The word that is unknown.
        word: String,
    },
    /// Two keywords that each describe a whole framing.
    #[error("'{first}' and '{second}' each describe a whole framing: write one of them")]
    Twice {
        /// The first of them.
        first: &'static str,
        /// The second of them.
        second: &'static str,
    },
    /// A number outside of its range, or none where one must be.
    #[error("'{key} {value}' is not possible: {key} takes a whole number of bytes, {range}")]
    Number {
        /// `overhead` or `mpu`.
        key: &'static str,
        /// Value that was given for it.
        value: String,
        /// Values that are possible for it.
        range: &'static str,
    },
}

impl Cells {
    /// Whether packets are not cut up.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl Framing {
    /// Every framing that tc-cake(8) has a keyword for.
    pub fn keywords() -> impl Iterator<Item = (&'static str, Self)> {
        KEYWORDS
            .iter()
            .map(|&(word, overhead_bytes, mpu_bytes, cells)| {
                let framing = Self {
                    overhead_bytes,
                    mpu_bytes,
                    cells,
                };
                (word, framing)
            })
    }

    /// Bytes that the line sends for an IP packet of `ip_len` bytes: overhead first, then the
    /// minimum packet unit, then cells.
    pub fn wire_bytes(&self, ip_len: u32) -> u32 {
        let len = ip_len
            .saturating_add_signed(i32::from(self.overhead_bytes))
            .max(u32::from(self.mpu_bytes));
        match self.cells {
            Cells::None => len,
            Cells::Atm => len.div_ceil(ATM_CELL_PAYLOAD).saturating_mul(ATM_CELL),
            // One byte for each block or part of one, as sch_cake.c counts.
            Cells::Ptm => len.saturating_add(len.div_ceil(PTM_BLOCK)),
        }
    }

    /// The share of the line's bits that is TCP payload when every packet is full, 0…1.
    ///
    /// With an MTU of 1500 and TCP timestamps `payload_bytes` is 1448.
    pub fn payload_share(&self, mtu_bytes: u32, payload_bytes: u32) -> f64 {
        f64::from(payload_bytes) / f64::from(self.wire_bytes(mtu_bytes).max(1))
    }

    fn check(self) -> Result<Self, FramingError> {
        if !OVERHEAD_RANGE.contains(&self.overhead_bytes) {
            return Err(overhead_error(self.overhead_bytes));
        }
        if !MPU_RANGE.contains(&self.mpu_bytes) {
            return Err(mpu_error(self.mpu_bytes));
        }
        Ok(self)
    }
}

fn overhead_error(value: impl ToString) -> FramingError {
    FramingError::Number {
        key: "overhead",
        value: value.to_string(),
        range: "-64 to 256",
    }
}

fn mpu_error(value: impl ToString) -> FramingError {
    FramingError::Number {
        key: "mpu",
        value: value.to_string(),
        range: "0 to 256",
    }
}

impl FromStr for Framing {
    type Err = FramingError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.to_ascii_lowercase();
        let mut words = lower
            .split(|c: char| c.is_whitespace() || c == ',')
            .filter(|w| !w.is_empty());
        let mut framing = Self::default();
        let mut whole: Option<&'static str> = None;
        let mut any = false;
        while let Some(word) = words.next() {
            any = true;
            match word {
                "ether-vlan" => {
                    framing.overhead_bytes = framing.overhead_bytes.saturating_add(VLAN_TAG)
                }
                "overhead" => {
                    let value = words.next().unwrap_or_default();
                    framing.overhead_bytes = value.parse().map_err(|_| overhead_error(value))?;
                }
                "mpu" => {
                    let value = words.next().unwrap_or_default();
                    framing.mpu_bytes = value.parse().map_err(|_| mpu_error(value))?;
                }
                "atm" => framing.cells = Cells::Atm,
                "ptm" => framing.cells = Cells::Ptm,
                "noatm" => framing.cells = Cells::None,
                _ => {
                    let &(name, overhead, mpu, cells) = KEYWORDS
                        .iter()
                        .find(|k| k.0 == word)
                        .ok_or_else(|| FramingError::Unknown {
                            word: word.to_owned(),
                        })?;
                    if let Some(first) = whole.replace(name) {
                        return Err(FramingError::Twice {
                            first,
                            second: name,
                        });
                    }
                    framing.overhead_bytes = framing.overhead_bytes.saturating_add(overhead);
                    framing.mpu_bytes = mpu;
                    framing.cells = cells;
                }
            }
        }
        if !any {
            return Err(FramingError::Unknown {
                word: text.to_owned(),
            });
        }
        framing.check()
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = KEYWORDS
            .iter()
            .find(|k| (k.1, k.2, k.3) == (self.overhead_bytes, self.mpu_bytes, self.cells));
        if let Some((name, ..)) = named {
            return f.write_str(name);
        }
        write!(f, "overhead {}", self.overhead_bytes)?;
        if self.mpu_bytes != 0 {
            write!(f, " mpu {}", self.mpu_bytes)?;
        }
        match self.cells {
            Cells::None => Ok(()),
            Cells::Atm => f.write_str(" atm"),
            Cells::Ptm => f.write_str(" ptm"),
        }
    }
}

impl Serialize for Framing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Framing {
    /// Reads keywords, or a table of `overhead`, `mpu` and `cells`.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            #[serde(default)]
            overhead: i16,
            #[serde(default)]
            mpu: u16,
            #[serde(default)]
            cells: Cells,
        }
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Framing;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a framing keyword such as \"docsis\", or a table of overhead, mpu and cells",
                )
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Framing, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Framing, A::Error> {
                let table = Table::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Framing {
                    overhead_bytes: table.overhead,
                    mpu_bytes: table.mpu,
                    cells: table.cells,
                }
                .check()
                .map_err(serde::de::Error::custom)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    fn framing(text: &str) -> Framing {
        text.parse().unwrap()
    }

    #[test]
    fn every_keyword_of_tc_cake() {
        // Overhead from tc-cake(8), and the bytes that a packet of 1500 then takes on the line.
        for (keyword, wire) in [
            ("raw", 1500),
            ("conservative", 33 * 53),  // 1548 = 32.25 cells
            ("pppoa-vcmux", 32 * 53),   // 1510 = 31.46 cells
            ("pppoa-llc", 32 * 53),     // 1514
            ("pppoe-vcmux", 32 * 53),   // 1532
            ("pppoe-llcsnap", 33 * 53), // 1540 = 32.08 cells
            ("bridged-vcmux", 32 * 53), // 1524
            ("bridged-llcsnap", 32 * 53),
            ("ipoa-vcmux", 32 * 53),    // 1508
            ("ipoa-llcsnap", 32 * 53),  // 1516
            ("pppoe-ptm", 1530 + 24),   // 23.9 blocks
            ("bridged-ptm", 1522 + 24), // 23.8 blocks
            ("docsis", 1518),
            ("ethernet", 1538),
        ] {
            assert_eq!(framing(keyword).wire_bytes(1500), wire, "{keyword}");
            assert_eq!(
                framing(keyword).to_string(),
                if keyword == "bridged-llcsnap" {
                    "pppoe-vcmux"
                } else {
                    keyword
                }
            );
        }
    }

    #[test]
    fn small_packets_are_padded() {
        assert_eq!(framing("docsis").wire_bytes(40), 64);
        assert_eq!(framing("docsis").wire_bytes(46), 64);
        assert_eq!(framing("docsis").wire_bytes(47), 65);
        assert_eq!(framing("ethernet").wire_bytes(40), 84);
        assert_eq!(framing("pppoe-llcsnap").wire_bytes(40), 2 * 53); // 80 bytes
        assert_eq!(framing("overhead -64").wire_bytes(40), 0);
    }

    #[test]
    fn vlan_tags_follow_and_repeat() {
        assert_eq!(framing("ethernet ether-vlan").overhead_bytes, 42);
        assert_eq!(
            framing(" Ethernet, ETHER-VLAN,ether-vlan ").overhead_bytes,
            46
        );
        assert_eq!(framing("ether-vlan").overhead_bytes, 4);
    }

    #[test]
    fn payload_share_of_a_cable_line() {
        assert_eq!(framing("docsis").payload_share(1500, 1448), 1448.0 / 1518.0);
    }

    #[test]
    fn mistakes_say_what_is_possible() {
        let error = "docis".parse::<Framing>().unwrap_err().to_string();
        assert!(
            error.contains("'docis'") && error.contains("docsis") && error.contains("ether-vlan"),
            "{error}"
        );
        assert!("docsis ethernet".parse::<Framing>().is_err());
        assert!("overhead 300".parse::<Framing>().is_err());
        assert!("mpu".parse::<Framing>().is_err());
        assert!("".parse::<Framing>().is_err());
    }

    #[test]
    fn keyword_or_table() {
        let table = r#"{"overhead": 22, "mpu": 64, "cells": "ptm"}"#;
        let read: Framing = serde_json::from_str(table).unwrap();
        assert_eq!(
            read,
            Framing {
                overhead_bytes: 22,
                mpu_bytes: 64,
                cells: Cells::Ptm
            }
        );
        assert_eq!(
            serde_json::to_string(&framing("docsis")).unwrap(),
            r#""docsis""#
        );
        assert!(serde_json::from_str::<Framing>(r#"{"overhead": 22, "mtu": 64}"#).is_err());
        assert!(serde_json::from_str::<Framing>(r#"{"overhead": 999}"#).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(text in ".{0,40}") {
            let _ = text.parse::<Framing>();
        }

        #[test]
        fn reads_back_what_it_shows(overhead in -64i16..=256, mpu in 0u16..=256, cells in 0usize..3) {
            let cells = [Cells::None, Cells::Atm, Cells::Ptm][cells];
            let framing = Framing { overhead_bytes: overhead, mpu_bytes: mpu, cells };
            prop_assert_eq!(framing.to_string().parse(), Ok(framing));
        }

        #[test]
        fn longer_packets_never_take_less(len in 0u32..70_000, overhead in -64i16..=256, mpu in 0u16..=256) {
            for cells in [Cells::None, Cells::Atm, Cells::Ptm] {
                let framing = Framing { overhead_bytes: overhead, mpu_bytes: mpu, cells };
                prop_assert!(framing.wire_bytes(len) <= framing.wire_bytes(len + 1));
            }
        }
    }
}
