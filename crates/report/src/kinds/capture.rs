//! What a capture of packets shows.

mod connections;
mod graphs;
mod sides;
mod traffic;

use plumb_model::context::Phase;
use plumb_model::results::capture::CaptureResult;
use plumb_model::run::{Measurement, Run};

use crate::number;
use crate::registry::results;
use crate::show::{Chart, Ends, Place, Show, Tables};

impl Show for CaptureResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        for result in results::<Self>(run) {
            tables.add(
                Place::Connections,
                connections::answers(&result.connections),
            );
            tables.detail(
                Place::Connections,
                connections::details(&result.connections, &result.tcp.segments),
            );
            tables.add(Place::Traffic, [traffic::hierarchy(result)]);
            tables.detail(Place::Traffic, traffic::details(result));
        }
    }

    fn recorded(&self) -> Option<(String, Option<f64>)> {
        let names: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        Some((names.join(", "), self.began_unix_s))
    }

    fn sentences(&self, run: &Run) -> Vec<String> {
        let mut sentences = Vec::new();
        for result in results::<Self>(run) {
            sentences.push(whole(result));
            sentences.extend(traffic::wireless_sentence(result));
            sentences.extend(flaws(result));
            sentences.extend(connections::sentences(&result.connections));
        }
        sentences
    }

    fn charts(&self, _measurement: &Measurement, _phase: Phase) -> Vec<Chart> {
        let graphs = self.graphs.as_ref();
        graphs.map_or_else(Vec::new, |graphs| graphs::charts(graphs, &self.connections))
    }

    /// Nothing of this machine bears on what is in a file.
    fn bears(&self) -> Ends {
        Ends::default()
    }

    fn fills_its_phase(&self) -> bool {
        false
    }
}

fn whole(result: &CaptureResult) -> String {
    let tcp = &result.tcp;
    let mut text = format!(
        "{} packets, {}, in {}; {} TCP connections",
        result.packets,
        number::bytes(result.bytes as f64),
        number::seconds(result.duration_s),
        tcp.connections
    );
    let parts = [
        (tcp.unanswered, "without an answer"),
        (tcp.refused, "refused"),
        (tcp.reset, "reset"),
    ];
    for (count, what) in parts {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text + "."
}

/// What must be known of the capture itself, a sentence each.
fn flaws(result: &CaptureResult) -> Vec<String> {
    let flaws = &result.flaws;
    let sentences = [
        (
            flaws.dropped,
            "packets were dropped by the capture before they were written",
        ),
        (
            flaws.missed_bytes,
            "bytes of TCP were acknowledged and are not in the capture: it missed them, the path did not",
        ),
        (
            flaws.malformed_packets,
            "packets have headers that are not whole or contradict themselves",
        ),
        (
            flaws.unread_packets,
            "packets are of a link or protocol that is not read into",
        ),
        (
            flaws.backward_packets,
            "packets are earlier than the one before them: the clock was set, files were joined, or directions were captured apart",
        ),
        (
            flaws.offloaded_packets,
            "packets are larger than a link carries: the network card split or joined them",
        ),
        (
            flaws.later_fragments,
            "packets are later fragments, whose ports are unknown",
        ),
        (
            flaws.untracked_packets,
            "packets are of pairs of hosts beyond the most that are listed",
        ),
    ];
    let known = sentences.iter().filter(|(count, _)| *count > 0);
    known
        .map(|(count, what)| format!("{count} {what}."))
        .collect()
}
