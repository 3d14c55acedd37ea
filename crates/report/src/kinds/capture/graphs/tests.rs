//! Charts of graphs that are made for them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use plumb_model::results::capture::{CaptureResult, ConnectionGraph, HalfGraph};

/// A connection of so many bins with a loss in the middle, and a window that is far above.
fn result(bins: u64) -> CaptureResult {
    let numbers = |of: &dyn Fn(u64) -> u64| (0..bins).map(|k| Some(of(k))).collect();
    let counts = |at: u64| (0..bins).map(|k| u64::from(k == at)).collect();
    let half = HalfGraph {
        sent_bytes: numbers(&|k| k * 1000 + 1000),
        acked_bytes: numbers(&|k| k * 1000),
        allowed_bytes: numbers(&|k| k * 1000 + 60_000_000),
        wire_bytes: vec![1052; bins as usize],
        payload_bytes: vec![1000; bins as usize],
        retransmissions: counts(bins / 2),
        sacks: counts(bins / 2 + 1),
        zero_windows: counts(bins),
        min_rtt_s: (0..bins).map(|k| (k % 2 == 0).then_some(0.02)).collect(),
        max_rtt_s: (0..bins).map(|k| (k % 2 == 0).then_some(0.03)).collect(),
        max_in_flight_bytes: numbers(&|_| 1000),
        min_window_bytes: numbers(&|_| 1500),
        congestion_window_bytes: numbers(&|_| 1200),
        phases: Vec::new(),
    };
    let mut connection = ConnectionResult {
        client: "10.0.0.1:40000".to_owned(),
        server: "<b>".to_owned(),
        ..ConnectionResult::default()
    };
    connection.up.payload_bytes = bins * 1000;
    CaptureResult {
        connections: vec![connection],
        graphs: Some(Box::new(CaptureGraphs {
            traffic: TrafficGraph {
                bin_s: 0.01,
                packets: vec![1; bins as usize],
                bytes: vec![1052; bins as usize],
            },
            connections: vec![ConnectionGraph {
                connection: 0,
                at_s: 0.0,
                bin_s: 0.01,
                up: Some(half),
                down: None,
            }],
        })),
        ..CaptureResult::default()
    }
}

/// The charts of a result.
fn drawn(result: &CaptureResult) -> Vec<Chart> {
    let graphs = result.graphs.as_ref();
    graphs.map_or_else(Vec::new, |graphs| charts(graphs, &result.connections))
}

#[test]
fn a_connection_has_four_charts_and_the_capture_two() {
    let charts = drawn(&result(400));
    let groups: Vec<ChartGroup> = charts.iter().map(|chart| chart.group).collect();
    assert_eq!(groups[..4], [ChartGroup::Connections; 4]);
    assert_eq!(groups[4..], [ChartGroup::Traffic; 2]);
    let named = charts[0].of.clone().unwrap();
    assert_eq!(named, "10.0.0.1:40000 to <b>: sequence numbers");
    let sequence = &charts[0].svg.wide;
    // The loss is marked and named, and so is the SACK; there was no window of zero, and the wide one is left out.
    assert!(sequence.contains(">retransmission<") && sequence.contains(">SACK<"));
    assert!(!sequence.contains("window of zero") && !sequence.contains("allowed by the window<"));
    assert_eq!(
        sequence.matches("class=\"line lost\"").count(),
        2,
        "a mark and its name"
    );
    assert!(charts[3].svg.wide.contains(">receiver&#x27;s window<"));
    assert!(charts[3].svg.wide.contains(">congestion window<"));
    // The page stays small: no line has more points than columns of pixels.
    let bytes: usize = charts
        .iter()
        .map(|c| c.svg.wide.len() + c.svg.narrow.len())
        .sum();
    assert!(bytes < 200_000, "{bytes}");
}

#[test]
fn rates_are_those_of_their_bins() {
    let charts = drawn(&result(100));
    // 1052 bytes in 10 ms: 105200 bytes a second, 842 kbit/s.
    assert!(
        charts[4].svg.wide.contains("thousand bytes a second"),
        "{}",
        charts[4].svg.wide
    );
    assert!(charts[1].svg.wide.contains("Mbit&#x2f;s"));
    let rates = columns::rates(&[1, 1, 3, 3], 0.5, 1.0);
    let values: Vec<f64> = rates.points().map(|(_, value)| value).collect();
    assert_eq!(values, [2.0, 2.0, 6.0, 6.0]);
}

#[test]
fn a_run_without_graphs_has_no_charts() {
    assert!(drawn(&CaptureResult::default()).is_empty());
    let empty = CaptureResult {
        graphs: Some(Box::default()),
        ..CaptureResult::default()
    };
    assert!(drawn(&empty).is_empty());
    // A place that is not there, as in a file that was changed by hand.
    let mut wrong = result(4);
    wrong.connections.clear();
    assert_eq!(drawn(&wrong).len(), 2);
}
