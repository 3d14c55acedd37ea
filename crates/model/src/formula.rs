//! Formulas of the field.

/// Bandwidth-delay product: the bytes in flight that fill a path.
pub fn bandwidth_delay_product(rate_bps: f64, rtt_s: f64) -> f64 {
    rate_bps * rtt_s / 8.0
}

/// Share of a receive buffer that Linux turns into window when nothing is known of the
/// overhead of its packets: half (tcp_adv_win_scale 1, `tcp_win_from_space`).
pub const USABLE_BUFFER_RATIO: f64 = 0.5;

/// Share of a send buffer that is in flight when a program that asks before it writes keeps it
/// full: the kernel wakes it when a third is free (`sk_stream_is_writeable`). Seen: 0.81.
pub const SEND_WINDOW_RATIO: f64 = 0.8;

/// Share of a receive buffer that is announced as window once the kernel knows how full its
/// packets are (`tcp_scaling_ratio`). Seen: 0.66 with packets of 1500 bytes.
pub const RECEIVE_WINDOW_RATIO: f64 = 0.65;

/// The most that one TCP flow can carry with a window over a round trip.
pub fn window_limited_rate(window_bytes: f64, rtt_s: f64) -> f64 {
    if rtt_s > 0.0 {
        window_bytes * 8.0 / rtt_s
    } else {
        f64::INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_examples() {
        // 2.5 Gbit/s over 163.6 ms is 51.125 MB.
        assert!((bandwidth_delay_product(2.5e9, 0.1636) - 51_125_000.0).abs() < 1.0);
        // 64 KiB over 150 ms is 3.495 Mbit/s.
        assert!((window_limited_rate(65_536.0, 0.150) - 3_495_253.0).abs() < 1.0);
    }
}
