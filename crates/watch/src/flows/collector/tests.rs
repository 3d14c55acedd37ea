use std::net::Ipv4Addr;

use super::*;
use crate::flows::dimension::Dimension;
use crate::flows::table::Top;

const NOW_MS: i64 = 1_767_225_600_000;

/// A message of NetFlow 5 (its header, and 48 bytes for each flow) of flows of TCP from these hosts to 198.51.100.1:443, of two
/// packets and 1,000 bytes each.
pub(crate) fn netflow5(sequence: u32, one_in: u16, sources: &[Ipv4Addr]) -> Vec<u8> {
    let mut out = Vec::new();
    let words = |out: &mut Vec<u8>, words: &[u32]| {
        words.iter().for_each(|word| out.extend(word.to_be_bytes()));
    };
    out.extend(5u16.to_be_bytes());
    out.extend(u16::try_from(sources.len()).unwrap().to_be_bytes());
    words(&mut out, &[60_000, 1_767_225_600, 0, sequence]);
    out.extend([0, 0]);
    out.extend(one_in.to_be_bytes());
    for source in sources {
        out.extend(source.octets());
        words(
            &mut out,
            &[0xc633_6401, 0, 0x0003_0004, 2, 1000, 58_000, 59_000],
        );
        words(
            &mut out,
            &[
                50_000 << 16 | 443,
                0x0018_06b8,
                64_500 << 16 | 64_501,
                24 << 24 | 16 << 16,
            ],
        );
    }
    out
}

fn collector(exporters: &[&str]) -> Collector {
    let source = FlowSource {
        exporters: exporters.iter().map(|one| one.parse().unwrap()).collect(),
        ..FlowSource::at("127.0.0.1:2055".parse().unwrap())
    };
    Collector::new(source, NOW_MS)
}

fn top(tops: &Tops, dimension: Dimension) -> &Top {
    &tops.iter().find(|(one, _)| *one == dimension).unwrap().1
}

#[test]
fn flows_are_summed_up_in_all_dimensions() {
    let mut collector = collector(&["10.0.0.0/24"]);
    let sources = [
        Ipv4Addr::new(192, 0, 2, 1),
        Ipv4Addr::new(192, 0, 2, 2),
        Ipv4Addr::new(203, 0, 113, 1),
    ];
    collector.hear(
        "10.0.0.1".parse().unwrap(),
        &netflow5(0, 100, &sources),
        NOW_MS,
    );
    // The same exporter, as a socket of IPv6 shows it.
    collector.hear(
        "::ffff:10.0.0.1".parse().unwrap(),
        &netflow5(3, 100, &sources[..1]),
        NOW_MS,
    );
    let tops = collector.take_tops();
    let shown = |dimension| {
        let rows = top(&tops, dimension).rows.iter();
        rows.map(|row| (row.key.clone(), row.sums.bytes))
            .collect::<Vec<_>>()
    };
    let row = |key: &str, bytes| (key.to_owned(), bytes);
    assert_eq!(shown(Dimension::Total), [row("all", 400_000.0)]);
    assert_eq!(
        shown(Dimension::Source),
        [
            row("192.0.2.0/24", 300_000.0),
            row("203.0.113.0/24", 100_000.0)
        ]
    );
    assert_eq!(shown(Dimension::Application), [row("tcp/443", 400_000.0)]);
    assert_eq!(shown(Dimension::Dscp), [row("46", 400_000.0)]);
    assert_eq!(shown(Dimension::DestinationAs), [row("AS64501", 400_000.0)]);
    assert_eq!(
        shown(Dimension::InInterface),
        [row("10.0.0.1 interface 3", 400_000.0)]
    );
    let total = &top(&tops, Dimension::Total).rows[0].sums;
    assert!(total.bytes_interval().low < 400_000.0 && total.bytes_interval().high > 400_000.0);
    assert_eq!((total.packets, total.flows), (800.0, 4));
    assert!(top(&collector.tops(), Dimension::Total).rows.is_empty());
    let state = collector.state();
    assert_eq!((state.exporters.len(), state.exporters[0].flows), (1, 4));
    assert_eq!(state.exporters[0].sampling(), "1 of 100");
    assert_eq!(state.exporters[0].faults(), "");
}

#[test]
fn what_exporters_do_not_say_of_sampling_the_file_says() {
    let mut collector = collector(&[]);
    collector.source.one_in = 1000.0;
    let source = [Ipv4Addr::new(192, 0, 2, 1)];
    collector.hear(
        "10.0.0.1".parse().unwrap(),
        &netflow5(0, 0, &source),
        NOW_MS,
    );
    let tops = collector.tops();
    assert_eq!(top(&tops, Dimension::Total).rows[0].sums.packets, 2000.0);
    assert_eq!(collector.state().exporters[0].sampling_unknown, 1);
}

#[test]
fn others_are_refused_and_endless_exporters_too() {
    let mut named = collector(&["10.0.0.1"]);
    let flow = netflow5(0, 0, &[Ipv4Addr::new(192, 0, 2, 1)]);
    for last in 0..100 {
        named.hear(Ipv4Addr::new(10, 0, 0, last).into(), &flow, NOW_MS);
    }
    let state = named.state();
    assert_eq!((state.exporters.len(), state.refused), (1, 99));
    assert_eq!(state.refused_from.len(), MOST_REFUSED);
    assert_eq!(named.tops()[0].1.rows[0].sums.flows, 1);
    let mut any = collector(&[]);
    for number in 0..10_000u32 {
        any.hear(Ipv4Addr::from(number).into(), &flow, NOW_MS);
    }
    assert_eq!(any.state().exporters.len(), MOST_EXPORTERS);
    assert_eq!(any.state().refused, 10_000 - MOST_EXPORTERS as u64);
}

#[test]
fn what_is_no_message_is_counted() {
    let mut collector = collector(&[]);
    let flow = netflow5(0, 0, &[Ipv4Addr::new(192, 0, 2, 1)]);
    for bytes in [&b"hello"[..], &[], &flow[..40], &flow] {
        collector.hear("10.0.0.1".parse().unwrap(), bytes, NOW_MS + 60_000);
    }
    let state = collector.state();
    assert_eq!(
        (state.exporters[0].malformed, state.exporters[0].flows),
        (3, 1)
    );
    let faults = state.exporters[0].faults();
    assert_eq!(faults, "3 malformed messages, its clock is 60 s behind");
}
