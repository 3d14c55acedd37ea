//! Windows and buffers: what must be in flight, and what a window carries.

/// Bandwidth-delay product: the bytes in flight that fill a path.
pub fn bandwidth_delay_product(rate_bps: f64, rtt_s: f64) -> f64 {
    rate_bps * rtt_s / 8.0
}

/// Share of a send buffer that is in flight when a program that asks before it writes keeps it
/// full: the kernel wakes it when a third is free (`sk_stream_is_writeable`). Seen: 0.81.
pub const SEND_WINDOW_RATIO: f64 = 0.8;

/// Share of a receive buffer that is announced as window once the kernel knows how full its
/// packets are (`tcp_scaling_ratio`). Seen: 0.66 with packets of 1500 bytes.
pub const RECEIVE_WINDOW_RATIO: f64 = 0.65;

/// Both shares in words. Whatever says how large a buffer is to be, or what one carries, says this beside it.
pub const WINDOW_OF_A_BUFFER: &str =
    "about 0.8 of a send buffer and 0.65 of a receive buffer are window";

/// The most that one TCP flow can carry with a window over a round trip.
pub fn window_limited_rate(window_bytes: f64, rtt_s: f64) -> f64 {
    if rtt_s > 0.0 {
        window_bytes * 8.0 / rtt_s
    } else {
        f64::INFINITY
    }
}

/// No kernel takes a larger buffer: 31 bits.
const LARGEST_BUFFER_BYTES: u64 = (1 << 31) - 1;

/// The least buffer that is worth proposing: what stock Linux lets a send buffer grow to.
const SMALLEST_BUFFER_BYTES: u64 = 4 << 20;

/// Largest buffer to allow at either end for so many bytes in flight: the next power of two above what a receiver needs,
/// of whose buffer less is window ([`RECEIVE_WINDOW_RATIO`]), between 4 MiB and what kernels take.
pub fn buffer_for(in_flight_bytes: f64) -> u64 {
    ((in_flight_bytes / RECEIVE_WINDOW_RATIO).ceil() as u64)
        .clamp(SMALLEST_BUFFER_BYTES, LARGEST_BUFFER_BYTES)
        .next_power_of_two()
        .min(LARGEST_BUFFER_BYTES)
}

/// The largest window without scaling: the field has 16 bits (RFC 9293).
const UNSCALED_WINDOW_BYTES: u64 = 65_535;

/// The largest window scale (RFC 7323, section 2.3).
const LARGEST_SCALE: u32 = 14;

/// The largest window that a window scale of 0…14 can announce; none beyond that.
pub fn largest_scaled_window(scale: u32) -> Option<u64> {
    (scale <= LARGEST_SCALE).then(|| UNSCALED_WINDOW_BYTES << scale)
}

/// The largest window that TCP can announce, in bytes.
pub fn largest_window() -> f64 {
    (UNSCALED_WINDOW_BYTES << LARGEST_SCALE) as f64
}

/// The smallest window scale that can announce a window of so many bytes; none when not even 14 can.
pub fn window_scale_for(window_bytes: f64) -> Option<u32> {
    (0..=LARGEST_SCALE)
        .find(|scale| largest_scaled_window(*scale).is_some_and(|w| w as f64 >= window_bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn published_examples() {
        // 2.5 Gbit/s over 163.6 ms is 51.125 MB.
        assert!((bandwidth_delay_product(2.5e9, 0.1636) - 51_125_000.0).abs() < 1.0);
        // 64 KiB over 150 ms is 3.495 Mbit/s.
        assert!((window_limited_rate(65_536.0, 0.150) - 3_495_253.0).abs() < 1.0);
        // The same to Darwin, 228.1 ms.
        assert!((bandwidth_delay_product(2.5e9, 0.2281) - 71_281_250.0).abs() < 1.0);
        // 10 Gbit/s over 50 ms: the article's "about 60 MiB" is 59.6.
        assert!((bandwidth_delay_product(10e9, 0.050) / f64::from(1 << 20) - 59.6).abs() < 0.01);
        // PERT guides: 8192 bytes over 100 ms. Their 0.62 Mbit/s is 0.655.
        assert!((window_limited_rate(8192.0, 0.1) - 655_360.0).abs() < 1.0);
        // 64 MiB of receive buffer carry 7 Gbit/s over 50 ms, not 10: 0.65 of them are window.
        let window = f64::from(64 << 20) * RECEIVE_WINDOW_RATIO;
        assert!((window_limited_rate(window, 0.050) / 1e9 - 6.98).abs() < 0.01);
    }

    #[test]
    fn buffers_for_paths() {
        assert_eq!(buffer_for(62_500_000.0), 128 << 20);
        assert_eq!(buffer_for(18_750_000.0), 32 << 20);
        assert_eq!(buffer_for(1000.0), 4 << 20);
        assert_eq!(buffer_for(1e15), (1 << 31) - 1);
    }

    #[test]
    fn window_scales() {
        // The training's table, in which 64 KB means 65535 bytes.
        for (scale, about) in [
            (0, 64 << 10),
            (3, 512 << 10),
            (8, 16 << 20),
            (11, 128 << 20),
            (14, 1 << 30),
        ] {
            let window = largest_scaled_window(scale).unwrap();
            assert_eq!(window, about - (1 << scale), "{scale}");
            assert_eq!(window_scale_for(window as f64), Some(scale));
        }
        assert_eq!(largest_scaled_window(15), None);
        assert_eq!(window_scale_for(2e9), None);
        assert_eq!(window_scale_for(largest_window()), Some(14));
        // What the capture of the training shows: 11 x 4096.
        assert_eq!(11_u64 << 12, 45_056);
    }
}
