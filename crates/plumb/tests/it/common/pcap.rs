//! Captures that tests make themselves, packet by packet.

use std::path::{Path, PathBuf};

use plumb_wire::checksum::{checksum, pseudo_header};

/// A host of such a capture.
pub(crate) const CLIENT: [u8; 4] = [198, 51, 100, 7];
pub(crate) const SERVER: [u8; 4] = [203, 0, 113, 9];
const CLIENT_PORT: u16 = 40_000;

/// What a file of the classic format begins with, in nanoseconds.
pub(crate) fn head(link: u32) -> Vec<u8> {
    let fields = [0xa1b2_3c4d, 0x0004_0002, 0, 0, 262_144, link];
    fields.map(u32::to_le_bytes).concat()
}

/// A record of such a file.
pub(crate) fn record(ns: u64, packet: &[u8]) -> Vec<u8> {
    let length = packet.len() as u32;
    let (s, ns) = ((ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32);
    let head = [s, ns, length, length].map(u32::to_le_bytes).concat();
    [&head, packet].concat()
}

/// A file of packets with their times in milliseconds.
pub(crate) fn file(folder: &Path, name: &str, link: u32, packets: &[(u64, Vec<u8>)]) -> PathBuf {
    let records = packets
        .iter()
        .flat_map(|(ms, packet)| record(1_000_000_000_000 + ms * 1_000_000, packet));
    let bytes: Vec<u8> = head(link).into_iter().chain(records).collect();
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// A packet of IPv4 with right checksums: of TCP and UDP the field is where it was left zero.
pub(crate) fn ipv4(protocol: u8, from: [u8; 4], to: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut head = vec![0x45, 0];
    head.extend((20 + payload.len() as u16).to_be_bytes());
    head.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
    head.extend(from);
    head.extend(to);
    let sum = checksum(&head).to_be_bytes();
    head[10..12].copy_from_slice(&sum);
    let mut payload = payload.to_vec();
    let place = if protocol == 6 { 16 } else { 6 };
    let pseudo = pseudo_header(from.into(), to.into(), protocol, payload.len() as u32);
    let sum = pseudo.bytes(&payload).checksum().to_be_bytes();
    if matches!(protocol, 6 | 17) {
        payload[place..place + 2].copy_from_slice(&sum);
    }
    [head, payload].concat()
}

/// A segment between the client and the server at that port; `up` is from the client.
pub(crate) fn segment(
    up: bool,
    port: u16,
    numbers: [u32; 2],
    flags: u8,
    payload: &[u8],
) -> Vec<u8> {
    let (ports, ends) = match up {
        true => ([CLIENT_PORT, port], [CLIENT, SERVER]),
        false => ([port, CLIENT_PORT], [SERVER, CLIENT]),
    };
    let mut tcp = ports.map(u16::to_be_bytes).concat();
    tcp.extend(numbers.map(u32::to_be_bytes).concat());
    tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend(payload);
    ipv4(6, ends[0], ends[1], &tcp)
}

/// A datagram from the client to the server.
pub(crate) fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
    let fields = [CLIENT_PORT, port, 8 + payload.len() as u16, 0];
    let udp = [fields.map(u16::to_be_bytes).concat(), payload.to_vec()].concat();
    ipv4(17, CLIENT, SERVER, &udp)
}

/// A frame of Ethernet.
pub(crate) fn ethernet(packet: &[u8]) -> Vec<u8> {
    let ends = [0, 0x1b, 0x21, 1, 2, 3, 0, 0x1b, 0x21, 4, 5, 6, 8, 0];
    [&ends[..], packet].concat()
}

/// A segment of a connection: when it passes in milliseconds, whether it is the client's, its numbers, flags and payload.
pub(crate) type Passing<'a> = (u64, bool, [u32; 2], u8, &'a [u8]);

/// A connection of 80 ms on which the client asks and the server answers, at times in milliseconds; round trips are 20 ms.
pub(crate) fn connection(port: u16, asks: &[u8], answers: &[u8]) -> Vec<(u64, Vec<u8>)> {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    const PUSH: u8 = 24;
    const FIN: u8 = 17;
    let (up, down) = (1001 + asks.len() as u32, 5001 + answers.len() as u32);
    let segments: [Passing<'_>; 9] = [
        (0, true, [1000, 0], SYN, b""),
        (20, false, [5000, 1001], SYN | ACK, b""),
        (20, true, [1001, 5001], ACK, b""),
        (20, true, [1001, 5001], PUSH, asks),
        (40, false, [5001, up], PUSH, answers),
        (40, true, [up, down], ACK, b""),
        (60, true, [up, down], FIN, b""),
        (80, false, [down, up + 1], FIN, b""),
        (80, true, [up + 1, down + 1], ACK, b""),
    ];
    segments
        .map(|(ms, is_up, numbers, flags, payload)| {
            (ms, ethernet(&segment(is_up, port, numbers, flags, payload)))
        })
        .to_vec()
}
