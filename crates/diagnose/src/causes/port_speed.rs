//! A transfer carries exactly what a common speed of network ports carries.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{capital, si};

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::fact;

/// Speeds of Ethernet ports, in bit/s (IEEE 802.3).
const SPEEDS: [f64; 6] = [10e6, 100e6, 1e9, 2.5e9, 5e9, 10e9];

/// What a full packet takes on Ethernet, with preamble, headers, checksum and the gap between frames, in bytes.
const FRAME_BYTES: f64 = 1538.0;

/// What TCP carries in such a frame, in bytes: over IPv4 and IPv6, with timestamps and without.
const SEGMENTS: [u64; 4] = [1460, 1448, 1440, 1428];

/// A full port carries at least and at most this share of that: acknowledgements of the other direction, and when the ends look.
const RATIO: (f64, f64) = (0.985, 1.004);

/// The slow seconds of a full port carry this share of its fast ones.
const STEADY_RATIO: f64 = 0.97;

/// A shaper may be set to the same rate.
const CONFIDENCE: f64 = 0.7;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "with a faster port or cable in its place the transfer carries more",
    needs: &[Need::Upload, Need::Download],
    resembles: &[(
        Cause::LinkSlow,
        "there the slow port is this machine's own, and its driver says so",
    )],
    yields_to: &[Cause::LinkSlow],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        directions.filter_map(|d| examine(case, d)).collect()
    },
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let carried = case.full_load(direction)?;
    let rate = carried.seconds_bps()?;
    let segment = carried.result.tcp.mss_bytes;
    if !SEGMENTS.contains(&segment) || rate.p5 < STEADY_RATIO * rate.p95 {
        return None;
    }
    let carries = |speed: f64| speed * segment as f64 / FRAME_BYTES;
    let is_full = |speed: &f64| {
        let ratio = carried.bps() / carries(*speed);
        (RATIO.0..=RATIO.1).contains(&ratio)
    };
    let speed = SPEEDS.into_iter().find(is_full)?;
    let place = Place::line(direction);
    Some(Finding {
        cause: Cause::PortSpeed,
        place,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{}loads carry {}, which is all that an Ethernet port of {} carries: a plan of that rate is fulfilled, and with a faster one a port or cable on the path is the limit.",
            capital(direction.name()),
            si(carried.bps(), "bit/s"),
            si(speed, "bit/s"),
        ),
        evidence: vec![fact(
            carried.measurement,
            "steady_bps",
            carried.bps(),
            "steady rate, within 1.5 % of what TCP carries over such a port",
            carries(speed),
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Where the plan is faster, look at the speed of each port on the path (`plumb host`, the router's and the switch's page): a cable of four wires and an old switch make 100 Mbit/s of 1 Gbit/s.",
            "The transfer carries more than this.",
        )],
        kb: "throughput".to_owned(),
    })
}
