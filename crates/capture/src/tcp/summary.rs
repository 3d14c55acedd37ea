//! A connection as a result.

use plumb_model::results::capture::{
    CaptureSide, ConnectionResult, HalfResult, Lacking, Offer, TcpSums,
};

use super::connection::Connection;
use super::half::Half;
use super::spent::CLIENT;

const NS_PER_S: f64 = 1e9;

impl Connection {
    /// What it comes to; times count from `began_ns`.
    pub(crate) fn result(&self, client: String, server: String, began_ns: u64) -> ConnectionResult {
        let (limited, limit) = self.spent.limited();
        let seconds = |ns: u64| ns as f64 / NS_PER_S;
        ConnectionResult {
            client,
            server,
            at_s: seconds(self.first_ns.saturating_sub(began_ns)),
            duration_s: seconds(self.last_ns - self.first_ns),
            handshake_seen: self.handshake_ns.get().is_some(),
            ended: self.is_over(),
            reset_by: self.reset.map(|side| match side {
                CLIENT => CaptureSide::Client,
                _ => CaptureSide::Server,
            }),
            handshake_s: self.handshake_ns.get().map(seconds),
            repeated_syns: [&self.client, &self.server]
                .map(|half| u64::from(half.syns.saturating_sub(1)))
                .iter()
                .sum(),
            lacking: lacking(self.client.offer, self.server.offer),
            limited,
            limit,
            up: half(&self.client, &self.server, self.first_ns),
            down: half(&self.server, &self.client, self.first_ns),
            turns: self.turns,
            server_think_s: self.think.distribution(),
            icmp_errors: self.icmp_errors,
            tls: self.tls.as_ref().map(|tls| tls.result()),
        }
    }

    /// Adds it to the sums of all.
    pub(crate) fn add_to(&self, sums: &mut TcpSums) {
        sums.connections += 1;
        sums.established += u64::from(self.handshake_ns.get().is_some());
        let silent = self.begun && self.server.packets == 0;
        sums.unanswered += u64::from(silent);
        sums.refused += u64::from(self.refused);
        sums.reset += u64::from(self.reset.is_some() && self.established);
        sums.payload_bytes += self.payload_bytes();
        for half in [&self.client, &self.server] {
            if let Some(segments) = &half.segments {
                sums.segments.add(segments);
            }
        }
    }

    /// Payload in bytes that was acknowledged and not captured.
    pub(crate) fn missed_bytes(&self) -> u64 {
        self.client.missed + self.server.missed
    }
}

/// Options that one side offered and the other did not; of ECN alone, which few ask for, what the server lacks.
fn lacking(client: Option<Offer>, server: Option<Offer>) -> Vec<Lacking> {
    let (Some(client), Some(server)) = (client, server) else {
        return Vec::new();
    };
    let options = [
        (
            "window scaling",
            client.window_scale.is_some(),
            server.window_scale.is_some(),
        ),
        ("selective acknowledgements", client.sack, server.sack),
        ("timestamps", client.timestamps, server.timestamps),
        (
            "maximum segment size",
            client.mss_bytes.is_some(),
            server.mss_bytes.is_some(),
        ),
        ("ECN", client.ecn, server.ecn || !client.ecn),
    ];
    let mut lacking = Vec::new();
    for (option, of_client, of_server) in options {
        let side = match (of_client, of_server) {
            // A server offers only what it was offered.
            (false, _) if option != "ECN" => CaptureSide::Client,
            (true, false) => CaptureSide::Server,
            _ => continue,
        };
        lacking.push(Lacking {
            option: option.to_owned(),
            side,
        });
    }
    lacking
}

/// What one side sent; times count from `began_ns`.
fn half(own: &Half, other: &Half, began_ns: u64) -> HalfResult {
    let seconds = own
        .data_ns
        .map(|[first, last]| (last - first) as f64 / NS_PER_S);
    let seconds = seconds.filter(|seconds| *seconds > 0.0);
    let rate = |bytes: u64| seconds.map(|seconds| bytes as f64 * 8.0 / seconds);
    // Whether the receiver's window is full is unknown without its scale.
    let congestion = own.congestion.as_ref().filter(|_| other.scale.is_some());
    let window = |which: fn([u32; 2]) -> u32| other.windows.map(|w| u64::from(which(w)));
    HalfResult {
        packets: own.packets,
        wire_bytes: own.wire_bytes,
        sent_bytes: own.sent_bytes,
        payload_bytes: own.news,
        throughput_bps: rate(own.wire_bytes),
        goodput_bps: rate(own.news),
        offer: own.offer,
        max_segment_bytes: u64::from(own.largest),
        segments: own.segments.as_deref().copied().unwrap_or_default(),
        dsacks: u64::from(other.dsacks),
        timeouts: u64::from(own.timeouts),
        missed_bytes: own.missed,
        rtt_s: own.by_sequence.distribution(),
        rtt_timestamps_s: own.by_timestamps.distribution(),
        max_in_flight_bytes: u64::from(own.max_in_flight),
        min_window_bytes: window(|[least, _]| least),
        max_window_bytes: window(|[_, most]| most),
        initial_window_bytes: (own.offer.is_some() && own.initial_bytes > 0)
            .then_some(own.initial_bytes),
        congestion: congestion.and_then(|all| all.result(began_ns)),
        ce_packets: own.ce,
        ecn: own.ecn,
        dscps: own.dscps.to_vec(),
        ttls: own.ttls.to_vec(),
    }
}
