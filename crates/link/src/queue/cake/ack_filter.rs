//! The ACK filter: finds in a flow's queue an acknowledgement that the packet at the queue's
//! tail makes superfluous. The rules are from sch_cake.c. Only ACKs without new information are dropped: pure ACKs with
//! known options that acknowledge no more than the newer one does.

use plumb_wire::ip::IpPacket;
use serde::{Deserialize, Serialize};

use crate::queue::list::PacketList;

/// Which ACKs are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AckFilter {
    #[default]
    NoAckFilter,
    /// Those that leave an older one of their flow in the queue beside the newest.
    AckFilter,
    /// All but the newest of a flow.
    AckFilterAggressive,
}

/// Control bits and those reserved (RFC 9293 section 3.1), of bytes 12 and 13 of the header.
const RESERVED_AND_CONTROL: u16 = 0x0fff;
const ECE_CWR: u16 = 0x00c0;
const ACK: u16 = 0x0010;
const SYN: u16 = 0x0002;
/// TCP options (IANA): RFC 2018, RFC 7323, RFC 2385.
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const MD5: u8 = 19;

impl AckFilter {
    /// The index of the ACK that the packet at the tail of the list makes superfluous: the
    /// oldest of two, or, for the aggressive filter, one that is right before the tail.
    pub(super) fn superseded(self, list: &PacketList) -> Option<usize> {
        if self == Self::NoAckFilter || list.backlog().packets < 2 {
            return None;
        }
        let mut packets = list.iter();
        let newest = Tcp::parse(&packets.next_back()?.data)?;
        if newest.bits & (ACK | SYN) != ACK {
            return None;
        }
        let mut eligible: Option<(usize, u16)> = None;
        let mut before_tail = 0;
        for (index, packet) in packets.enumerate() {
            before_tail = index;
            let Some(older) = Tcp::parse(&packet.data).filter(|tcp| tcp.flow == newest.flow) else {
                continue;
            };
            // A change of the echo of congestion is news: what comes before it has to stay.
            eligible = eligible.filter(|(_, bits)| *bits == older.bits & ECE_CWR);
            if !older.says_no_more_than(&newest) {
                continue;
            }
            match eligible {
                Some((first, _)) => return Some(first),
                None => eligible = Some((index, older.bits & ECE_CWR)),
            }
        }
        let (index, bits) = eligible?;
        let aggressive = self == Self::AckFilterAggressive;
        (aggressive && index == before_tail && bits == newest.bits & ECE_CWR).then_some(index)
    }
}

/// What of a TCP packet matters here.
struct Tcp<'a> {
    flow: plumb_wire::ip::FlowKey,
    acknowledged: u32,
    /// The reserved and control bits.
    bits: u16,
    options: &'a [u8],
    has_payload: bool,
}

impl<'a> Tcp<'a> {
    fn parse(data: &'a [u8]) -> Option<Self> {
        let ip = IpPacket::parse(data)?;
        let (header, payload) = ip.payload().split_at_checked(ip.tcp_header_len()?)?;
        let (fixed, options) = header.split_first_chunk::<20>()?;
        let [_, _, _, _, _, _, _, _, a0, a1, a2, a3, b0, b1, ..] = *fixed;
        Some(Self {
            flow: ip.flow(),
            acknowledged: u32::from_be_bytes([a0, a1, a2, a3]),
            bits: u16::from_be_bytes([b0, b1]) & RESERVED_AND_CONTROL,
            options,
            has_payload: !payload.is_empty(),
        })
    }

    /// Whether this is a pure ACK of which `newer` says all.
    fn says_no_more_than(&self, newer: &Self) -> bool {
        self.bits & !ECE_CWR == ACK
            && self.options_may_go(newer)
            && !self.has_payload
            && !is_after(self.acknowledged, newer.acknowledged)
            && match self.compare_sack(newer) {
                Sack::More => false,
                // An ACK that repeats another is a duplicate ACK, which counts.
                Sack::Same => self.acknowledged != newer.acknowledged,
                Sack::Less => true,
            }
    }

    /// Whether all options are known and none is newer than the options of `newer`.
    fn options_may_go(&self, newer: &Self) -> bool {
        let (newer_value, newer_echo) = newer.timestamps().unwrap_or_default();
        Options(self.options).all(|(kind, value)| match kind {
            MD5 => true,
            SACK => value.len() % 8 == 0,
            TIMESTAMPS => timestamps(value).is_some_and(|(value, echo)| {
                !is_after(value, newer_value) && !is_after(echo, newer_echo)
            }),
            _ => false,
        })
    }

    fn timestamps(&self) -> Option<(u32, u32)> {
        let (_, value) = Options(self.options).find(|(kind, _)| *kind == TIMESTAMPS)?;
        timestamps(value)
    }

