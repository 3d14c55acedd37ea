use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;
use crate::flow_export::Protocol;
use crate::flow_export::clock::Behind;

/// A packet that is written field by field.
#[derive(Clone, Default)]
struct Packet(Vec<u8>);

impl Packet {
    fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    fn u16s(self, values: &[u16]) -> Self {
        values.iter().fold(self, |packet, value| packet.u16(*value))
    }

    fn u32s(self, values: &[u32]) -> Self {
        values.iter().fold(self, |packet, value| packet.u32(*value))
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    /// A set of NetFlow 9 or IPFIX.
    fn set(self, number: u16, content: Self) -> Self {
        let length = u16::try_from(content.0.len() + 4).unwrap();
        self.u16(number).u16(length).bytes(&content.0)
    }

    /// A part of sFlow.
    fn part(self, form: u32, content: Self) -> Self {
        let length = u32::try_from(content.0.len()).unwrap();
        self.u32(form).u32(length).bytes(&content.0)
    }
}

fn packet() -> Packet {
    Packet::default()
}

/// 2026-01-01T00:00:00Z, in s and in ms.
const SENT_S: u32 = 1_767_225_600;
const NOW_MS: i64 = SENT_S as i64 * 1000 + 250;

/// The flows that an exporter hands on of a datagram.
fn heard(exporter: &mut Exporter, packet: &Packet) -> Vec<FlowRecord> {
    let mut flows = Vec::new();
    exporter
        .hear(&packet.0, NOW_MS, |flow| flows.push(*flow))
        .unwrap();
    flows
}

fn v4(last: u8) -> Option<IpAddr> {
    Some(Ipv4Addr::new(192, 0, 2, last).into())
}

/// A message of NetFlow 5 with flows of these numbers of bytes.
fn netflow5(sequence: u32, uptime_ms: u32, octets: &[u32]) -> Packet {
    let count = u16::try_from(octets.len()).unwrap();
    let header = packet()
        .u16s(&[5, count])
        .u32s(&[uptime_ms, SENT_S, 0, sequence])
        .u8(1)
        .u8(2)
        .u16(0x4000 | 100);
    octets.iter().fold(header, |packet, octets| {
        packet
            .u32s(&[0xc000_0201, 0xc000_0202, 0])
            .u16s(&[3, 4])
            .u32s(&[2, *octets, uptime_ms - 2000, uptime_ms - 1000])
            .u16s(&[443, 50_000])
            .bytes(&[0, 0x18, 6, 0xb8])
            .u16s(&[64_500, 64_501])
            .bytes(&[24, 16, 0, 0])
    })
}

#[test]
fn netflow5_is_read() {
    let mut exporter = Exporter::default();
    let flows = heard(&mut exporter, &netflow5(7, 60_000, &[3000]));
    let flow = FlowRecord {
        domain: 0x0102,
        source: v4(1),
        destination: v4(2),
        source_prefix_bits: Some(24),
        destination_prefix_bits: Some(16),
        source_as: Some(64_500),
        destination_as: Some(64_501),
        protocol: Some(6),
        source_port: 443,
        destination_port: 50_000,
        traffic_class: Some(0xb8),
        in_interface: Some(3),
        out_interface: Some(4),
        bytes: 3000,
        packets: 2,
        start_ms: Some(NOW_MS - 250 - 2000),
        end_ms: Some(NOW_MS - 250 - 1000),
        one_in: Some(100.0),
        ..FlowRecord::default()
    };
    assert_eq!(flows, [flow]);
    assert_eq!(flow.dscp(), Some(46));
    heard(&mut exporter, &netflow5(8, 60_001, &[1, 2]));
    heard(&mut exporter, &netflow5(15, 60_002, &[1]));
    let seen = exporter.seen();
    assert_eq!((seen.records, seen.lost[&Protocol::NetFlow5]), (4, 5));
    assert_eq!(seen.one_in, Some((100.0, 100.0)));
    let behind = Behind {
        last_ms: 250,
        least_ms: 250,
        most_ms: 250,
    };
    assert_eq!(seen.behind, Some(behind));
    // It booted, and counts from zero.
    heard(&mut exporter, &netflow5(0, 4_000, &[1]));
    let seen = exporter.seen();
    assert_eq!((seen.begun_anew, seen.lost[&Protocol::NetFlow5]), (1, 5));
}

/// A message of NetFlow 9 of source 9 with these sets.
fn netflow9(sequence: u32, sets: Packet) -> Packet {
    packet()
        .u16s(&[9, 1])
        .u32s(&[60_000, SENT_S, sequence, 9])
        .bytes(&sets.0)
}

/// A template of addresses, bytes, packets, uptimes and a sampler.
fn template9(number: u16) -> Packet {
    packet().u16s(&[number, 7, 8, 4, 12, 4, 1, 4, 2, 2, 22, 4, 21, 4, 48, 1])
}

fn record9(octets: u32, sampler: u8) -> Packet {
    packet()
        .u32s(&[0xc000_0201, 0xc000_0202, octets])
        .u16(3)
        .u32s(&[58_000, 59_000])
        .u8(sampler)
}

#[test]
fn netflow9_is_read_by_its_templates_and_options() {
    let mut exporter = Exporter::default();
    // A scope of 4 bytes (the system), and 3 fields: sampler, mode, interval.
    let options = packet().u16s(&[257, 4, 12, 1, 4, 48, 1, 49, 1, 50, 4, 0]);
    let rates = packet().u32(0).bytes(&[1, 2, 0, 0, 0, 200]).u32(0);
    let rates = rates.bytes(&[2, 2, 0, 0, 1, 0]);
    let flows = packet()
        .bytes(&record9(3000, 1).0)
        .bytes(&record9(40, 2).0)
        // Padding.
        .bytes(&[0, 0]);
    let sets = packet()
        .set(0, template9(256))
        .set(1, options)
        .set(257, rates)
        .set(256, flows);
    let flows = heard(&mut exporter, &netflow9(1, sets));
    let flow = FlowRecord {
        domain: 9,
        source: v4(1),
        destination: v4(2),
        bytes: 3000,
        packets: 3,
        start_ms: Some(NOW_MS - 250 - 2000),
        end_ms: Some(NOW_MS - 250 - 1000),
        one_in: Some(200.0),
        ..FlowRecord::default()
    };
    let other = FlowRecord {
        bytes: 40,
        one_in: Some(256.0),
        ..flow
    };
    assert_eq!(flows, [flow, other]);
    heard(&mut exporter, &netflow9(4, packet()));
    heard(&mut exporter, &netflow9(3, packet()));
    let seen = exporter.seen();
    assert_eq!(seen.lost[&Protocol::NetFlow9], 1);
    assert_eq!(
        (seen.sampling_unknown, seen.one_in),
        (0, Some((200.0, 256.0)))
    );
}

#[test]
fn records_wait_for_their_template_and_templates_change() {
    let mut exporter = Exporter::default();
    let flows = heard(
        &mut exporter,
        &netflow9(1, packet().set(256, record9(7, 1))),
    );
    assert_eq!((flows.len(), exporter.waiting()), (0, 1));
    let flows = heard(&mut exporter, &netflow9(2, packet().set(0, template9(256))));
    assert_eq!((flows[0].bytes, exporter.waiting()), (7, 0));
    // In the middle of a message it becomes another one.
    let sets = packet()
        .set(256, record9(8, 1))
        .set(0, packet().u16s(&[256, 1, 1, 2]))
        .set(256, packet().u16s(&[1, 2, 3]));
    let flows = heard(&mut exporter, &netflow9(3, sets));
    let bytes: Vec<u64> = flows.iter().map(|flow| flow.bytes).collect();
    assert_eq!(bytes, [8, 1, 2, 3]);
    assert_eq!(exporter.seen().changed_templates, 1);
}

/// A message of IPFIX of domain 5 with these sets.
fn ipfix(sequence: u32, sets: Packet) -> Packet {
    let length = u16::try_from(16 + sets.0.len()).unwrap();
    packet()
        .u16s(&[10, length])
        .u32s(&[SENT_S, sequence, 5])
        .bytes(&sets.0)
}

#[test]
fn ipfix_is_read_with_fields_of_any_length_and_of_enterprises() {
    let mut exporter = Exporter::default();
    let template = packet()
        .u16s(&[256, 8, 27, 16, 28, 16, 1, 3, 2, 65_535, 152, 8, 153, 8])
        // An enterprise's text of any length, and bytes of a reverse direction (RFC 5103).
        .u16s(&[0x8000 | 70, 65_535])
        .u32(4_294_967)
        .u16s(&[0x8000 | 1, 8])
        .u32(29_305);
    let text = [b'x'; 300];
    let flow = packet()
        .bytes(
            &"2001:db8::1"
                .parse::<std::net::Ipv6Addr>()
                .unwrap()
                .octets(),
        )
        .bytes(
            &"2001:db8::2"
                .parse::<std::net::Ipv6Addr>()
                .unwrap()
                .octets(),
        )
        .bytes(&[1, 0, 0])
        .bytes(&[2, 1, 0])
        .u32s(&[0x19b, 0x7f00_0000, 0x19b, 0x7f00_0001])
        .u8(255)
        .u16(300)
        .bytes(&text)
        .u32s(&[0, 77]);
    // Two of four packets: of all flows.
    let options = packet().u16s(&[257, 3, 1, 149, 4, 305, 4, 306, 4]);
    let rate = packet().u32s(&[5, 2, 2]);
    let sets = packet()
        .set(2, template.clone())
        .set(3, options)
        .set(257, rate)
        .set(256, flow.clone());
    let flows = heard(&mut exporter, &ipfix(100, sets));
    assert_eq!(
        flows,
        [FlowRecord {
            domain: 5,
            source: Some("2001:db8::1".parse().unwrap()),
            destination: Some("2001:db8::2".parse().unwrap()),
            bytes: 65_536,
            packets: 256,
            start_ms: Some(0x19b_7f00_0000),
            end_ms: Some(0x19b_7f00_0001),
            one_in: Some(2.0),
            ..FlowRecord::default()
        }]
    );
    // The message before had two records of data, and six are missing.
    let two = flow.clone().bytes(&flow.0);
    assert_eq!(
        heard(&mut exporter, &ipfix(108, packet().set(256, two))).len(),
        2
    );
    assert_eq!(exporter.seen().lost[&Protocol::Ipfix], 6);
    assert_eq!(exporter.templates(), 2);
    // The template is withdrawn, and then all of options are.
    heard(
        &mut exporter,
        &ipfix(110, packet().set(2, packet().u16s(&[256, 0]))),
    );
    assert_eq!(exporter.templates(), 1);
    heard(
        &mut exporter,
        &ipfix(110, packet().set(3, packet().u16s(&[3, 0]))),
    );
    assert_eq!(exporter.templates(), 0);
    assert!(heard(&mut exporter, &ipfix(110, packet().set(256, flow))).is_empty());
    assert_eq!(exporter.seen().lost[&Protocol::Ipfix], 6);
}

/// A message of sFlow of sub-agent 3 with these samples.
fn sflow(sequence: u32, samples: &[(u32, Packet)]) -> Packet {
    let count = u32::try_from(samples.len()).unwrap();
    let header = packet().u32s(&[5, 1, 0x0a00_0001, 3, sequence, 60_000, count]);
    samples.iter().fold(header, |packet, (form, sample)| {
        packet.part(*form, sample.clone())
    })
}

/// The first bytes of a frame with a tag: UDP of 1,000 bytes of IP.
fn frame() -> Packet {
    packet()
        .bytes(&[2; 12])
        .u16s(&[0x8100, 7, 0x0800])
        .bytes(&[0x45, 0x28])
        .u16s(&[1000, 0, 0])
        .bytes(&[64, 17, 0, 0])
        .u32s(&[0xc000_0201, 0xc000_0202])
        .u16s(&[53, 40_000, 980, 0])
}

#[test]
fn sflow_is_read_with_routes_and_systems() {
    let mut exporter = Exporter::default();
    let frame = frame();
    let length = u32::try_from(frame.0.len()).unwrap();
    let header = packet()
        .u32s(&[1, 1022, 4, length])
        .bytes(&frame.0)
        .bytes(&[0, 0]);
    let router = packet().u32s(&[1, 0x0a00_0001, 24, 8]);
    let gateway = packet().u32s(&[
        1,
        0x0a00_0001,
        64_499,
        64_500,
        64_498,
        1,
        2,
        2,
        64_502,
        64_501,
    ]);
    let sample = packet()
        .u32s(&[1, 12, 512, 5120, 0, 12, 0x3fff_ffff, 3])
        .part(1, header.clone())
        .part(1002, router)
        .part(1003, gateway);
    let flow = FlowRecord {
        domain: 3,
        source: v4(1),
        destination: v4(2),
        source_prefix_bits: Some(24),
        destination_prefix_bits: Some(8),
        source_as: Some(64_500),
        destination_as: Some(64_501),
        protocol: Some(17),
        source_port: 53,
        destination_port: 40_000,
        traffic_class: Some(0x28),
        in_interface: Some(12),
        out_interface: None,
        bytes: 1000,
        packets: 1,
        one_in: Some(512.0),
        ..FlowRecord::default()
    };
    let expanded = packet()
        .u32s(&[2, 0, 12, 512, 5632, 0, 0, 12, 2, 9, 1])
        .part(1, header);
    let counters = packet().u32s(&[1, 12, 0]);
    let samples = [(1, sample), (3, expanded), (2, counters)];
    let flows = heard(&mut exporter, &sflow(1, &samples));
    let bare = FlowRecord {
        source_prefix_bits: None,
        destination_prefix_bits: None,
        source_as: None,
        destination_as: None,
        ..flow
    };
    assert_eq!(flows, [flow, bare]);
    heard(&mut exporter, &sflow(4, &[]));
    let seen = exporter.seen();
    assert_eq!((seen.passed_over, seen.lost[&Protocol::Sflow5]), (1, 2));
}

#[test]
fn what_is_no_ip_counts_as_its_frame() {
    let arp = packet().bytes(&[2; 12]).u16(0x0806).bytes(&[0; 30]);
    let length = u32::try_from(arp.0.len()).unwrap();
    let header = packet().u32s(&[1, 64, 4, length]).bytes(&arp.0);
    let sample = packet()
        .u32s(&[1, 12, 512, 5120, 0, 12, 13, 1])
        .part(1, header);
    let flows = heard(&mut Exporter::default(), &sflow(1, &[(1, sample)]));
    assert_eq!((flows[0].bytes, flows[0].source), (64, None));
}

#[test]
fn templates_that_lie_are_refused() {
    let mut exporter = Exporter::default();
    let error = |exporter: &mut Exporter, packet: &Packet| {
        exporter.hear(&packet.0, NOW_MS, |_| {}).unwrap_err()
    };
    // It announces 65,535 fields, and has none or as many as fit.
    let lie = packet().set(0, packet().u16s(&[256, 65_535]));
    error(&mut exporter, &netflow9(1, lie));
    let full = (0..16_000).fold(packet().u16s(&[256, 16_000]), |p, _| p.u16s(&[1, 4]));
    heard(&mut exporter, &netflow9(2, packet().set(0, full)));
    // Fields without bytes: its records would be endless.
    heard(
        &mut exporter,
        &netflow9(3, packet().set(0, packet().u16s(&[257, 2, 1, 0, 2, 0]))),
    );
    heard(
        &mut exporter,
        &ipfix(1, packet().set(2, packet().u16s(&[7, 1, 1, 4]))),
    );
    assert_eq!(exporter.seen().refused_templates, 3);
    assert_eq!(exporter.templates(), 0);
    // A set of no length, and one that is longer than its message.
    error(&mut exporter, &netflow9(4, packet().u16s(&[0, 0])));
    error(&mut exporter, &netflow9(5, packet().u16s(&[0, 100])));
    error(&mut exporter, &packet().u16s(&[7, 1]));
    error(&mut exporter, &packet());
    assert_eq!(exporter.seen().malformed, 5);
}

#[test]
fn endless_domains_and_templates_take_a_bounded_memory() {
    let mut exporter = Exporter::default();
    for domain in 0..2000u32 {
        let sets = (0..20).fold(packet(), |sets, number| {
            let template = packet().u16s(&[256 + number, 2, 1, 4, 2, 4]);
            sets.set(2, template).set(999, packet().u32(domain))
        });
        let mut message = ipfix(1, sets);
        message.0[12..16].copy_from_slice(&domain.to_be_bytes());
        heard(&mut exporter, &message);
    }
    assert!(exporter.templates() <= 1024);
    assert!(exporter.waiting() <= 16_384);
    assert!(exporter.seen().without_template > 10_000);
}

/// All messages of the tests before, to be damaged.
fn messages() -> Vec<Packet> {
    let sets = packet()
        .set(0, template9(256))
        .set(
            1,
            packet().u16s(&[257, 4, 12, 1, 4, 48, 1, 49, 1, 50, 4, 0]),
        )
        .set(256, record9(1, 1));
    let template = packet()
        .u16s(&[256, 3, 1, 3, 2, 65_535, 0x8000 | 70, 65_535])
        .u32(9);
    let sets10 = packet()
        .set(2, template)
        .set(3, packet().u16s(&[257, 2, 1, 149, 4, 311, 8]))
        .set(256, packet().bytes(&[1, 2, 3, 1, 9, 2, 0, 0]));
    let header = packet().u32s(&[1, 1022, 4, 46]).bytes(&frame().0);
    let gateway = packet().u32s(&[1, 1, 1, 1, 1, 1, 2, 1, 7]);
    let sample = packet()
        .u32s(&[1, 12, 512, 5120, 0, 12, 13, 2])
        .part(1, header)
        .part(1003, gateway);
    vec![
        netflow5(1, 60_000, &[1, 2, 3]),
        netflow9(1, sets),
        ipfix(1, sets10),
        sflow(1, &[(1, sample)]),
    ]
}

proptest! {
    /// Whatever comes is read or refused, and hands on no more flows than it has bytes.
    #[test]
    fn any_bytes_are_read_or_refused(
        damaged in proptest::collection::vec((0..4usize, proptest::collection::vec((0..200usize, any::<u8>()), 0..6), 0..200usize), 1..6),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut exporter = Exporter::default();
        let _ = exporter.hear(&bytes, NOW_MS, |_| {});
        for (of, changes, cut) in damaged {
            let mut packet = messages().swap_remove(of).0;
            for (at, byte) in changes {
                if let Some(place) = packet.get_mut(at) {
                    *place = byte;
                }
            }
            packet.truncate(packet.len().saturating_sub(cut / 10));
            let mut flows = 0;
            let _ = exporter.hear(&packet, NOW_MS, |flow| {
                flows += 1;
                assert!(flow.one_in.is_none_or(|one_in| one_in >= 1.0));
            });
            // Records that waited may come with it.
            prop_assert!(flows <= packet.len() + 1000);
        }
    }
}
