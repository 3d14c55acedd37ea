//! The graphs of a capture: packets and bytes of all of it, and four of each of its heaviest connections.

mod columns;
mod connection;

use plumb_model::results::capture::{CaptureGraphs, ConnectionResult, TrafficGraph};

use crate::number;
use crate::show::{Chart, ChartGroup};
use crate::svg::series::{self, Line, Scale, Subject, Written};
use columns::{largest, prefix, rates};

/// All charts of a capture.
pub(super) fn charts(graphs: &CaptureGraphs, connections: &[ConnectionResult]) -> Vec<Chart> {
    let of_connections = graphs.connections.iter().flat_map(|graph| {
        let place = usize::try_from(graph.connection).unwrap_or(usize::MAX);
        let connection = connections.get(place);
        connection.map_or_else(Vec::new, |connection| connection::charts(connection, graph))
    });
    of_connections.chain(traffic(&graphs.traffic)).collect()
}

/// Bytes and packets a second.
fn traffic(graph: &TrafficGraph) -> Vec<Chart> {
    let chart = |values: &[u64], what: &str, description: &str, words: fn(f64) -> String| {
        let values = rates(values, graph.bin_s, 1.0);
        let (factor, prefix) = prefix(largest([&values]));
        let subject = Subject {
            title: &format!("seconds; {prefix}{what}"),
            description,
            scale: Scale::FromZero,
            written: Written { factor, words },
        };
        let line = Line {
            name: what,
            colour: "up",
            values: &values,
        };
        Some(Chart {
            group: ChartGroup::Traffic,
            of: None,
            svg: series::render(&subject, &[line])?,
        })
    };
    let both = [
        chart(
            &graph.bytes,
            "bytes a second",
            "Bytes of all packets of the capture, over time",
            number::bytes,
        ),
        chart(
            &graph.packets,
            "packets a second",
            "Packets of the capture, over time",
            |value| format!("{value:.0}"),
        ),
    ];
    both.into_iter().flatten().collect()
}

#[cfg(test)]
#[path = "graphs/tests.rs"]
mod tests;