    /// The blocks of the first SACK option, in sequence numbers.
    fn sack_blocks(&self) -> impl Iterator<Item = (u32, u32)> + Clone + 'a {
        let option = Options(self.options).find(|(kind, _)| *kind == SACK);
        let (blocks, _) = option.unwrap_or_default().1.as_chunks::<8>();
        blocks.iter().map(|[s0, s1, s2, s3, e0, e1, e2, e3]| {
            (
                u32::from_be_bytes([*s0, *s1, *s2, *s3]),
                u32::from_be_bytes([*e0, *e1, *e2, *e3]),
            )
        })
    }

    /// Whether this ACK's SACK blocks report more than the blocks of `newer`: any that `newer` does not cover, and a
    /// D-SACK (RFC 2883) always.
    fn compare_sack(&self, newer: &Self) -> Sack {
        let (ours, theirs) = (self.sack_blocks(), newer.sack_blocks());
        let covered = |(start, end): (u32, u32)| {
            theirs
                .clone()
                .any(|(s, e)| !is_after(s, start) && !is_after(end, e))
        };
        let more = ours
            .clone()
            .any(|block| is_after(self.acknowledged, block.0) || !covered(block));
        if more {
            return Sack::More;
        }
        if bytes(theirs.clone()) > bytes(ours) {
            Sack::Less
        } else {
            Sack::Same
        }
    }
}

/// Bytes in all blocks together.
fn bytes(blocks: impl Iterator<Item = (u32, u32)>) -> u32 {
    blocks.fold(0, |sum, (start, end)| {
        sum.wrapping_add(end.wrapping_sub(start))
    })
}

/// How much an ACK's SACK blocks report compared with the newer ACK's.
#[derive(Debug, PartialEq, Eq)]
enum Sack {
    Less,
    Same,
    More,
}

/// Value and echo of a timestamps option.
fn timestamps(option: &[u8]) -> Option<(u32, u32)> {
    let [v0, v1, v2, v3, e0, e1, e2, e3] = *<&[u8; 8]>::try_from(option).ok()?;
    Some((
        u32::from_be_bytes([v0, v1, v2, v3]),
        u32::from_be_bytes([e0, e1, e2, e3]),
    ))
}

/// Whether a sequence number or timestamp comes after another (RFC 9293 section 3.4).
fn is_after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

