//! Limits that are no line: policers of all packets, of each flow and of UDP, and a box that takes so many packets a second.

use plumb_model::finding::{Cause, Finding};

use super::draft::{Draft, Link, Order};
use super::measured::{Directed, Measured, RATES_BPS};
use super::write;

/// Which share of a policer's rate several streams of CUBIC carried, and what its bucket held then, as a share of the
/// bandwidth-delay product. Means of what labs showed with four streams, at 10 Mbit/s over 24 ms and 20 Mbit/s over 60 ms; the two
/// differ by up to 0.16 of the rate.
const FILLED: [(f64, f64); 7] = [
    (0.0, 0.02),
    (0.44, 0.1),
    (0.69, 0.2),
    (0.84, 0.3),
    (0.925, 0.4),
    (0.973, 0.6),
    (1.0, 1.0),
];

/// One stream alone needs so many times as much for the same share (0.50 at 0.4, 0.91 at 0.8).
const ALONE_TIMES: f64 = 2.0;

/// No bucket that lets packets pass holds less than this many of them.
const BURST_PACKETS: f64 = 2.0;

/// Rings of routers and firewalls that are limited by packets hold so many (certified trials draw 4 to 16).
const RING_PACKETS: u32 = 8;

/// What the lab's box of a packet rate takes, in packets a second.
const PACKET_RATES: [f64; 2] = [1.0, 1e6];

pub(super) fn put(measured: &Measured<'_>, draft: &mut Draft) {
    let rtt_s = measured.idle.rtt_s.p50;
    for directed in measured.directions() {
        let several = match directed.streams {
            1 => ALONE_TIMES,
            _ => 1.0,
        };
        if measured
            .finding_of(Cause::Policer, directed.direction)
            .is_some()
        {
            let (bps, ip_ratio) = directed
                .above
                .map_or((directed.most_bps, directed.ip_ratio), |above| {
                    (above.bps, above.ip_ratio)
                });
            let limit = Limit {
                ip_bps: bps * ip_ratio,
                held: several * filled(directed.ip_bps(directed.payload_bps) / (bps * ip_ratio)),
                settings: "",
                why: "Datagrams above this rate were dropped at once.",
            };
            limit.put(directed, rtt_s, draft);
        }
        let second = |cause: Cause| {
            let found = measured.finding_of(cause, directed.direction)?;
            let value = found.evidence.get(1)?.value.number()?;
            (value.is_finite() && value > 0.0).then_some(value)
        };
        let ip_ratio = directed
            .above
            .map_or(directed.ip_ratio, |above| above.ip_ratio);
        if let Some(bps) = second(Cause::PerFlowLimit) {
            let one_bps = directed.ip_bps(directed.payload_bps / directed.streams as f64);
            let limit = Limit {
                ip_bps: bps * ip_ratio,
                held: ALONE_TIMES * filled(one_bps / (bps * ip_ratio)),
                settings: ", name = \"flow-limit\", per = \"flow\"",
                why: "One flow had no more than that.",
            };
            limit.put(directed, rtt_s, draft);
        }
        if let Some(bps) = second(Cause::UdpLimited) {
            let limit = Limit {
                ip_bps: bps * ip_ratio,
                held: UDP_HELD,
                settings: ", name = \"udp-limit\", match = \"udp\"",
                why: "Datagrams had no more than that, and TCP had.",
            };
            limit.put(directed, rtt_s, draft);
        }
        if let Some(found) = measured.finding_of(Cause::PacketRateLimited, directed.direction) {
            packet_rate(directed, found, draft);
        }
    }
}

/// What the bucket of a policer of UDP holds, as a share of the bandwidth-delay product. No TCP shows it, so it is
/// taken as if TCP filled its rate to nine tenths.
const UDP_HELD: f64 = 0.4;

/// What a bucket held of the bandwidth-delay product, by the share of its rate that was carried.
fn filled(share: f64) -> f64 {
    let pairs = FILLED.iter().zip(FILLED.iter().skip(1));
    let mut between =
        pairs
            .filter(|(_, (to, _))| share <= *to)
            .map(|((from, less), (to, more))| {
                less + (more - less) * ((share - from) / (to - from)).max(0.0)
            });
    let most = FILLED.last().map_or(1.0, |(_, most)| *most);
    between.next().unwrap_or(most)
}

/// A policer and what it follows from.
struct Limit {
    ip_bps: f64,
    /// What its bucket holds, as a share of the bandwidth-delay product.
    held: f64,
    settings: &'static str,
    why: &'static str,
}

impl Limit {
    fn put(&self, directed: &Directed<'_>, rtt_s: f64, draft: &mut Draft) {
        let [least, most] = RATES_BPS;
        let ip_bps = self.ip_bps.clamp(least, most);
        let burst_bytes = ip_bps * rtt_s * self.held / 8.0;
        let burst_bytes =
            burst_bytes.clamp(BURST_PACKETS * directed.packet_bytes, MOST_BURST_BYTES);
        let burst = write::bytes(burst_bytes);
        let toml = format!(
            "{{ type = \"policer\"{}, rate = \"{}\", burst = \"{burst}\" }}",
            self.settings,
            write::rate(ip_bps),
        );
        draft.put(Link::Line, directed.direction, Order::Limit, toml, self.why);
        draft.unknown(format!(
            "how much the policer's bucket of {}loads holds: {burst} here, by the share of its rate that TCP carried",
            directed.direction.name(),
        ));
    }
}

/// The most that a lab's bucket holds, in bytes (`plumb explain cells`).
const MOST_BURST_BYTES: f64 = 1e9;

fn packet_rate(directed: &Directed<'_>, found: &Finding, draft: &mut Draft) {
    let pps = found.evidence.get(1).and_then(|pps| pps.value.number());
    let [least, most] = PACKET_RATES;
    let Some(pps) = pps.filter(|pps| (least..=most).contains(pps)) else {
        draft.unknown("how many packets a second the box takes that is limited by them");
        return;
    };
    let toml = format!(
        "{{ type = \"packet_rate\", per_second = {pps:.0}, queue = {{ type = \"fifo\", limit = \"{RING_PACKETS}p\" }} }}"
    );
    let why = "So many packets a second passed, however small.";
    draft.put(Link::Line, directed.direction, Order::Limit, toml, why);
    draft.unknown(format!(
        "how many packets wait at the box that is limited by them: {RING_PACKETS} here"
    ));
}
