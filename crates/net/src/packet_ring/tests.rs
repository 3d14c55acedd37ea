#![allow(clippy::unwrap_used)]
use std::net::UdpSocket;

use proptest::prelude::*;

use super::*;
use crate::clock::realtime_ns;

const PATIENCE: Duration = Duration::from_secs(50);

/// What of the loopback's packets ends with that text, once `count` of them came.
fn seen(ring: &mut PacketRing, text: &[u8], count: usize) -> Vec<(usize, u32, bool)> {
    let mut seen = Vec::new();
    // Others use the loopback too; it ends where nothing comes for seconds.
    while seen.len() < count && ring.advance(PATIENCE).unwrap() {
        let packet = ring.packet();
        if packet.bytes.ends_with(text) {
            seen.push((packet.bytes.len(), packet.original_bytes, packet.sent));
        }
    }
    seen
}

#[test]
fn the_loopback_has_each_packet_once() {
    let interface = Interface::open("lo").unwrap();
    assert_eq!(interface.link(), ETHERNET);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // What others send fills no ring of ours: the port of a datagram stands behind Ethernet and 22 bytes of IPv4 and UDP.
    const LOAD_PORT: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let port = u32::from(socket.local_addr().unwrap().port());
    let to_us = [
        (LOAD_PORT, 0, 0, 36),
        (IF_EQUAL, 0, 1, port),
        (RETURN, 0, 0, 262_144),
        (RETURN, 0, 0, 0),
    ];
    let mut ring = interface.start(65_535, false, &to_us).unwrap();
    let before = realtime_ns();
    for _ in 0..3 {
        socket
            .send_to(b"once", socket.local_addr().unwrap())
            .unwrap();
    }
    // Ethernet, IPv4, UDP and the text.
    assert_eq!(seen(&mut ring, b"once", 3), [(46, 46, false); 3]);
    assert!((before..=realtime_ns()).contains(&ring.packet().unix_ns));
    assert!(
        !ring.advance(Duration::from_millis(100)).unwrap()
            || !ring.packet().bytes.ends_with(b"once")
    );
    assert_eq!(ring.dropped().unwrap(), 0);
}

#[test]
fn what_is_kept_has_its_length_and_what_the_program_refuses_is_not_there() {
    const LOAD_LENGTH: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_LEN) as u16;
    const IF_ABOVE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let longer_than_1000 = [
        (LOAD_LENGTH, 0, 0, 0),
        (IF_ABOVE, 0, 1, 1000),
        (RETURN, 0, 0, 262_144),
        (RETURN, 0, 0, 0),
    ];
    let interface = Interface::open("lo").unwrap();
    let mut ring = interface.start(50, false, &longer_than_1000).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [10, 1200, 20, 1300] {
        socket
            .send_to(&vec![b'x'; length], socket.local_addr().unwrap())
            .unwrap();
    }
    assert_eq!(
        seen(&mut ring, b"xxxxxxxx", 2),
        [(50, 1242, false), (50, 1342, false)]
    );
}

#[test]
fn all_interfaces_together_have_a_header_of_their_own() {
    let interface = Interface::open(ANY).unwrap();
    assert_eq!(interface.link(), COOKED_2);
    let mut ring = interface.start(65_535, false, &[]).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .send_to(b"any", socket.local_addr().unwrap())
        .unwrap();
    let seen = seen(&mut ring, b"any", 1);
    assert_eq!(seen.first().unwrap().0, COOKED_BYTES + 28 + 3);
    let packet = ring.packet();
    assert_eq!(packet.bytes.first_chunk(), Some(&[0x08, 0x00, 0, 0]));
}

#[test]
fn an_interface_that_is_not_there_is_an_error() {
    assert!(Interface::open("no-such-thing").is_err());
}

proptest! {
    /// The kernel is trusted, and a place outside of a block reads nothing all the same.
    #[test]
    fn any_block_ends(bytes in proptest::collection::vec(any::<u8>(), 0..600), count in any::<u32>(), first in 0_u32..700) {
        let mut bytes = bytes;
        for (at, word) in [(12, count), (16, first)] {
            if let Some(place) = bytes.get_mut(at..at + 4) {
                place.copy_from_slice(&word.to_ne_bytes());
            }
        }
        let mut block = Block::begin(&bytes);
        // A packet whose next one is itself comes as often as the block says: a thousand of them show it.
        for _ in 0..1000 {
            let Some(record) = block.next(&bytes) else { break };
            prop_assert!(record.bytes(&bytes).len() <= bytes.len());
            let _ = record.cooked();
        }
    }
}
