//! TCP connections of a capture.

use plumb_model::finding::Place;
use plumb_model::results::Outcome;
use plumb_model::results::capture::{CaptureResult, ConnectionResult, HalfResult};
use plumb_model::run::Measurement;

use crate::Case;

/// So many of the heaviest are judged: a lighter one may wait without harm.
const MOST: usize = 5;

/// Over less than this, in seconds, shares of the time say nothing: autotuning and slow start are not over.
const ENOUGH_S: f64 = 0.5;

/// A connection, seen from the side that sent more.
#[derive(Clone, Copy)]
pub(crate) struct Captured<'a> {
    pub(crate) measurement: &'a Measurement,
    /// Its place in the result, from 0.
    place: usize,
    pub(crate) connection: &'a ConnectionResult,
    /// What the side that sent more sent, and whether that is the client.
    pub(crate) sent: &'a HalfResult,
    pub(crate) by_client: bool,
}

impl<'a> Captured<'a> {
    /// The name of one of its fields, after `result.`.
    pub(crate) fn field(&self, field: &str) -> String {
        format!("connections[{}].{field}", self.place)
    }

    /// The name of a field of what the side that sent more sent.
    pub(crate) fn field_of_sent(&self, field: &str) -> String {
        let side = if self.by_client { "up" } else { "down" };
        self.field(&format!("{side}.{field}"))
    }

    /// Who sent more to whom.
    pub(crate) fn ends(&self) -> String {
        let [sender, receiver] = self.sides();
        format!("from {} to {}", sender.1, receiver.1)
    }

    /// The sending side and the receiving one.
    pub(crate) fn sides(&self) -> [(Place, &'a str); 2] {
        let client = (Place::Client, self.connection.client.as_str());
        let server = (Place::Server, self.connection.server.as_str());
        match self.by_client {
            true => [client, server],
            false => [server, client],
        }
    }

    /// The shortest round trip of the whole path in seconds: from the place of the capture to both ends.
    pub(crate) fn rtt_s(&self) -> Option<f64> {
        let shortest = |half: &HalfResult| {
            let known = [half.rtt_s, half.rtt_timestamps_s].into_iter().flatten();
            known.map(|rtt| rtt.min).reduce(f64::min)
        };
        Some(shortest(&self.connection.up)? + shortest(&self.connection.down)?)
    }

    /// Share of its segments that were retransmitted, and not because they came late.
    pub(crate) fn retransmitted_ratio(&self) -> f64 {
        let segments = &self.sent.segments;
        let retransmitted = segments
            .retransmissions
            .saturating_add(segments.fast_retransmissions);
        retransmitted as f64 / self.sent.packets.max(1) as f64
    }
}

impl<'a> Case<'a> {
    /// Captures, and what each of them shows.
    pub(crate) fn captures(&self) -> impl Iterator<Item = (&'a Measurement, &'a CaptureResult)> {
        self.measurements.iter().filter_map(|m| match &m.outcome {
            Outcome::Capture(result) => Some((m, &**result)),
            _ => None,
        })
    }

    /// The heaviest connections of captures that lasted long enough to be judged.
    pub(crate) fn captured(&self) -> impl Iterator<Item = Captured<'a>> {
        let all = self.captures().flat_map(|(measurement, result)| {
            let heaviest = result.connections.iter().enumerate().take(MOST);
            heaviest.map(move |(place, connection)| {
                let by_client = connection.up.payload_bytes > connection.down.payload_bytes;
                Captured {
                    measurement,
                    place,
                    connection,
                    sent: match by_client {
                        true => &connection.up,
                        false => &connection.down,
                    },
                    by_client,
                }
            })
        });
        all.filter(|captured| captured.connection.duration_s >= ENOUGH_S)
    }
}
