//! When the streams of a direction left slow start (RFC 5681, section 3.1). Pure.

use plumb_model::results::{SlowStart, SlowStartEnd};
use plumb_wire::native::control::report::{SenderLog, TcpSample};

/// Growth of a round trip's rate over the best before, and the number of round trips without it,
/// after which a pipe counts as full (BBR, draft-ietf-ccwg-bbr, BBRCheckFullBWReached).
const GROWTH: f64 = 1.25;
const ROUNDS_WITHOUT_GROWTH: u32 = 3;

/// Shortest time whose rate says something: one interval of the samples.
const SHORTEST_ROUND_S: f64 = 0.1;

/// Shortest rest that has a rate of its own.
const REST_NEEDS_S: f64 = 0.5;

/// How the streams began; `reached` returns what had reached the receivers at an instant.
pub(crate) fn slow_start(
    senders: &[SenderLog],
    duration_s: f64,
    reached: impl Fn(f64) -> f64,
) -> Option<SlowStart> {
    let by_threshold: Option<Vec<_>> = senders.iter().map(|log| left(&log.samples)).collect();
    let threshold_s = by_threshold.and_then(|all| all.into_iter().max_by(f64::total_cmp));
    let (end_s, ended_by) = match threshold_s {
        Some(end_s) => (end_s, SlowStartEnd::Ssthresh),
        None => (
            plateau(senders, duration_s, &reached)?,
            SlowStartEnd::RatePlateau,
        ),
    };
    if end_s > duration_s {
        return None;
    }
    let (bytes, rest_s) = (reached(end_s), duration_s - end_s);
    Some(SlowStart {
        duration_s: end_s,
        bytes: bytes as u64,
        ended_by,
        rate_after_bps: (rest_s >= REST_NEEDS_S)
            .then(|| (reached(duration_s) - bytes).max(0.0) * 8.0 / rest_s),
    })
}

/// The first sample at which the threshold had been set and the window had come to it. One that
/// was there from the beginning, from the kernel's memory of the path, counts when it is reached.
fn left(samples: &[TcpSample]) -> Option<f64> {
    let before = samples.first()?.ssthresh_bytes;
    let left = |sample: &&TcpSample| {
        sample.ssthresh_bytes.is_some_and(|threshold| {
            sample.ssthresh_bytes != before || sample.cwnd_bytes >= threshold
        })
    };
    samples.iter().find(left).map(|sample| sample.t_s)
}

/// The end of the round trip after which the rate grew no more.
fn plateau(senders: &[SenderLog], duration_s: f64, reached: &impl Fn(f64) -> f64) -> Option<f64> {
    let round_trips = senders
        .iter()
        .flat_map(|log| &log.samples)
        .map(|sample| sample.srtt_us);
    let round_s = (round_trips.max()? as f64 / 1e6).max(SHORTEST_ROUND_S);
    let (mut best, mut best_s, mut without) = (0.0, 0.0, 0);
    let mut from_s = 0.0;
    while from_s + round_s <= duration_s {
        let to_s = from_s + round_s;
        let carried = reached(to_s) - reached(from_s);
        if carried > best * GROWTH {
            (best, best_s, without) = (carried, to_s, 0);
        } else if best > 0.0 {
            without += 1;
            if without == ROUNDS_WITHOUT_GROWTH {
                return Some(best_s);
            }
        }
        from_s = to_s;
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Samples every 100 ms with the thresholds and windows given, in segments.
    fn sender(values: &[(Option<u64>, u64)]) -> SenderLog {
        SenderLog {
            samples: values
                .iter()
                .zip(0..)
                .map(|((ssthresh_bytes, cwnd_bytes), k)| TcpSample {
                    t_s: f64::from(k) / 10.0,
                    ssthresh_bytes: *ssthresh_bytes,
                    cwnd_bytes: *cwnd_bytes,
                    srtt_us: 20_000,
                    ..TcpSample::default()
                })
                .collect(),
            ..SenderLog::default()
        }
    }

    #[test]
    fn it_ends_when_the_last_stream_has_a_threshold() {
        let senders = [
            sender(&[(None, 10), (Some(40), 40), (Some(40), 41)]),
            sender(&[(None, 10), (None, 40), (Some(80), 80)]),
        ];
        let found = slow_start(&senders, 1.2, |t_s| t_s * 1000.0).unwrap();
        assert_eq!(found.ended_by, SlowStartEnd::Ssthresh);
        assert_eq!((found.duration_s, found.bytes), (0.2, 200));
        assert!((found.rate_after_bps.unwrap() - 8000.0).abs() < 1e-6);
    }

    #[test]
    fn a_threshold_from_before_counts_when_it_is_reached() {
        let values = [(Some(40), 10), (Some(40), 20), (Some(40), 40)];
        let found = slow_start(&[sender(&values)], 0.3, |_| 0.0).unwrap();
        assert_eq!((found.duration_s, found.rate_after_bps), (0.2, None));
    }

    #[test]
    fn without_a_threshold_it_ends_where_the_rate_stops_growing() {
        // Doubles each 100 ms for 500 ms, and stays.
        let rate = |t_s: f64| (2_f64.powf((t_s * 10.0).min(5.0)) * 1000.0).floor();
        let reached = |t_s: f64| {
            let whole = (t_s * 10.0).round() as u32;
            (0..whole).map(|k| rate(f64::from(k) / 10.0)).sum::<f64>()
        };
        let never = sender(&[(None, 10); 20]);
        let found = slow_start(std::slice::from_ref(&never), 2.0, reached).unwrap();
        assert_eq!(found.ended_by, SlowStartEnd::RatePlateau);
        assert!((found.duration_s - 0.6).abs() < 1e-9, "{found:?}");
        // Still doubling when the phase ends, or nothing at all.
        assert_eq!(slow_start(std::slice::from_ref(&never), 0.5, reached), None);
        assert_eq!(slow_start(&[never], 2.0, |_| 0.0), None);
        assert_eq!(slow_start(&[], 2.0, reached), None);
    }
}
