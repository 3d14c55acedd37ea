//! Files of every shape, whole and broken.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::io::{Cursor, Write as _};

use plumb_wire::pcapng::{
    Direction, LINKTYPE_RAW, NO_LIMIT, interface, interface_statistics, packet, section_header,
};
use proptest::prelude::*;

use super::*;
use crate::testing::pcap;

type Read = Vec<(u64, u16, Vec<u8>)>;

fn read(bytes: &[u8]) -> (Read, Option<ReadError>, Told) {
    let mut packets = Vec::new();
    let mut reader = match Reader::new(Cursor::new(bytes.to_vec())) {
        Ok(reader) => reader,
        Err(error) => return (packets, Some(error), Told::default()),
    };
    let mut why = None;
    loop {
        match reader.advance() {
            Ok(Some(ns)) => {
                let frame = reader.frame();
                assert_eq!(frame.unix_ns, ns);
                packets.push((ns, frame.link, frame.bytes.to_vec()));
            }
            Ok(None) => return (packets, why, reader.told()),
            Err(error) => why = Some(error),
        }
    }
}

fn packets() -> Vec<(u64, Vec<u8>)> {
    (0..200_u64)
        .map(|i| {
            (
                1_700_000_000_123_456_000 + i * 1000,
                vec![i as u8; (i * 17 % 1500) as usize],
            )
        })
        .collect()
}

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    for (big_endian, nanoseconds) in [(false, false), (false, true), (true, false), (true, true)] {
        let (read, why, _) = read(&pcap(1, big_endian, nanoseconds, &packets()));
        assert!(why.is_none());
        let expected: Read = packets()
            .into_iter()
            .map(|(ns, bytes)| (ns, 1, bytes))
            .collect();
        assert_eq!(read, expected);
    }
}

fn pcapng() -> Vec<u8> {
    let mut file = section_header("a lab");
    file.extend(interface("wan", LINKTYPE_RAW, NO_LIMIT));
    file.extend(interface("lan", LINKTYPE_RAW, NO_LIMIT));
    for (ns, bytes) in packets() {
        file.extend(packet(
            1,
            ns,
            Direction::Inbound,
            &bytes,
            bytes.len() as u32,
        ));
    }
    file
}

#[test]
fn pcapng_with_what_else_it_tells() {
    let mut file = pcapng();
    file.extend(interface_statistics(1, 5, 17));
    // Secrets, and an unknown type.
    for kind in [10_u32, 0x0bad] {
        file.extend(
            [
                &kind.to_le_bytes()[..],
                &16_u32.to_le_bytes(),
                &[0; 4],
                &16_u32.to_le_bytes(),
            ]
            .concat(),
        );
    }
    // A name: 10.0.0.1 is "a".
    let names = [&[1, 0, 6, 0, 10, 0, 0, 1, b'a', 0, 0, 0][..], &[0; 4]].concat();
    let length = (names.len() as u32 + 12).to_le_bytes();
    file.extend([&4_u32.to_le_bytes()[..], &length, &names, &length].concat());
    let (read, why, told) = read(&file);
    assert!(why.is_none(), "{why:?}");
    assert_eq!(read.len(), 200);
    assert_eq!(read[7], (packets()[7].0, 101, packets()[7].1.clone()));
    assert_eq!(
        (told.dropped, told.secrets, told.unknown_blocks),
        (17, 1, 1)
    );
    assert_eq!(
        (told.comments, told.interfaces),
        (
            vec!["a lab".to_owned()],
            vec!["wan".to_owned(), "lan".to_owned()]
        )
    );
    assert_eq!(told.names, [("10.0.0.1".parse().unwrap(), "a".to_owned())]);
}

/// An interface whose stamps count in 2⁻¹⁰ s from an hour after 1970, in a section of the other byte order.
#[test]
fn time_resolutions_and_byte_orders_of_a_section() {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_be_bytes();
        [&kind.to_be_bytes()[..], &length, body, &length].concat()
    };
    let header = [
        &0x1a2b_3c4d_u32.to_be_bytes()[..],
        &[0, 1, 0, 0],
        &[0xff; 8],
    ]
    .concat();
    let options = [
        0, 9, 0, 1, 0x8a, 0, 0, 0, 0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0x0e, 0x10, 0, 0, 0, 0,
    ];
    let described = [&[0, 1, 0, 0, 0, 0, 0, 0][..], &options].concat();
    let enhanced = [
        &[0; 4][..],
        &[0; 4],
        &1536_u32.to_be_bytes(),
        &[0, 0, 0, 3],
        &[0, 0, 0, 9],
        &[7, 7, 7, 0],
    ]
    .concat();
    let file = [
        pcapng(),
        block(0x0a0d_0d0a, &header),
        block(1, &described),
        block(6, &enhanced),
    ]
    .concat();
    let (read, why, _) = read(&file);
    assert!(why.is_none(), "{why:?}");
    assert_eq!(*read.last().unwrap(), (3_601_500_000_000, 1, vec![7; 3]));
}

/// The capture as the packer of that name makes it: installed by tests/tools.sh.
fn packed_by(packer: &str, bytes: &[u8]) -> Vec<u8> {
    let mut child = std::process::Command::new(packer)
        .args(["-c", "-q"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect(packer);
    let mut input = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&bytes));
    let packed = child.wait_with_output().unwrap().stdout;
    writer.join().unwrap().unwrap();
    packed
}

