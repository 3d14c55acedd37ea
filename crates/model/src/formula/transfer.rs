//! How long a transfer takes, slow start included.

use super::bandwidth_delay_product;

/// Segments that a connection begins with (RFC 6928).
pub const INITIAL_WINDOW_SEGMENTS: f64 = 10.0;

/// A transfer of so many bytes over an empty path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer {
    /// Payload to transfer, in bytes.
    pub bytes: f64,
    /// Payload rate that the path carries, in bit/s.
    pub rate_bps: f64,
    /// Round-trip time in seconds.
    pub rtt_s: f64,
    /// Payload of a segment.
    pub mss_bytes: f64,
    /// The largest window, where one is smaller than the path.
    pub window_bytes: Option<f64>,
}

/// What a transfer takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransferTime {
    /// From the first SYN until the last byte has arrived, in seconds.
    pub time_s: f64,
    /// Round trips in which the window doubled and did not yet fill the path.
    pub slow_start_rounds: u32,
    /// Bytes that were sent in them.
    pub slow_start_bytes: f64,
    /// Rate over the whole time, in bit/s.
    pub average_bps: f64,
}

/// Time of a transfer without loss: one round trip to connect, windows that double each round trip
/// from ten segments, then the rate of the path or of the window, and half a round trip for the last
/// byte to arrive. The receiver's acknowledgements and programs take no time of their own.
pub fn transfer_time(transfer: Transfer) -> TransferTime {
    let Transfer {
        bytes,
        rate_bps,
        rtt_s,
        mss_bytes,
        window_bytes,
    } = transfer;
    let full = bandwidth_delay_product(rate_bps, rtt_s);
    // What is in flight in the end, and the rate that it makes.
    let target = window_bytes.map_or(full, |window| window.min(full));
    let steady_bps = if full > 0.0 {
        rate_bps * target / full
    } else {
        rate_bps
    };
    let mut window = INITIAL_WINDOW_SEGMENTS * mss_bytes;
    let (mut sent, mut rounds) = (0.0, 0);
    // A window that reaches the target keeps the path busy, and the rest goes at its rate. The last
    // window of a transfer need not wait for its acknowledgements.
    while window < target && sent + window < bytes {
        sent += window;
        window *= 2.0;
        rounds += 1;
    }
    let rest = (bytes - sent).max(0.0);
    let rest_s = if window < target {
        // It fits into the window, and leaves at the rate of the line.
        rest * 8.0 / rate_bps
    } else {
        rest * 8.0 / steady_bps
    };
    let time_s = rtt_s + f64::from(rounds) * rtt_s + rest_s + rtt_s / 2.0;
    TransferTime {
        time_s,
        slow_start_rounds: rounds,
        slow_start_bytes: sent,
        average_bps: bytes * 8.0 / time_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn transfer(bytes: f64) -> Transfer {
        Transfer {
            bytes,
            rate_bps: 1e9,
            rtt_s: 0.1,
            mss_bytes: 1448.0,
            window_bytes: None,
        }
    }

    #[test]
    fn doubling_until_the_path_is_full() {
        // 10, 20, … segments of 1448: after ten round trips 14.8 MB are above the 12.5 MB of the path.
        let long = transfer_time(transfer(1e9));
        assert_eq!(long.slow_start_rounds, 10);
        assert_eq!(long.slow_start_bytes, 1023.0 * 14_480.0);
        let expected = 0.1 + 1.0 + (1e9 - 14_813_040.0) * 8e-9 + 0.05;
        assert!((long.time_s - expected).abs() < 1e-9, "{long:?}");
        // A small one is over with the first window.
        let small = transfer_time(transfer(10_000.0));
        assert_eq!(small.slow_start_rounds, 0);
        assert!((small.time_s - 0.15008).abs() < 1e-9, "{small:?}");
    }

    #[test]
    fn a_small_window_sets_the_rate() {
        let held = transfer_time(Transfer {
            window_bytes: Some(65_535.0),
            rtt_s: 0.150,
            ..transfer(10e6)
        });
        assert!(
            held.average_bps < 3.5e6 && held.average_bps > 3.2e6,
            "{held:?}"
        );
    }

    proptest! {
        #[test]
        fn never_faster_than_the_line_and_longer_with_more(
            bytes in 1.0..1e12f64, rate in 1e4..1e11f64, ms in 0.01..1000.0f64,
        ) {
            let of = |bytes| transfer_time(Transfer {
                bytes, rate_bps: rate, rtt_s: ms / 1e3, mss_bytes: 1448.0, window_bytes: None,
            });
            let time = of(bytes);
            prop_assert!(time.average_bps <= rate);
            prop_assert!(of(bytes * 1.5).time_s >= time.time_s - 1e-9, "{:?}", time);
        }
    }
}
