//! Packets and files that tests are made of.

use crate::analysis::Named;
use crate::read::Reader;

/// A segment to be built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Built<'a> {
    pub(crate) ports: [u16; 2],
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) options: &'a [u8],
    /// Bytes of payload, all zero.
    pub(crate) payload: usize,
}

impl Default for Built<'_> {
    fn default() -> Self {
        Self {
            ports: [40_000, 80],
            seq: 0,
            ack: 0,
            flags: plumb_wire::ip::ACK,
            window: 512,
            options: &[],
            payload: 0,
        }
    }
}

/// As Linux sends them: MSS 1460, SACK permitted, timestamps, NOP, window scale 7.
pub(crate) const LINUX_SYN: [u8; 20] = [
    2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 3, 7,
];

/// A packet of IPv4 with the segment; what comes from a port above 1023 is from 10.0.0.1.
pub(crate) fn raw(built: &Built<'_>) -> Vec<u8> {
    let [source, destination] = built.ports;
    let mut tcp = Vec::new();
    tcp.extend(source.to_be_bytes());
    tcp.extend(destination.to_be_bytes());
    tcp.extend(built.seq.to_be_bytes());
    tcp.extend(built.ack.to_be_bytes());
    tcp.push(((20 + built.options.len()) / 4 * 16) as u8);
    tcp.push(built.flags);
    tcp.extend(built.window.to_be_bytes());
    tcp.extend([0; 4]);
    tcp.extend(built.options);
    tcp.resize(tcp.len() + built.payload, 0);
    let hosts = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let [from, to] = if source > 1023 {
        hosts
    } else {
        [hosts[1], hosts[0]]
    };
    ipv4(6, from, to, &tcp)
}

/// A packet of IPv4.
pub(crate) fn ipv4(protocol: u8, from: [u8; 4], to: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend(from);
    packet.extend(to);
    packet.extend(payload);
    packet
}

/// A file of the classic format.
pub(crate) fn pcap(
    link: u32,
    big_endian: bool,
    nanoseconds: bool,
    packets: &[(u64, Vec<u8>)],
) -> Vec<u8> {
    let u32s = |value: u32| {
        if big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let u16s = |value: u16| {
        if big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    };
    let magic = if nanoseconds {
        0xa1b2_3c4d
    } else {
        0xa1b2_c3d4
    };
    let mut file = [
        &u32s(magic)[..],
        &u16s(2),
        &u16s(4),
        &[0; 8],
        &u32s(65_535),
        &u32s(link),
    ]
    .concat();
    for (ns, bytes) in packets {
        let fraction = if nanoseconds {
            ns % 1_000_000_000
        } else {
            ns % 1_000_000_000 / 1000
        };
        for value in [
            (ns / 1_000_000_000) as u32,
            fraction as u32,
            bytes.len() as u32,
            bytes.len() as u32,
        ] {
            file.extend(u32s(value));
        }
        file.extend(bytes);
    }
    file
}

const MS: u64 = 1_000_000;

/// A file with a connection in which the second of eight segments is lost, reported by SACK and repeated, and in which the
/// server's window is closed for a while.
pub(crate) fn lossy() -> Vec<u8> {
    use plumb_wire::ip::{ACK, FIN, SYN};
    let mut packets = Vec::new();
    let mut now = 1_000_000_000_000;
    let mut add = |after_ms: u64, built: Built<'_>| {
        now += after_ms * MS;
        packets.push((now, raw(&built)));
    };
    let up = |seq, ack| Built {
        seq,
        ack,
        ..Built::default()
    };
    let down = |seq, ack| Built {
        ports: [80, 40_000],
        ..up(seq, ack)
    };
    let syn = |built, flags| Built {
        flags,
        window: 64_000,
        options: &LINUX_SYN,
        ..built
    };
    let full = |built| Built {
        payload: 1000,
        ..built
    };
    add(1, syn(up(1000, 0), SYN));
    add(20, syn(down(5000, 1001), SYN | ACK));
    add(1, up(1001, 5001));
    for k in 0..8 {
        add(1, full(up(1001 + k * 1000, 5001)));
    }
    for k in 2..8_u32 {
        let block = [3001_u32.to_be_bytes(), (2001 + k * 1000).to_be_bytes()].concat();
        let options = [&[1, 1, 5, 10][..], &block].concat();
        let built = Built {
            options: &options,
            ..down(5001, 2001)
        };
        add(if k == 2 { 20 } else { 1 }, built);
    }
    add(1, full(up(2001, 5001)));
    add(20, down(5001, 9001));
    let window = |built, window| Built { window, ..built };
    add(1, full(up(9001, 5001)));
    add(20, window(down(5001, 10_001), 0));
    add(200, up(10_000, 5001));
    add(20, window(down(5001, 10_001), 0));
    add(20, down(5001, 10_001));
    let ends = |built| Built {
        flags: FIN | ACK,
        ..built
    };
    add(2, ends(up(10_001, 5001)));
    add(20, ends(down(5001, 10_002)));
    add(1, up(10_002, 5002));
    pcap(101, false, true, &packets)
}

/// A file that is to be read.
pub(crate) fn named(file: Vec<u8>) -> Vec<Named> {
    let reader = match Reader::new(std::io::Cursor::new(file)) {
        Ok(reader) => reader,
        Err(error) => panic!("{error}"),
    };
    vec![Named {
        name: "test".to_owned(),
        reader,
    }]
}
