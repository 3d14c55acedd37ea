//! What a train of packets says of the narrowest place that it passed. Packets that are sent faster than
//! a line carries them queue before it and leave it one after the other, so they arrive as far apart
//! as it takes for one of them (Jain and Routhier 1986; Dovrolis et al., Infocom 2001).

use plumb_model::distribution::quantile_of_sorted;

/// A packet of a train that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its number in the train, from 0.
    pub number: u32,
    /// When it left, ns of any clock; `None` where that is not known.
    pub departed_ns: Option<i64>,
    /// When it arrived, ns of any other clock.
    pub arrived_ns: i64,
}

/// A train that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Train {
    pub sent: u32,
    /// Those that came through.
    pub arrivals: Vec<Arrival>,
}

/// How a train arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispersion {
    /// Bits a second of the whole train, or of what is behind its knee.
    pub bps: f64,
    /// Bits a second as the whole of it was sent.
    pub sent_bps: Option<f64>,
    /// From the first arrival, or the knee, to the last arrival, seconds.
    pub span_s: f64,
    /// The longest time without an arrival, seconds.
    pub longest_gap_s: f64,
    /// Most packets arrived at once with others, in few bunches.
    pub bunched: bool,
    /// Packets that were lost, of those sent.
    pub lost: u32,
    /// Bits a second between packets that were sent and arrived next to each other.
    pub pairs_bps: Vec<f64>,
    /// It arrived faster at first.
    pub knee: Option<Knee>,
}

/// Where a train became slower.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    pub packets: u32,
    /// Bits a second before it.
    pub first_bps: f64,
    /// Bits a second after it.
    pub later_bps: f64,
}

/// Fewer packets give no usable rate.
const LEAST_PACKETS: usize = 4;

/// A gap is short below this share of the mean and long above that multiple of it; a train is bunched
/// where half of the gaps are short and long ones take most of its time.
const SHORT_GAP: f64 = 0.25;
const LONG_GAP: f64 = 2.0;
const BUNCHED_GAPS: f64 = 0.5;
const BUNCHED_TIME: f64 = 0.8;

/// A train has a knee where it was this much faster before than after, with so many packets on either
/// side, and about as fast in both halves of what is after it.
const KNEE_RATIO: f64 = 1.5;
const KNEE_PACKETS: usize = 8;
const KNEE_STEADY: f64 = 1.4;
/// Behind the knee packets arrive one by one: the middle gap is at least this share of the mean. Bunches bend a train
/// too, and so do packets that arrive at once after a processor on the path has paused.
const KNEE_EVEN: f64 = 0.6;

/// How a train of packets of that size arrived; `None` where too little of it did, or all at once.
pub fn dispersion(train: &Train, packet_bytes: u32) -> Option<Dispersion> {
    let bits = f64::from(packet_bytes) * 8.0;
    let mut arrivals = train.arrivals.clone();
    arrivals.sort_by_key(|arrival| (arrival.arrived_ns, arrival.number));
    arrivals.dedup_by_key(|arrival| arrival.number);
    if arrivals.len() < LEAST_PACKETS {
        return None;
    }
    let seconds = |from: i64, to: i64| to.saturating_sub(from) as f64 / 1e9;
    let first = arrivals.first()?.arrived_ns;
    let times: Vec<f64> = arrivals
        .iter()
        .map(|a| seconds(first, a.arrived_ns))
        .collect();
    // What came before a knee is another rate's.
    let knee = knee(&times, bits);
    let settled_at = knee.map_or(0, |knee| knee.packets as usize);
    let times = times.get(settled_at..)?;
    let arrivals_after = arrivals.get(settled_at..)?;
    let span_s = times.last()? - times.first()?;
    if span_s <= 0.0 {
        return None;
    }
    let gaps: Vec<f64> = times
        .iter()
        .zip(times.iter().skip(1))
        .map(|(a, b)| b - a)
        .collect();
    let count = gaps.len() as f64;
    let mean = span_s / count;
    let short = gaps.iter().filter(|gap| **gap < SHORT_GAP * mean).count() as f64;
    let in_long: f64 = gaps.iter().filter(|gap| **gap > LONG_GAP * mean).sum();
    let pairs_bps = arrivals_after
        .iter()
        .zip(arrivals_after.iter().skip(1))
        .zip(&gaps)
        .filter(|((a, b), gap)| b.number == a.number.wrapping_add(1) && **gap > 0.0)
        .map(|(_, gap)| bits / gap)
        .collect();
    let departed: Vec<i64> = arrivals.iter().filter_map(|a| a.departed_ns).collect();
    let sending_s = departed
        .iter()
        .min()
        .zip(departed.iter().max())
        .map(|(least, most)| seconds(*least, *most));
    Some(Dispersion {
        bps: bits * count / span_s,
        sent_bps: sending_s
            .filter(|s| *s > 0.0)
            .map(|s| bits * departed.len().saturating_sub(1) as f64 / s),
        span_s,
        longest_gap_s: gaps.iter().fold(0.0, |a, b| b.max(a)),
        bunched: short >= BUNCHED_GAPS * count && in_long >= BUNCHED_TIME * span_s,
        lost: train
            .sent
            .saturating_sub(u32::try_from(arrivals.len()).unwrap_or(u32::MAX)),
        pairs_bps,
        knee,
    })
}