/// The options of a TCP header, `(kind, value)`; ends where they are malformed.
struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        const END: u8 = 0;
        const NO_OPERATION: u8 = 1;
        while let [NO_OPERATION, rest @ ..] = self.0 {
            self.0 = rest;
        }
        let [kind, length, ..] = *self.0 else {
            return None;
        };
        let value = self.0.get(2..usize::from(length))?;
        if kind == END {
            return None;
        }
        self.0 = self.0.get(usize::from(length)..)?;
        Some((kind, value))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::backlog::Backlog;
    use crate::packet::Packet;
    use crate::packet::tests::{ipv4_header, ipv6_header};
    use crate::queue::Queue;
    use crate::queue::cake::{Cake, CakeSpec};
    use crate::tally::Tally;
    use crate::time::Time;
    use plumb_model::framing::Framing;
    use plumb_model::units::BitRate;
    use plumb_wire::ip::TCP;
    use plumb_wire::virtio::VirtioHeader;
    use proptest::prelude::*;

    const PSH: u16 = 0x0008;
    const FIN: u16 = 0x0001;
    const ECE: u16 = 0x0040;
    /// The lowest of the reserved bits, which is AE in RFC 9768.
    const AE: u16 = 0x0100;

    /// A TCP packet, by default an ACK.
    #[derive(Clone)]
    struct Segment {
        v6: bool,
        port: u16,
        ack: u32,
        bits: u16,
        options: Vec<u8>,
        payload: usize,
    }

    fn ack(ack: u32) -> Segment {
        Segment {
            v6: false,
            port: 5201,
            ack,
            bits: ACK,
            options: Vec::new(),
            payload: 0,
        }
    }

    impl Segment {
        fn bits(self, bits: u16) -> Self {
            let bits = self.bits ^ bits;
            Self { bits, ..self }
        }

        fn option(mut self, kind: u8, value: &[u8]) -> Self {
            self.options.extend([kind, value.len() as u8 + 2]);
            self.options.extend(value);
            self
        }

        fn timestamps(self, value: u32, echo: u32) -> Self {
            self.option(
                TIMESTAMPS,
                &[value.to_be_bytes(), echo.to_be_bytes()].concat(),
            )
        }

        fn sack(self, blocks: &[(u32, u32)]) -> Self {
            let bytes: Vec<u8> = blocks
                .iter()
                .flat_map(|(start, end)| [start.to_be_bytes(), end.to_be_bytes()].concat())
                .collect();
            self.option(SACK, &bytes)
        }

        fn packet(mut self) -> Packet {
            const NO_OPERATION: u8 = 1;
            self.options
                .resize(self.options.len().next_multiple_of(4), NO_OPERATION);
            let header = 20 + self.options.len();
            let len = header + self.payload;
            let mut data = match self.v6 {
                true => ipv6_header(40 + len, TCP),
                false => ipv4_header(20 + len, TCP, 0),
            };
            data.extend(self.port.to_be_bytes());
            data.extend([0x14, 0x51, 0, 0, 0, 1]);
            data.extend(self.ack.to_be_bytes());
            data.extend(((header as u16 / 4) << 12 | self.bits).to_be_bytes());
            data.extend([0xff, 0xff, 0, 0, 0, 0]);
            data.extend(self.options);
            data.resize(data.len() + self.payload, 0);
            Packet::new(data, VirtioHeader::default(), Time::ZERO)
        }
    }

    /// What the filter and the aggressive one take out of a queue, by index.
    fn filtered(segments: &[Segment]) -> [Option<usize>; 2] {
        let mut list = PacketList::default();
        for segment in segments {
            list.push(segment.clone().packet());
        }
        [AckFilter::AckFilter, AckFilter::AckFilterAggressive].map(|f| f.superseded(&list))
    }

    const NOTHING: [Option<usize>; 2] = [None, None];
    const AGGRESSIVE: [Option<usize>; 2] = [None, Some(0)];
    const BOTH: [Option<usize>; 2] = [Some(0), Some(0)];

    #[test]
    fn the_oldest_of_two_goes_and_one_only_aggressively() {
        assert_eq!(filtered(&[ack(1)]), NOTHING);
        assert_eq!(filtered(&[ack(1), ack(2)]), AGGRESSIVE);
        assert_eq!(filtered(&[ack(1), ack(2), ack(3)]), BOTH);
        let v6 = |n| Segment { v6: true, ..ack(n) };
        assert_eq!(filtered(&[v6(1), v6(2), v6(3)]), BOTH);
        assert_eq!(filtered(&[v6(1), ack(2)]), NOTHING);
        // Sequence numbers wrap.
        assert_eq!(filtered(&[ack(u32::MAX - 5), ack(5)]), AGGRESSIVE);
        let mut list = PacketList::default();
        list.push(ack(1).packet());
        list.push(ack(2).packet());
        list.push(ack(3).packet());
        assert_eq!(AckFilter::NoAckFilter.superseded(&list), None);
    }

    #[test]
    fn only_the_same_flow_counts() {
        let other = |n| Segment { port: 80, ..ack(n) };
        assert_eq!(filtered(&[other(1), ack(2)]), NOTHING);
        assert_eq!(
            filtered(&[other(1), ack(1), other(2), ack(3), ack(4)])[0],
            Some(1)
        );
        // Something between the two: the aggressive filter wants them side by side.
        assert_eq!(filtered(&[ack(1), other(1), ack(2)]), NOTHING);
    }

    #[test]
    fn duplicate_acks_and_newer_ones_stay() {
        assert_eq!(filtered(&[ack(2), ack(2), ack(2)]), NOTHING);
        assert_eq!(filtered(&[ack(3), ack(3), ack(2)]), NOTHING);
    }

    #[test]
    fn data_and_other_flags_stay_but_data_may_supersede() {
        let data = |n| Segment {
            payload: 100,
            ..ack(n)
        };
        assert_eq!(filtered(&[data(1), ack(2)]), NOTHING);
        assert_eq!(filtered(&[ack(1), ack(2), data(3)]), BOTH);
        for bits in [PSH, FIN, SYN, AE, 0x20, 0x04] {
            assert_eq!(filtered(&[ack(1).bits(bits), ack(2)]), NOTHING, "{bits:#x}");
        }
        assert_eq!(filtered(&[ack(1), ack(2).bits(SYN)]), NOTHING);
        assert_eq!(filtered(&[ack(1), ack(2).bits(ACK)]), NOTHING);
        assert_eq!(filtered(&[ack(1), ack(2).bits(FIN)]), AGGRESSIVE);
    }

    #[test]
    fn a_change_of_the_echo_of_congestion_stays_visible() {
        let echo = |n| ack(n).bits(ECE);
        assert_eq!(filtered(&[echo(1), echo(2), echo(3)]), BOTH);
        assert_eq!(filtered(&[echo(1), echo(2)]), AGGRESSIVE);
        assert_eq!(filtered(&[ack(1), echo(2)]), NOTHING);
        assert_eq!(filtered(&[echo(1), ack(2)]), NOTHING);
        // The last without the echo stays, and so does the first with it, until there are two.
        assert_eq!(filtered(&[ack(1), echo(2), echo(3)]), [None, Some(1)]);
        let two = [ack(1), echo(2), echo(3), echo(4)];
        assert_eq!(filtered(&two), [Some(1), Some(1)]);
    }

    #[test]
    fn timestamps_must_not_go_back() {
        let at = |n, value, echo| ack(n).timestamps(value, echo);
        assert_eq!(filtered(&[at(1, 5, 5), at(2, 5, 5)]), AGGRESSIVE);
        assert_eq!(filtered(&[at(1, 5, 5), at(2, 6, 6)]), AGGRESSIVE);
        assert_eq!(filtered(&[at(1, 6, 5), at(2, 5, 5)]), NOTHING);
        assert_eq!(filtered(&[at(1, 5, 6), at(2, 5, 5)]), NOTHING);
        assert_eq!(filtered(&[at(1, 5, 5), ack(2)]), NOTHING);
        assert_eq!(filtered(&[ack(1), at(2, 5, 5)]), AGGRESSIVE);
    }

    #[test]
    fn unknown_and_odd_options_stay() {
        assert_eq!(
            filtered(&[ack(1).option(MD5, &[0; 16]), ack(2)]),
            AGGRESSIVE
        );
        for (kind, value) in [
            (30, &[0; 6][..]),
            (254, &[0; 2]),
            (SACK, &[0; 4]),
            (TIMESTAMPS, &[0; 4]),
        ] {
            assert_eq!(
                filtered(&[ack(1).option(kind, value), ack(2)]),
                NOTHING,
                "{kind}"
            );
        }
    }

    #[test]
    fn sack_blocks_must_be_covered() {
        let sack = |n, blocks: &[(u32, u32)]| ack(n).sack(blocks);
        // The same ACK with more SACKed says more; with the same or less it does not.
        assert_eq!(
            filtered(&[sack(1, &[(5, 9)]), sack(1, &[(5, 12)])]),
            AGGRESSIVE
        );
        assert_eq!(filtered(&[ack(1), sack(1, &[(5, 12)])]), AGGRESSIVE);
        assert_eq!(filtered(&[sack(1, &[(5, 9)]), sack(1, &[(5, 9)])]), NOTHING);
        assert_eq!(
            filtered(&[sack(1, &[(5, 12)]), sack(1, &[(5, 9)])]),
            NOTHING
        );
        // A later ACK may do with the same, and never with less.
        assert_eq!(
            filtered(&[sack(1, &[(5, 9)]), sack(2, &[(5, 9)])]),
            AGGRESSIVE
        );
        assert_eq!(filtered(&[sack(1, &[(5, 9)]), ack(2)]), NOTHING);
        let two = [sack(1, &[(5, 9), (20, 25)]), sack(2, &[(20, 30), (4, 9)])];
        assert_eq!(filtered(&two), AGGRESSIVE);
        let two = [sack(1, &[(5, 9), (20, 31)]), sack(2, &[(20, 30), (4, 9)])];
        assert_eq!(filtered(&two), NOTHING);
        // A D-SACK is below the ACK.
        assert_eq!(
            filtered(&[sack(9, &[(5, 9)]), sack(10, &[(5, 9)])]),
            NOTHING
        );
    }

    #[test]
    fn what_is_filtered_is_counted_as_such() {
        let spec = CakeSpec {
            ack_filter: AckFilter::AckFilter,
            ..Default::default()
        };
        let mut cake = Cake::new(spec, BitRate::from_bps(1_000_000), 1);
        let mut tally = Tally::new();
        for n in 1..=5 {
            let mut packet = ack(n).packet();
            packet.frame(&Framing::default());
            tally.offer(&packet);
            cake.enqueue(Time::ZERO, packet, Backlog::default(), &mut tally);
        }
        // The third pushes out the first, the fourth the second, the fifth the third.
        let stats = tally.stats("cake", cake.backlog());
        assert_eq!((stats.dropped["ack_filter"], stats.dropped_bytes), (3, 120));
        assert_eq!((stats.offered.packets, stats.backlog.packets), (5, 2));
        let left = std::iter::from_fn(|| cake.dequeue(Time::ZERO, &mut tally));
        let left: Vec<u32> = left
            .map(|packet| Tcp::parse(&packet.data).unwrap().acknowledged)
            .collect();
        assert_eq!(left, [4, 5]);
    }

    proptest! {
        #[test]
        fn anything_may_come(
            packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..6),
        ) {
            let mut list = PacketList::default();
            for tail in packets {
                let mut data = ipv4_header(20 + tail.len(), TCP, 0);
                data.extend(tail);
                list.push(Packet::new(data, VirtioHeader::default(), Time::ZERO));
            }
            let last = list.backlog().packets.saturating_sub(1);
            for filter in [AckFilter::AckFilter, AckFilter::AckFilterAggressive] {
                prop_assert!(filter.superseded(&list).is_none_or(|index| (index as u64) < last));
            }
        }
    }
}
