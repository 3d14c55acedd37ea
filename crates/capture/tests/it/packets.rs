//! Packets as they come, and as they do not: tagged, cut, in fragments, with wrong lengths.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use proptest::sample::select;

/// What a frame carries, and what stands before it on Ethernet.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    stations: Vec<u8>,
    tags: Vec<(u16, u16)>,
    ether_type: u16,
    payload: Vec<u8>,
    air: Air,
    /// How many bytes the capture kept at most.
    kept: usize,
}

impl Packet {
    /// The frame on a link of that name, as tcpdump has them, and its length before it was cut.
    pub(crate) fn on(&self, link: &str) -> (Vec<u8>, u32) {
        let mut frame = Vec::new();
        let ether_type = self.ether_type.to_be_bytes();
        match link {
            "EN10MB" => {
                frame.extend(&self.stations);
                for (kind, number) in &self.tags {
                    frame.extend(kind.to_be_bytes());
                    frame.extend(number.to_be_bytes());
                }
                frame.extend(ether_type);
            }
            "LINUX_SLL" => {
                frame.extend([0, 4, 0, 1, 0, 6]);
                frame.extend(&self.stations[..8]);
                frame.extend(ether_type);
            }
            "LINUX_SLL2" => {
                frame.extend(ether_type);
                frame.extend([0, 0, 0, 0, 0, 3, 0, 1, 4, 6]);
                frame.extend(&self.stations[..8]);
            }
            "IEEE802_11" => self.on_air(&mut frame),
            "IEEE802_11_RADIO" => {
                frame.extend(&self.air.radiotap);
                self.on_air(&mut frame);
            }
            _ => {}
        }
        frame.extend(&self.payload);
        let whole = frame.len() as u32;
        frame.truncate(self.kept);
        (frame, whole)
    }
}

impl Packet {
    fn on_air(&self, frame: &mut Vec<u8>) {
        let begin = frame.len();
        frame.extend([self.air.control, 1, 0, 0]);
        frame.extend(&self.stations);
        frame.extend([2, 0, 0, 0, 0, 9, 0x10, 0]);
        if self.air.control & 0x80 != 0 {
            frame.extend([0, 0]);
        }
        if self.air.is_padded {
            frame.resize(frame.len().next_multiple_of(4).max(begin), 0);
        }
        frame.extend([0xaa, 0xaa, 3, 0, 0, 0]);
        frame.extend(self.ether_type.to_be_bytes());
    }
}

/// What a wireless frame has before its payload.
#[derive(Debug, Clone)]
struct Air {
    radiotap: Vec<u8>,
    /// The frame's first byte: data, data with QoS, and others.
    control: u8,
    is_padded: bool,
}

fn air() -> impl Strategy<Value = Air> {
    let control = prop_oneof![6 => select(&[0x08_u8, 0x88][..]), 1 => any::<u8>()];
    let present = prop_oneof![
        4 => select(&[0_u32, 2, 3, 0x1f, 0x8000_0002][..]),
        1 => any::<u32>()
    ];
    // Whole words: tcpdump takes padding for shorter or longer behind others.
    let fields = select(&[20_usize, 24, 28][..]);
    let fields = fields.prop_flat_map(|bytes| prop::collection::vec(any::<u8>(), bytes));
    (control, present, fields, any::<bool>()).prop_map(|(control, present, mut radiotap, pads)| {
        let length = radiotap.len() as u16;
        radiotap[..2].fill(0);
        radiotap[2..4].copy_from_slice(&length.to_le_bytes());
        radiotap[4..8].copy_from_slice(&present.to_le_bytes());
        let flags = if present & 1 == 1 { 16 } else { 8 };
        radiotap[flags] = radiotap[flags] & !0x20 | if pads { 0x20 } else { 0 };
        Air {
            radiotap,
            control,
            is_padded: pads && present & 0x8000_0002 == 2,
        }
    })
}

pub(crate) fn packet() -> impl Strategy<Value = Packet> {
    let stations = prop_oneof![
        select(
            &[
                [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2],
                [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1],
                [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1],
            ][..]
        )
        .prop_map(|both| both.to_vec()),
        prop::collection::vec(any::<u8>(), 12),
    ];
    let tag = (
        select(&[0x8100, 0x88a8, 0x9100, 0x9200][..]),
        prop_oneof![select(&[5, 0xe005, 100][..]), any::<u16>()],
    );
    let tags = prop_oneof![3 => Just(Vec::new()), 2 => prop::collection::vec(tag, 1..3)];
    let kept = prop_oneof![2 => Just(usize::MAX), 1 => 0..120_usize];
    (stations, tags, carried(), air(), kept).prop_map(
        |(stations, tags, (ether_type, payload), air, kept)| Packet {
            stations,
            tags,
            ether_type,
            payload,
            air,
            kept,
        },
    )
}

