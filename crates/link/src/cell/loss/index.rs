//! Loss of certain packets by their number: for tests that must be exact, such as "the third
//! data segment and its first retransmission".

use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Value;

use crate::cell::loss::LossModel;
use crate::cell::matching::Match;
use crate::packet::Packet;
use crate::settings::Settings;

/// `{ type = "index_loss", packets = [3, 10, "20-25"], match = "tcp_data" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexLossSpec {
    /// The numbers of the packets that are lost, counted from 1.
    pub packets: Numbers,
    /// Which packets are counted; all when absent.
    #[serde(default, rename = "match")]
    pub matching: Match,
}

impl Settings for IndexLossSpec {}

/// Numbers and ranges of numbers: a list such as `[3, 10, "20-25"]`, or one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers(Vec<RangeInclusive<u64>>);

impl Numbers {
    fn contains(&self, number: u64) -> bool {
        self.0.iter().any(|range| range.contains(&number))
    }
}

fn range(value: &Value) -> Option<RangeInclusive<u64>> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match value {
        Value::Integer(n) => u64::try_from(*n).map(|n| n..=n).ok()?,
        Value::String(text) => match text.split_once('-') {
            Some((from, to)) => number(from)?..=number(to)?,
            None => number(text).map(|n| n..=n)?,
        },
        _ => return None,
    };
    (*range.start() > 0 && !range.is_empty()).then_some(range)
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = match Value::deserialize(deserializer)? {
            Value::Array(values) => values,
            one => vec![one],
        };
        let ranges = values.iter().map(|value| {
            range(value).ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "{value} is not the number of a packet: write numbers from 1 on and ranges, as in [3, 10, \"20-25\"]"
                ))
            })
        });
        ranges.collect::<Result<_, _>>().map(Self)
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|r| format!("{}-{}", r.start(), r.end())))
    }
}

/// The model. When it is changed, it counts on.
pub(crate) struct IndexLoss {
    spec: IndexLossSpec,
    seen: u64,
}

impl IndexLoss {
    pub(crate) fn new(spec: IndexLossSpec) -> Self {
        Self { spec, seen: 0 }
    }
}

impl LossModel for IndexLoss {
    type Spec = IndexLossSpec;

    fn loses(&mut self, packet: &Packet) -> bool {
        if !self.spec.matching.matches(packet) {
            return false;
        }
        self.seen += 1;
        self.spec.packets.contains(self.seen)
    }

    fn reconfigure(&mut self, spec: IndexLossSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cell::loss::tests::{lost, lost_of};
    use crate::packet::tests::{ACK, tcp, udp};
    use crate::spec::CellSpec;
    use proptest::prelude::*;

    const KIND: &str = "index_loss";

    #[test]
    fn numbers_and_ranges() {
        let pairs = [("packets", r#"[3, 10, "20-25"]"#)];
        assert_eq!(lost(KIND, &pairs, 60), [2, 9, 19, 20, 21, 22, 23, 24]);
        assert_eq!(lost(KIND, &[("packets", "2-3")], 9), [1, 2]);
        assert_eq!(lost(KIND, &[("packets", "1")], 9), [0]);
        assert!(lost(KIND, &[("packets", "[]")], 9).is_empty());
        for packets in ["0", "-1", "[5, \"7-6\"]", "many", "1.5", "3-", "[[1]]"] {
            let error = CellSpec::from_pairs(KIND, &[("packets", packets)]).unwrap_err();
            assert!(error.to_string().contains("numbers from 1 on"), "{error}");
        }
    }

    /// A large segment counts as its packets, and what is sent in between does not count.
    #[test]
    fn data_segments_are_counted_one_by_one() {
        let mut cell = CellSpec::from_pairs(KIND, &[("packets", "3"), ("match", "tcp_data")])
            .unwrap()
            .build(1, crate::time::Time::ZERO)
            .own();
        let now = crate::time::Time::ZERO;
        cell.enqueue(now, udp(100, 1, 0));
        cell.enqueue(now, tcp(false, 0, 1448, ACK));
        cell.enqueue(now, tcp(false, 4 * 1448, 1448, ACK));
        let mut payload = Vec::new();
        while let Some((_, packet)) = cell.dequeue(now) {
            let sequence = packet.data.get(24..28).unwrap().try_into().unwrap();
            payload.push((packet.tcp_payload_bytes(), u32::from_be_bytes(sequence)));
        }
        let first = 0xffff_ff00u32;
        let segments = [0, 1, 3].map(|i| (1448, first.wrapping_add(i * 1448)));
        assert_eq!(payload.get(2..).unwrap(), segments);
    }

    #[test]
    fn the_first_of_a_handshake() {
        let syn = 0x02;
        let packets = [
            udp(100, 1, 0),
            tcp(true, 0, 1448, syn),
            tcp(true, 0, 1448, syn),
        ];
        let pairs = [("packets", "1"), ("match", "syn")];
        assert_eq!(lost_of(KIND, &pairs, packets.into_iter()), [1]);
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_are_written(ranges in proptest::collection::vec((1u64..1000, 0u64..1000), 0..5)) {
            let numbers = Numbers(ranges.iter().map(|(from, more)| *from..=from + more).collect());
            let spec = IndexLossSpec { packets: numbers, matching: Match::default() };
            let table = CellSpec::IndexLoss(spec.clone()).to_table();
            prop_assert_eq!(CellSpec::from_table(table).unwrap(), CellSpec::IndexLoss(spec));
        }
    }
}