#[test]
fn packed_in_one_piece_or_several() {
    for packer in ["gzip", "zstd", "lz4"] {
        let whole = pcapng();
        let (first, second) = whole.split_at(whole.len() / 2);
        let pieces = [packed_by(packer, first), packed_by(packer, second)].concat();
        for packed in [packed_by(packer, &whole), pieces.clone()] {
            let (read, why, _) = read(&packed);
            assert!(why.is_none() && read.len() == 200, "{packer}: {why:?}");
        }
        let (cut, why, _) = read(&pieces[..pieces.len() - 20]);
        assert!(cut.len() < 200 && why.is_some(), "{packer}: {why:?}");
    }
}

#[test]
fn a_packet_that_claims_more_than_any_has_is_as_long_as_what_was_captured() {
    let mut file = pcap(1, false, false, &[(0, vec![0; 60])]);
    let claimed = file.len() - 60 - 4;
    file[claimed..claimed + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut reader = Reader::new(Cursor::new(file)).unwrap();
    assert!(reader.advance().unwrap().is_some());
    assert_eq!(reader.frame().original_bytes, 60);
}

#[test]
fn what_is_to_be_skipped_in_zstd_is_skipped() {
    let skipped = [
        &0x184d_2a50_u32.to_le_bytes()[..],
        &3_u32.to_le_bytes(),
        b"abc",
    ]
    .concat();
    let packed = [packed_by("zstd", &pcapng()), skipped].concat();
    let (read, why, _) = read(&packed);
    assert!(why.is_none() && read.len() == 200, "{why:?}");
}

#[test]
fn what_is_cut_short_keeps_what_was_read() {
    for file in [pcap(1, false, false, &packets()), pcapng()] {
        let (read, why, _) = read(&file[..file.len() - 10]);
        assert_eq!(read.len(), 199);
        assert!(matches!(why, Some(ReadError::Cut { .. })), "{why:?}");
    }
}

#[test]
fn an_absurd_length_keeps_what_was_read() {
    let mut file = pcap(1, false, false, &packets());
    file.extend([
        0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f,
    ]);
    let (packets, why, _) = read(&file);
    assert_eq!(packets.len(), 200);
    assert!(
        why.unwrap()
            .to_string()
            .contains("2147483647 bytes, which no packet has")
    );
    let mut file = pcapng();
    file.extend([6, 0, 0, 0, 0xfc, 0xff, 0xff, 0x7f, 0, 0, 0, 0]);
    let (packets, why, _) = read(&file);
    assert!(
        packets.len() == 200 && matches!(why, Some(ReadError::Absurd { .. })),
        "{why:?}"
    );
}

#[test]
fn what_is_no_capture_is_refused() {
    let why = read(b"#!/bin/sh").1.unwrap().to_string();
    assert!(why.contains("begins with the bytes 23 21 2f 62"), "{why}");
    assert!(matches!(read(&[]).1, Some(ReadError::Empty)));
}

proptest! {
    #[test]
    fn damage_is_survived(at in 0_usize..5000, byte: u8, cut in 0_usize..5000, ng: bool) {
        let mut file = if ng { pcapng() } else { pcap(1, false, false, &packets()) };
        file.truncate(cut.max(8));
        if let Some(place) = file.get_mut(at) { *place = byte; }
        let (packets, _, _) = read(&file);
        prop_assert!(packets.len() <= 400);
    }

    #[test]
    fn arbitrary_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300), ng in 0..3_u8) {
        let mut file = match ng { 0 => Vec::new(), 1 => section_header(""), _ => pcap(1, true, false, &[]) };
        file.extend(bytes);
        let _ = read(&file);
    }
}

/// A stream that has a part at a time, and between the parts nothing for now.
struct Parts {
    bytes: Cursor<Vec<u8>>,
    part: u64,
    waits: bool,
}

impl io::Read for Parts {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.waits = !self.waits;
        match self.waits {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => io::Read::take(&mut self.bytes, self.part).read(into),
        }
    }
}

#[test]
fn a_file_that_grows_is_read_as_a_whole_one() {
    let mut block = pcapng();
    // A block that is passed over, before another packet.
    block.extend(
        [
            &[0xad, 0x0b, 0, 0, 96, 0, 0, 0][..],
            &[0; 84],
            &[96, 0, 0, 0],
        ]
        .concat(),
    );
    block.extend(packet(0, 7, Direction::Inbound, &[1; 60], 60));
    for file in [block, pcap(1, false, true, &packets())] {
        for part in [24, 61, 4096] {
            let parts = Parts {
                bytes: Cursor::new(file.clone()),
                part,
                waits: true,
            };
            let mut reader = Reader::growing(parts).unwrap();
            let mut packets = Vec::new();
            let told = loop {
                match reader.advance() {
                    Ok(Some(ns)) => {
                        let frame = reader.frame();
                        packets.push((ns, frame.link, frame.bytes.to_vec()));
                    }
                    Ok(None) => break reader.told(),
                    Err(ReadError::Io(error)) => {
                        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    }
                    Err(error) => panic!("{error}"),
                }
            };
            let (whole, why, all) = read(&file);
            assert!(why.is_none());
            assert_eq!((packets, told), (whole, all));
        }
    }
}
