//! Whether a load fills a network port of a common speed.

use crate::evidence::Carried;

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

/// What TCP carries over a port of that speed, in bit/s.
pub(crate) fn port_carries_bps(carried: Carried<'_>, speed: f64) -> f64 {
    speed * carried.result.tcp.mss_bytes as f64 / FRAME_BYTES
}

/// The speed of the port that a load filled all the time, in bit/s.
pub(crate) fn full_port_bps(carried: Carried<'_>) -> Option<f64> {
    let rate = carried.seconds_bps()?;
    let segment = carried.result.tcp.mss_bytes;
    if !SEGMENTS.contains(&segment) || rate.p5 < STEADY_RATIO * rate.p95 {
        return None;
    }
    let is_full = |speed: &f64| {
        let ratio = carried.bps() / port_carries_bps(carried, *speed);
        (RATIO.0..=RATIO.1).contains(&ratio)
    };
    SPEEDS.into_iter().find(is_full)
}