fn carried() -> impl Strategy<Value = (u16, Vec<u8>)> {
    prop_oneof![
        4 => v4().prop_map(|payload| (0x0800, payload)),
        3 => v6().prop_map(|payload| (0x86dd, payload)),
        1 => (select(&[0x0806_u16, 0x8035][..]), arp()),
        1 => (any::<u16>(), prop::collection::vec(any::<u8>(), 0..80)),
        1 => (select(&[0x0800_u16, 0x86dd, 0x0806, 0x88cc][..]), prop::collection::vec(any::<u8>(), 0..80)),
    ]
}

fn number_in_ip() -> impl Strategy<Value = u8> {
    prop_oneof![9 => select(&[1_u8, 2, 6, 6, 17, 17, 44, 58, 132][..]), 1 => any::<u8>()]
}

fn v4_address() -> impl Strategy<Value = [u8; 4]> {
    let known = ["10.0.0.1", "10.0.0.2", "10.1.2.3", "192.168.1.1"];
    let known = known.map(|address| address.parse::<Ipv4Addr>().unwrap().octets());
    prop_oneof![4 => select(known.to_vec()), 1 => any::<[u8; 4]>()]
}

fn v6_address() -> impl Strategy<Value = [u8; 16]> {
    let known = ["2001:db8::1", "2001:db8:8000::5", "fe80::1", "::1"];
    let known = known.map(|address| address.parse::<Ipv6Addr>().unwrap().octets());
    prop_oneof![4 => select(known.to_vec()), 1 => any::<[u8; 16]>()]
}

fn v4() -> impl Strategy<Value = Vec<u8>> {
    let words = prop_oneof![3 => Just(5_u8), 1 => 6..=15_u8, 1 => 0..16_u8];
    let fragment = prop_oneof![
        4 => Just(0x4000_u16),
        1 => select(&[0, 0x2000, 1, 0x2003, 0x1fff][..]),
        1 => any::<u16>()
    ];
    let fixed = (words, fragment, number_in_ip(), any::<[u8; 4]>());
    (fixed, v4_address(), v4_address(), transport()).prop_map(
        |((words, fragment, protocol, other), source, destination, inner)| {
            let mut packet = vec![0x40 | words, other[0], other[1], other[2], 0, 7];
            packet.extend(fragment.to_be_bytes());
            packet.extend([other[3], protocol, 0, 0]);
            packet.extend(source);
            packet.extend(destination);
            packet.resize(usize::from(words).max(5) * 4, 1);
            packet.extend(inner);
            packet
        },
    )
}

fn v6() -> impl Strategy<Value = Vec<u8>> {
    let fixed = (number_in_ip(), number_in_ip(), any::<[u8; 4]>());
    (fixed, v6_address(), v6_address(), transport()).prop_map(
        |((next, inside, other), source, destination, inner)| {
            let mut packet = vec![0x60, other[0], other[1], other[2], 0, 40, next, other[3]];
            packet.extend(source);
            packet.extend(destination);
            if next == 44 {
                packet.extend([inside, 0, 0, 1, 0, 0, 0, 9]);
            }
            packet.extend(inner);
            packet
        },
    )
}

fn arp() -> impl Strategy<Value = Vec<u8>> {
    (1..3_u8, v4_address(), v4_address()).prop_map(|(operation, sender, target)| {
        let mut packet = vec![0, 1, 8, 0, 6, 4, 0, operation];
        packet.extend([2, 0, 0, 0, 0, 1]);
        packet.extend(sender);
        packet.extend([0; 6]);
        packet.extend(target);
        packet
    })
}

fn transport() -> impl Strategy<Value = Vec<u8>> {
    let port = || {
        prop_oneof![
            select(&[80_u16, 443, 53, 22, 8000, 8005, 8010][..]),
            any::<u16>()
        ]
    };
    let begin = prop_oneof![
        4 => (port(), port()).prop_map(|(source, destination)| {
            [source.to_be_bytes(), destination.to_be_bytes()].concat()
        }),
        1 => select(&[[8, 0, 1, 2], [0, 0, 1, 2], [128, 0, 1, 2], [3, 4, 1, 2]][..])
            .prop_map(|begin| begin.to_vec()),
    ];
    (begin, prop::collection::vec(any::<u8>(), 0..60))
        .prop_map(|(begin, rest)| [begin, rest].concat())
}
