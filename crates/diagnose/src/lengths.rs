//! How long a load phase must last before it can carry a claim, by what happens in it.

use plumb_model::results::{RAMP_S, ramp_s};

/// Shorter than this, a phase is slow start alone: round trips beside it are not even shown, in seconds.
pub const LATENCY_S: f64 = RAMP_S;

/// Seconds after which a rate is steady, and a queue is not slow start's, over that round trip: slow start's time, and
/// as much again.
pub fn steady_s(rtt_s: f64) -> f64 {
    2.0 * ramp_s(rtt_s)
}

/// Shorter than this, a phase has not shown a large queue, in seconds: CUBIC with HyStart takes ten
/// to fill 700 ms of 20 Mbit/s (0.4 segments/s³, RFC 9438, section 5).
pub const QUEUE_S: f64 = 14.0;

/// What a window begins with, in bytes: half of a receive buffer of 128 KiB (`net.ipv4.tcp_rmem`).
const FIRST_WINDOW_BYTES: f64 = 65_536.0;

/// Round trips after which a path that passes any payload has passed some: the handshakes of TCP and
/// TLS, and four retransmissions with doubled timeouts.
const OPENING_ROUND_TRIPS: f64 = 40.0;

/// Seconds in which a buffer has grown to so many bytes, over that round trip: before that, a full one
/// is one that is growing. Congestion window and buffer double once a round trip, one after the other.
pub fn buffers_s(rtt_s: f64, grown_bytes: f64) -> f64 {
    let doublings = (grown_bytes / FIRST_WINDOW_BYTES).max(1.0).log2();
    steady_s(rtt_s).max(RAMP_S + 2.0 * doublings * rtt_s)
}

/// Seconds after which a direction that carried nothing carries nothing. The first timeout of a
/// connection is 1 s and the next 2 s (RFC 6298).
pub fn nothing_s(rtt_s: f64) -> f64 {
    3.0_f64.max(OPENING_ROUND_TRIPS * rtt_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_with_the_round_trips() {
        assert_eq!(buffers_s(0.020, 4e6), 4.0);
        // Six doublings of 64 KiB, twice, at 150 ms, after the first two seconds are less.
        assert!((buffers_s(0.15, 4_194_304.0) - 4.0).abs() < 1e-9);
        // Twelve of 600 ms for slow start, and as much again.
        assert!((buffers_s(0.6, 4_194_304.0) - 14.4).abs() < 1e-9);
        assert_eq!(buffers_s(0.0, 0.0), 4.0);
        assert_eq!(nothing_s(0.02), 3.0);
        assert_eq!(nothing_s(0.6), 24.0);
    }
}