/// Where the times of arrival lie furthest below the straight line from the first to the last.
fn knee(times: &[f64], bits: f64) -> Option<Knee> {
    let last = times.len().checked_sub(1)?;
    let span_s = *times.last()?;
    let below = |at: usize| Some(span_s * at as f64 / last as f64 - times.get(at)?);
    let at = (KNEE_PACKETS..=last.checked_sub(KNEE_PACKETS)?).max_by(|a, b| {
        below(*a)
            .unwrap_or(0.0)
            .total_cmp(&below(*b).unwrap_or(0.0))
    })?;
    let between = |from: usize, to: usize| {
        let taken = times.get(to)? - times.get(from)?;
        Some(bits * (to - from) as f64 / taken.max(1e-9))
    };
    let (first_bps, later_bps) = (between(0, at)?, between(at, last)?);
    let middle = at + (last - at) / 2;
    let halves = between(at, middle)? / between(middle, last)?;
    let steady = (1.0 / KNEE_STEADY..KNEE_STEADY).contains(&halves);
    let after = times.get(at..)?;
    let mut gaps: Vec<f64> = after
        .iter()
        .zip(after.iter().skip(1))
        .map(|(a, b)| b - a)
        .collect();
    gaps.sort_by(f64::total_cmp);
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let even = quantile_of_sorted(&gaps, 0.5)? >= KNEE_EVEN * mean;
    (first_bps >= KNEE_RATIO * later_bps && steady && even).then_some(Knee {
        packets: u32::try_from(at).ok()?,
        first_bps,
        later_bps,
    })
}

/// The commonest of values above zero, and the share of them within `tolerance` of it: the middle of the
/// densest window of that width; `None` where there are none.
pub fn commonest(values: &[f64], tolerance: f64) -> Option<(f64, f64)> {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.retain(|value| value.is_finite() && *value > 0.0);
    sorted.sort_by(f64::total_cmp);
    let width = (1.0 + tolerance) / (1.0 - tolerance);
    let mut best: (usize, usize) = (0, 0);
    let mut to = 0;
    for (from, value) in sorted.iter().enumerate() {
        while sorted.get(to).is_some_and(|other| *other <= value * width) {
            to += 1;
        }
        if to - from > best.1 - best.0 {
            best = (from, to);
        }
    }
    let middle = quantile_of_sorted(sorted.get(best.0..best.1)?, 0.5)?;
    Some((middle, (best.1 - best.0) as f64 / sorted.len() as f64))
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// A train sent 2 µs apart, whose arrivals are so many ns after the one before.
    pub(crate) fn train(gaps_ns: &[i64]) -> Train {
        let mut at = 1_000_000_000;
        let arrivals = (0..)
            .zip(std::iter::once(&0).chain(gaps_ns))
            .map(|(number, gap)| {
                at += gap;
                Arrival {
                    number,
                    departed_ns: Some(i64::from(number) * 2_000),
                    arrived_ns: at,
                }
            })
            .collect::<Vec<_>>();
        Train {
            sent: arrivals.len() as u32,
            arrivals,
        }
    }

    #[test]
    fn a_plain_train_arrives_at_the_rate() {
        let found = dispersion(&train(&[1_200_000; 31]), 1500).unwrap();
        assert!((found.bps / 1e7 - 1.0).abs() < 1e-9);
        assert!((found.sent_bps.unwrap() / 6e9 - 1.0).abs() < 1e-9);
        assert_eq!((found.bunched, found.knee, found.lost), (false, None, 0));
        assert_eq!(found.pairs_bps.len(), 31);
    }

    #[test]
    fn bunches_are_seen() {
        let gaps: Vec<i64> = (0..63)
            .map(|n| if n % 8 == 7 { 9_000_000 } else { 20_000 })
            .collect();
        let found = dispersion(&train(&gaps), 1500).unwrap();
        assert!(found.bunched && found.knee.is_none(), "{found:?}");
    }

    #[test]
    fn a_token_bucket_shows_as_a_knee() {
        let gaps: Vec<i64> = (0..199)
            .map(|n| if n < 99 { 10_000 } else { 2_400_000 })
            .collect();
        let knee = dispersion(&train(&gaps), 1500).unwrap().knee.unwrap();
        assert_eq!(knee.packets, 99);
        assert!((knee.later_bps / 5e6 - 1.0).abs() < 1e-6 && knee.first_bps > 1e9);
    }

    #[test]
    fn the_commonest_value() {
        let mut values = vec![1e7; 30];
        values.extend((1..40).map(|n| f64::from(n) * 1.7e5));
        let (rate, share) = commonest(&values, 0.1).unwrap();
        assert!((rate - 1e7).abs() < 1.0);
        assert!((0.43..0.45).contains(&share), "{share}");
        assert_eq!(commonest(&[f64::NAN, -1.0, 0.0], 0.1), None);
    }

    proptest! {
        #[test]
        fn any_arrivals_are_survived(
            sent: u32,
            packet_bytes: u32,
            arrivals in proptest::collection::vec((0u32..50, any::<Option<i64>>(), any::<i64>()), 0..60),
        ) {
            let arrivals = arrivals
                .into_iter()
                .map(|(number, departed_ns, arrived_ns)| Arrival { number, departed_ns, arrived_ns })
                .collect();
            if let Some(found) = dispersion(&Train { sent, arrivals }, packet_bytes) {
                prop_assert!(found.span_s > 0.0 && found.bps >= 0.0);
            }
        }

        #[test]
        fn any_values_have_a_commonest(values in proptest::collection::vec(any::<f64>(), 0..60)) {
            if let Some((value, share)) = commonest(&values, 0.1) {
                prop_assert!(value > 0.0 && share > 0.0 && share <= 1.0);
            }
        }
    }
}
