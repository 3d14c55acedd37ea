//! What a translator passes, changes and drops.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::chain::{ChainError, build_link};
use crate::packet::tests::{ACK, ipv6_header, tcp};
use crate::spec::AnyCell;
use crate::spec::CellSpec;
use crate::spec::ChainSpec;
use plumb_wire::checksum::{Sum, checksum, pseudo_header};
use plumb_wire::too_big::too_big;
use plumb_wire::virtio::VirtioHeader;
use proptest::prelude::*;

const PUBLIC: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

fn nat(pairs: &[(&str, &str)]) -> [Box<dyn AnyCell>; 2] {
    let pairs = [pairs, &[("address", "203.0.113.1")]].concat();
    let spec = CellSpec::from_pairs("nat", &pairs).unwrap();
    spec.build(1, Time::ZERO).ends()
}

fn s(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

/// A packet of 40 transport bytes with right checksums, of TCP with ACK, UDP, or an echo
/// whose type is the source port and whose identifier is the destination port.
fn packet(protocol: u8, from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Packet {
    let mut data = vec![0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, protocol, 0, 0];
    data.extend(from.0.octets());
    data.extend(to.0.octets());
    let sum = checksum(&data);
    data[10..12].copy_from_slice(&sum.to_be_bytes());
    if protocol == ICMP {
        data.extend([from.1 as u8, 0, 0, 0]);
        data.extend(to.1.to_be_bytes());
    } else {
        data.extend(from.1.to_be_bytes());
        data.extend(to.1.to_be_bytes());
    }
    data.resize(60, 0x11);
    let at = match protocol {
        TCP => {
            data[32..34].copy_from_slice(&[0x50, ACK]);
            36
        }
        UDP => 26,
        _ => 22,
    };
    data[at..at + 2].fill(0);
    let sum = pseudo(&data).bytes(&data[20..]).checksum();
    data[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    Packet::new(data, VirtioHeader::default(), Time::ZERO)
}

fn pseudo(data: &[u8]) -> Sum {
    let ip = IpPacket::parse(data).unwrap();
    if ip.protocol() == ICMP {
        return Sum::new();
    }
    let length = ip.payload().len() as u32;
    pseudo_header(ip.source(), ip.destination(), ip.protocol(), length)
}

fn is_sound(data: &[u8]) -> bool {
    checksum(&data[..20]) == 0 && pseudo(data).bytes(&data[20..]).checksum() == 0
}

fn pass(cell: &mut Box<dyn AnyCell>, at: Time, packet: Packet) -> Option<Packet> {
    cell.enqueue(at, packet);
    cell.dequeue(at).map(|(_, packet)| packet)
}

fn flow(packet: &Packet) -> (IpAddr, u16, IpAddr, u16) {
    let flow = IpPacket::parse(&packet.data).unwrap().flow();
    let FlowKey {
        source,
        source_port,
        destination,
        destination_port,
        ..
    } = flow;
    (source, source_port, destination, destination_port)
}

fn dropped(cell: &mut Box<dyn AnyCell>) -> Vec<(String, u64)> {
    cell.stats(s(1000), "nat").dropped.into_iter().collect()
}

#[test]
fn two_hosts_with_one_port_share_the_address() {
    for protocol in [TCP, UDP] {
        let [mut out, mut back] = nat(&[]);
        for (host, port) in HOSTS.into_iter().zip([4000, 4001]) {
            let question = packet(protocol, (host, 4000), (SERVER, 80));
            let question = pass(&mut out, s(1), question).unwrap();
            assert_eq!(flow(&question), (PUBLIC.into(), port, SERVER.into(), 80));
            assert!(is_sound(&question.data));
            let answer = packet(protocol, (SERVER, 80), (PUBLIC, port));
            let answer = pass(&mut back, s(1), answer).unwrap();
            assert_eq!(flow(&answer), (SERVER.into(), 80, host.into(), 4000));
            assert!(is_sound(&answer.data));
        }
        assert_eq!((out.tally().changed, back.tally().changed), (2, 2));
    }
}

#[test]
fn echoes_keep_apart_by_their_identifier() {
    let [mut out, mut back] = nat(&[]);
    for (host, id) in HOSTS.into_iter().zip([5000, 5001]) {
        let ping = pass(&mut out, s(1), packet(ICMP, (host, 8), (SERVER, 5000))).unwrap();
        assert_eq!(flow(&ping), (PUBLIC.into(), 8, SERVER.into(), id));
        let pong = pass(&mut back, s(1), packet(ICMP, (SERVER, 0), (PUBLIC, id))).unwrap();
        assert_eq!(flow(&pong), (SERVER.into(), 0, host.into(), 5000));
        assert!(is_sound(&ping.data) && is_sound(&pong.data));
    }
    // Questions from outside and answers from inside have no business here.
    assert!(pass(&mut back, s(1), packet(ICMP, (SERVER, 8), (PUBLIC, 5000))).is_none());
    assert!(pass(&mut out, s(1), packet(ICMP, (HOSTS[0], 0), (SERVER, 5000))).is_none());
}

#[test]
fn large_segments_pass_whole_with_their_partial_checksum() {
    let [mut out, _] = nat(&[]);
    let large = pass(&mut out, s(1), tcp(false, 10_000, 1448, ACK)).unwrap();
    assert_eq!(large.segments(), 7);
    let sum = u16::from_be_bytes([large.data[36], large.data[37]]);
    assert_eq!(sum, pseudo(&large.data).folded());
    for mut single in segment::split(large, 1) {
        assert!(segment::finalise_checksum(&mut single) && is_sound(&single.data));
    }
}

#[test]
fn errors_come_back_to_who_caused_them() {
    for protocol in [TCP, UDP, ICMP] {
        let [mut out, mut back] = nat(&[]);
        let sent = match protocol {
            ICMP => packet(ICMP, (HOSTS[1], 8), (SERVER, 4000)),
            _ => packet(protocol, (HOSTS[1], 4000), (SERVER, 80)),
        };
        // The first host has the port, so the second gets another.
        let mut other = sent.clone();
        set_end(
            &mut other.data,
            End::Source,
            HOSTS[0],
            4000,
            TransportSum::Complete,
        );
        pass(&mut out, s(1), other);
        let seen = pass(&mut out, s(1), sent.clone()).unwrap();
        assert_ne!(seen.data, sent.data);

        let router = "192.0.2.99".parse().unwrap();
        let error = too_big(&seen.data, 1000, router).unwrap();
        let error = Packet::new(error, VirtioHeader::default(), Time::ZERO);
        let error = pass(&mut back, s(1), error).unwrap();
        assert!(is_sound(&error.data));
        assert_eq!(flow(&error).2, IpAddr::from(HOSTS[1]));
        assert_eq!(
            error.data[28..],
            sent.data,
            "{protocol}: it quotes what was sent"
        );
    }
}

#[test]
fn errors_from_inside_do_not_show_the_inside() {
    let [mut out, mut back] = nat(&[]);
    pass(&mut out, s(1), packet(UDP, (HOSTS[0], 4000), (SERVER, 53)));
    let from_outside = packet(UDP, (SERVER, 53), (PUBLIC, 4000));
    let came = pass(&mut back, s(1), from_outside.clone()).unwrap();
    let mut error = too_big(&came.data, 0, HOSTS[0].into()).unwrap();
    error[21] = 3; // port unreachable
    refresh_icmp_checksum(&mut error);
    let error = Packet::new(error, VirtioHeader::default(), Time::ZERO);
    let error = pass(&mut out, s(1), error).unwrap();
    assert!(is_sound(&error.data));
    assert_eq!(flow(&error).0, IpAddr::from(PUBLIC));
    assert_eq!(error.data[28..], from_outside.data);
}

#[test]
fn what_is_dropped_and_why() {
    let [mut out, mut back] = nat(&[("max_mappings", "1")]);
    assert!(pass(&mut out, s(1), packet(UDP, (HOSTS[0], 1), (SERVER, 9))).is_some());
    assert!(pass(&mut out, s(1), packet(UDP, (HOSTS[1], 1), (SERVER, 9))).is_none());
    let mut fragment = packet(UDP, (HOSTS[0], 1), (SERVER, 9));
    fragment.data[6] = 0x20;
    assert!(pass(&mut out, s(1), fragment).is_none());
    assert!(pass(&mut out, s(1), packet(47, (HOSTS[0], 1), (SERVER, 9))).is_none());
    let expected = [
        ("nat_table_full".to_owned(), 1),
        ("nat_untranslatable".to_owned(), 2),
    ];
    assert_eq!(dropped(&mut out), expected);
    assert!(pass(&mut back, s(1), packet(UDP, (SERVER, 9), (PUBLIC, 2))).is_none());
    assert!(pass(&mut back, s(1), packet(UDP, (SERVER, 9), (HOSTS[0], 1))).is_none());
    assert!(pass(&mut back, s(300), packet(UDP, (SERVER, 9), (PUBLIC, 1))).is_some());
    assert!(pass(&mut back, s(600), packet(UDP, (SERVER, 9), (PUBLIC, 1))).is_none());
    assert_eq!(dropped(&mut back), [("nat_no_mapping".to_owned(), 3)]);
}

#[test]
fn what_passes_untouched() {
    let [mut out, _] = nat(&[]);
    let all_routers = packet(UDP, (HOSTS[0], 1), (Ipv4Addr::new(224, 0, 0, 2), 1));
    let mut data = ipv6_header(48, UDP);
    data.extend([0; 8]);
    let v6 = Packet::new(data, VirtioHeader::default(), Time::ZERO);
    for packet in [all_routers, v6] {
        let before = packet.data.clone();
        assert_eq!(pass(&mut out, s(1), packet).unwrap().data, before);
    }
}

#[test]
fn a_link_has_it_in_both_directions_or_not_at_all() {
    let cell: crate::spec::NamedCell = toml::from_str("type = 'nat'").unwrap();
    let (with, without) = (ChainSpec(vec![cell]), ChainSpec::default());
    assert!(build_link(&with, &with, [1, 2]).is_ok());
    for (up, down) in [(&with, &without), (&without, &with)] {
        let error = build_link(up, down, [1, 2]).map(|_| ()).unwrap_err();
        assert!(matches!(error, ChainError::Unpaired { .. }));
    }
    let ends = [[PUBLIC.into()], [SERVER.into()]];
    let settled = with.with_addresses(&ends[0], &ends[1]);
    let CellSpec::Nat(spec) = &settled.0[0].cell else {
        panic!()
    };
    assert_eq!(spec.address, Some(PUBLIC));
}

proptest! {
    /// What comes out is still whole, and what was sound is.
    #[test]
    fn arbitrary_bytes_are_survived(
        packets in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..90), 0usize..5, any::<bool>()), 1..30),
    ) {
        let [mut out, mut back] = nat(&[("max_mappings", "3")]);
        for (goes_out, mut data, kind, for_us) in packets {
            let length = data.len() as u16;
            let protocol = [TCP, UDP, ICMP, ICMP, 99][kind];
            if data.len() >= 28 {
                data[0] = 0x45;
                data[2..4].copy_from_slice(&length.to_be_bytes());
                data[6..8].fill(0);
                data[9] = protocol;
                data[20] = if kind == 3 { 3 } else { data[20] };
                if for_us { data[16..20].copy_from_slice(&PUBLIC.octets()); }
                if let (3, Some(quoted)) = (kind, data.get_mut(28)) { *quoted = 0x45; }
            }
            let cell = if goes_out { &mut out } else { &mut back };
            if let Some(packet) = pass(cell, s(1), Packet::new(data, VirtioHeader::default(), Time::ZERO)) {
                prop_assert_eq!(packet.data.len(), usize::from(length));
            }
        }
    }

    #[test]
    fn what_goes_out_and_is_answered_comes_back(
        flows in proptest::collection::vec((0u8..4, 1u16..6, 1u16..4, any::<bool>()), 1..40),
    ) {
        let [mut out, mut back] = nat(&[]);
        let mut seen = std::collections::HashMap::new();
        for (host, port, server_port, is_tcp) in flows {
            let protocol = if is_tcp { TCP } else { UDP };
            let host = Ipv4Addr::new(10, 0, 0, host);
            let sent = pass(&mut out, s(1), packet(protocol, (host, port), (SERVER, server_port))).unwrap();
            prop_assert!(is_sound(&sent.data));
            let (_, public_port, ..) = flow(&sent);
            let owner = *seen.entry((protocol, public_port)).or_insert((host, port));
            prop_assert_eq!(owner, (host, port), "one port, one owner");
            let answer = pass(&mut back, s(1), packet(protocol, (SERVER, server_port), (PUBLIC, public_port))).unwrap();
            prop_assert!(is_sound(&answer.data));
            prop_assert_eq!(flow(&answer), (SERVER.into(), server_port, host.into(), port));
        }
    }
}
