//! Graphs of connections that are made for them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::analysis::Analysis;
use crate::testing::{Built, LINUX_SYN, lossy, named, pcap, raw};
use crate::watch::Watch;
use plumb_model::results::capture::CaptureGraphs;

fn graphs(file: Vec<u8>) -> CaptureGraphs {
    let result = Analysis::of(named(file), None, Watch::nobody().with_graphs(), &|| false);
    *result.graphs.unwrap()
}

#[test]
fn without_them_nothing_is_kept() {
    assert!(
        Analysis::of(named(lossy()), None, Watch::nobody(), &|| false)
            .graphs
            .is_none()
    );
}

#[test]
fn a_connection_is_there_with_its_marks() {
    let graphs = graphs(lossy());
    let all: u64 = graphs.traffic.packets.iter().sum();
    assert_eq!(all, 27);
    assert_eq!(graphs.connections.len(), 1);
    let graph = &graphs.connections[0];
    assert!(graph.down.is_none(), "the server sent no payload");
    let up = graph.up.as_ref().unwrap();
    assert!(up.sent_bytes.len() <= 400 && up.sent_bytes.len() > 100);
    let last = |column: &[Option<u64>]| column.iter().flatten().copied().next_back().unwrap();
    assert_eq!(last(&up.sent_bytes), 9002);
    assert_eq!(last(&up.acked_bytes), 9002);
    // 512 times 128 beyond the last acknowledgement.
    assert_eq!(last(&up.allowed_bytes), 9002 + 65_536);
    let sum = |column: &[u64]| column.iter().sum::<u64>();
    assert_eq!(sum(&up.payload_bytes), 9000);
    assert_eq!(sum(&up.retransmissions), 1);
    assert_eq!(sum(&up.sacks), 6);
    assert_eq!(sum(&up.zero_windows), 2);
    let most = up.max_in_flight_bytes.iter().flatten().max().copied();
    assert_eq!(most, Some(8000));
    assert_eq!(up.min_window_bytes.iter().flatten().min(), Some(&0));
    let shortest = up.min_rtt_s.iter().flatten().copied().fold(1.0, f64::min);
    assert!((shortest - 0.02).abs() < 1e-9, "{shortest}");
    // The repetition is in the bin of its time.
    let bin = up.retransmissions.iter().position(|n| *n > 0).unwrap();
    let at_s = graph.bin_s * bin as f64;
    assert!((0.055 - at_s).abs() <= graph.bin_s, "{at_s}");
}

/// A file in which so many connections send so much, the later ones more.
fn many(connections: u16) -> Vec<u8> {
    let mut packets = Vec::new();
    let mut now = 1;
    for k in 0..connections {
        for step in 0..=u32::from(k % 300) / 50 {
            now += 1_000_000;
            let syn = step == 0;
            packets.push((
                now,
                raw(&Built {
                    ports: [40_000 + k, 80],
                    seq: 1 + step * 1000 - u32::from(step > 0) * 999,
                    flags: if syn { 2 } else { 16 },
                    options: if syn { &LINUX_SYN } else { &[] },
                    payload: if syn { 0 } else { 1000 },
                    ..Built::default()
                }),
            ));
        }
    }
    pcap(101, false, true, &packets)
}

#[test]
fn the_heaviest_are_kept_of_more_connections_than_there_is_room_for() {
    let result = Analysis::of(
        named(many(900)),
        None,
        Watch::nobody().with_graphs(),
        &|| false,
    );
    let graphs = result.graphs.unwrap();
    assert_eq!(graphs.connections.len(), super::SHOWN);
    for (place, graph) in graphs.connections.iter().enumerate() {
        assert_eq!(graph.connection, place as u64);
        let sent: u64 = graph.up.as_ref().unwrap().payload_bytes.iter().sum();
        assert_eq!(sent, result.connections[place].up.payload_bytes);
        assert_eq!(sent, 5000);
    }
}

#[test]
fn hours_take_no_more_bins_and_keep_every_mark() {
    // Each hundredth segment repeats the one before.
    let packets: Vec<(u64, Vec<u8>)> = (0..40_000_u32)
        .map(|k| {
            let repeats = k % 100 == 99;
            let built = Built {
                seq: k * 10 - u32::from(repeats) * 10,
                payload: 10,
                ..Built::default()
            };
            (u64::from(k) * 1_000_000_000, raw(&built))
        })
        .collect();
    let graphs = graphs(pcap(101, false, true, &packets));
    let up = graphs.connections[0].up.clone().unwrap();
    assert!(up.sent_bytes.len() <= 400, "{}", up.sent_bytes.len());
    let repeated: u64 = up.retransmissions.iter().sum();
    assert_eq!(repeated, 400);
    assert_eq!(graphs.traffic.packets.iter().sum::<u64>(), 40_000);
}
