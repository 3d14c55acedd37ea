//! How far and how fast the far host's clock goes against ours, from exchanges of packets.
//!
//! Each exchange shows the difference to within half of its round trip, however its two directions share that (RFC
//! 5905, section 8). A constant share does not matter to the skew: for the skew, an exchange is off by at most half of
//! the excess of its round trip over the smallest, which determines its weight.

use std::fmt;

/// Parts of a run of which each gives its best exchange to the skew.
const PARTS: usize = 16;

/// What stamps of kernel and program vary by on an idle host, in seconds: the floor of an exchange's
/// error.
const STAMP_ERROR_S: f64 = 20e-6;

/// What two clocks of crystals drift at most against each other: what NTP holds possible (RFC 5905,
/// appendix A.5.5.6).
const MAX_SKEW: f64 = 500e-6;

/// The far clock against our monotonic one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Far clock less ours at `at_ns`, ns.
    pub offset_ns: i64,
    /// When that was, ns of our clock.
    pub at_ns: i64,
    /// How much faster the far clock runs; zero where that cannot be determined.
    pub skew: f64,
    /// Two standard errors of the skew; `None` where the run is too short to determine it.
    pub skew_error: Option<f64>,
    /// Either way, over the whole run.
    pub uncertainty_s: f64,
}

/// Why there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incomparable {
    /// There was no exchange.
    Silence,
    /// The difference changed by more than clocks drift.
    Stepped,
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silence => "nothing was answered by which the clocks could be compared",
            Self::Stepped => "the clock of one of the hosts was stepped meanwhile",
        })
    }
}

/// The four times of a packet and the one that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When the packet left here, ns of our clock.
    pub departed_ns: i64,
    /// When it came to the far end, ns of the far clock.
    pub received_ns: i64,
    /// When the one that came back left the far end, ns of the far clock.
    pub sent_ns: i64,
    /// When that came here, ns of our clock.
    pub arrived_ns: i64,
}

/// One exchange, seen from a reference.
#[derive(Debug, Clone, Copy)]
struct Point {
    at_s: f64,
    offset_s: f64,
    rtt_s: f64,
}

impl Comparison {
    /// Far clock less ours at a time of ours.
    pub fn offset_at(&self, ns: i64) -> i64 {
        let drift = self.skew * ns.saturating_sub(self.at_ns) as f64;
        self.offset_ns.saturating_add(drift as i64)
    }

    /// Compares the clocks by all exchanges of a run.
    ///
    /// # Errors
    /// When there are none, or the far clock was stepped.
    pub fn of(exchanges: &[Exchange]) -> Result<Self, Incomparable> {
        Self::compare(exchanges, true)
    }

    /// Compares them as if both clocks ran alike, and counts what they may not as uncertain.
    ///
    /// # Errors
    /// When there are no exchanges, or the far clock was stepped.
    pub fn of_equal_clocks(exchanges: &[Exchange]) -> Result<Self, Incomparable> {
        Self::compare(exchanges, false)
    }

    fn compare(exchanges: &[Exchange], may_drift: bool) -> Result<Self, Incomparable> {
        let first = exchanges.first().ok_or(Incomparable::Silence)?;
        let (zero_ns, reference_ns) = (first.departed_ns, offset_ns(first));
        let points: Vec<Point> = exchanges
            .iter()
            .filter_map(|exchange| point(exchange, zero_ns, reference_ns))
            .collect();
        let least = points
            .iter()
            .map(|point| point.rtt_s)
            .min_by(f64::total_cmp)
            .ok_or(Incomparable::Silence)?;
        let (from_s, to_s) = points
            .iter()
            .fold((f64::MAX, f64::MIN), |(from, to), point| {
                (from.min(point.at_s), to.max(point.at_s))
            });
        let best = best_of_parts(&points, from_s, to_s);
        let line = fit(&best, least);
        let skew = line.map_or(0.0, |line| line.slope);
        let error = line.map(|line| 2.0 * line.slope_error);
        // A skew that cannot be distinguished from zero is not taken out, nor is one above `MAX_SKEW`: no clocks
        // drift by more, so queues caused it.
        let told =
            may_drift && skew.abs() <= MAX_SKEW && error.is_some_and(|error| skew.abs() > error);
        let applied = if told { skew } else { 0.0 };
        let middle_s = (from_s + to_s) / 2.0;
        let anchor = points
            .iter()
            .min_by(|a, b| a.rtt_s.total_cmp(&b.rtt_s))
            .ok_or(Incomparable::Silence)?;
        let offset_s = anchor.offset_s + applied * (middle_s - anchor.at_s);
        let explained = |point: &Point| {
            let expected = offset_s + applied * (point.at_s - middle_s);
            let drift = MAX_SKEW * (point.at_s - anchor.at_s).abs();
            (point.offset_s - expected).abs() <= (point.rtt_s + least) / 2.0 + drift + 1e-3
        };
        if skew.abs() > MAX_SKEW + error.unwrap_or(0.0) || !points.iter().all(explained) {
            return Err(Incomparable::Stepped);
        }
        let reach_s = (to_s - anchor.at_s).max(anchor.at_s - from_s);
        let left = match (told, error) {
            (true, Some(error)) => error,
            (false, Some(error)) => error + skew.abs(),
            // Nothing is known of it: what clocks drift at most.
            (_, None) => MAX_SKEW,
        };
        Ok(Self {
            offset_ns: reference_ns.saturating_add((offset_s * 1e9) as i64),
            at_ns: zero_ns.saturating_add((middle_s * 1e9) as i64),
            skew: applied,
            skew_error: error,
            uncertainty_s: least / 2.0 + STAMP_ERROR_S + left * reach_s,
        })
    }
}

/// Far clock less ours by one exchange, in ns.
fn offset_ns(exchange: &Exchange) -> i64 {
    let ours = i128::from(exchange.departed_ns) + i128::from(exchange.arrived_ns);
    let theirs = i128::from(exchange.received_ns) + i128::from(exchange.sent_ns);
    i64::try_from((theirs - ours) / 2).unwrap_or(0)
}

fn point(exchange: &Exchange, zero_ns: i64, reference_ns: i64) -> Option<Point> {
    let there = exchange.arrived_ns.checked_sub(exchange.departed_ns)?;
    let kept = exchange.sent_ns.checked_sub(exchange.received_ns)?;
    let rtt_ns = there.checked_sub(kept)?;
    // A far end that kept the packet for less than no time, or for longer than it was away.
    if kept < 0 || rtt_ns < 0 {
        return None;
    }
    Some(Point {
        at_s: exchange.departed_ns.checked_sub(zero_ns)? as f64 / 1e9,
        offset_s: offset_ns(exchange).checked_sub(reference_ns)? as f64 / 1e9,
        rtt_s: rtt_ns as f64 / 1e9,
    })
}

/// The exchange with the smallest round trip of each part of the run.
fn best_of_parts(points: &[Point], from_s: f64, to_s: f64) -> Vec<Point> {
    let length_s = ((to_s - from_s) / PARTS as f64).max(f64::MIN_POSITIVE);
    let part = |point: &Point| (((point.at_s - from_s) / length_s) as usize).min(PARTS - 1);
    (0..PARTS)
        .filter_map(|number| {
            points
                .iter()
                .filter(|point| part(point) == number)
                .min_by(|a, b| a.rtt_s.total_cmp(&b.rtt_s))
                .copied()
        })
        .collect()
}

#[derive(Debug, Clone, Copy)]
struct Slope {
    slope: f64,
    slope_error: f64,
}

/// The line through the points by weighted least squares; `None` with fewer than five.
fn fit(points: &[Point], least_rtt_s: f64) -> Option<Slope> {
    if points.len() < 5 {
        return None;
    }
    let weight = |point: &Point| {
        let error = (point.rtt_s - least_rtt_s) / 2.0 + STAMP_ERROR_S;
        1.0 / (error * error)
    };
    let sum = |of: &dyn Fn(&Point) -> f64| points.iter().map(|p| weight(p) * of(p)).sum::<f64>();
    let whole = sum(&|_| 1.0);
    let (t, o) = (sum(&|p| p.at_s) / whole, sum(&|p| p.offset_s) / whole);
    let spread = sum(&|p| (p.at_s - t).powi(2));
    if spread <= 0.0 {
        return None;
    }
    let slope = sum(&|p| (p.at_s - t) * (p.offset_s - o)) / spread;
    // The scatter that there is, where it is more than what was thought of.
    let residual = sum(&|p| (p.offset_s - o - slope * (p.at_s - t)).powi(2));
    let scatter = (residual / (points.len() as f64 - 2.0)).max(1.0);
    Some(Slope {
        slope,
        slope_error: (scatter / spread).sqrt(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const NS: f64 = 1e9;

    /// Exchanges a tenth of a second apart over paths of `up_s` and `down_s` and what waits in queues.
    fn run(
        count: u32,
        (up_s, down_s): (f64, f64),
        (offset_s, skew): (f64, f64),
        queue_s: impl Fn(u32) -> (f64, f64),
    ) -> Vec<Exchange> {
        let epoch = 1_700_000_000_000_000_000i64;
        (0..count)
            .map(|n| {
                let departed = f64::from(n) * 0.1;
                let (wait_up, wait_down) = queue_s(n);
                let received = departed + up_s + wait_up;
                let sent = received + 50e-6;
                let far = |t: f64| epoch + ((t + offset_s + skew * t) * NS) as i64;
                Exchange {
                    departed_ns: (departed * NS) as i64,
                    received_ns: far(received),
                    sent_ns: far(sent),
                    arrived_ns: ((sent + down_s + wait_down) * NS) as i64,
                }
            })
            .collect()
    }

    #[test]
    fn a_skew_is_seen_and_taken_out() {
        // 40 ppm over 30 s are 1.2 ms.
        let exchanges = run(300, (0.01, 0.01), (3.0, 40e-6), |n| {
            (f64::from(n % 7) * 1e-3, 0.0)
        });
        let compared = Comparison::of(&exchanges).unwrap();
        assert!((compared.skew - 40e-6).abs() < 5e-6, "{compared:?}");
        let delays: Vec<f64> = exchanges
            .iter()
            .step_by(7)
            .map(|e| {
                (e.received_ns - compared.offset_at(e.departed_ns) - e.departed_ns) as f64 / NS
            })
            .collect();
        assert!(
            delays.iter().all(|delay| (delay - 0.01).abs() < 1e-4),
            "{delays:?}"
        );
        assert!((0.01..0.0115).contains(&compared.uncertainty_s));
    }

    #[test]
    fn more_than_clocks_drift_is_no_skew() {
        // All but one wait 0.8 ms, which makes 550 ppm uncertain by 70.
        let queue = |n: u32| if n == 50 { (0.0, 0.0) } else { (4e-4, 4e-4) };
        let compared = Comparison::of(&run(100, (0.01, 0.01), (0.0, 550e-6), queue)).unwrap();
        assert!(compared.skew == 0.0, "{compared:?}");
        assert!(compared.skew_error.is_some_and(|error| error < 550e-6));
        assert!(compared.uncertainty_s > 0.01 + 550e-6 * 4.9, "{compared:?}");
    }

    #[test]
    fn a_step_is_told() {
        let mut exchanges = run(100, (0.01, 0.01), (0.0, 0.0), |_| (0.0, 0.0));
        for exchange in exchanges.iter_mut().skip(60) {
            exchange.received_ns += 200_000_000;
            exchange.sent_ns += 200_000_000;
        }
        assert_eq!(Comparison::of(&exchanges), Err(Incomparable::Stepped));
        assert_eq!(Comparison::of(&[]), Err(Incomparable::Silence));
    }

    proptest! {
        #[test]
        fn the_truth_lies_within_the_uncertainty(
            count in 1u32..200, up_ms in 0.05f64..80.0, down_ms in 0.05f64..80.0,
            offset_s in -100.0f64..100.0, skew in -100e-6f64..100e-6, queue_ms in 0.0f64..30.0,
        ) {
            let queue = |n: u32| {
                // Some of it, differently on both ways.
                let part = |k: u32| f64::from(n.wrapping_mul(k) % 11) / 10.0 * queue_ms / 1e3;
                (part(7), part(3))
            };
            let exchanges = run(count, (up_ms / 1e3, down_ms / 1e3), (offset_s, skew), queue);
            let compared = Comparison::of(&exchanges).unwrap();
            for exchange in &exchanges {
                let t = exchange.departed_ns as f64 / NS;
                let truth = 1_700_000_000_000_000_000i64 + ((offset_s + skew * t) * NS) as i64;
                let off_s = (compared.offset_at(exchange.departed_ns) - truth) as f64 / NS;
                prop_assert!(off_s.abs() <= compared.uncertainty_s, "{off_s} {compared:?}");
            }
        }

        #[test]
        fn no_times_of_the_far_end_do_harm(times in proptest::collection::vec(any::<[i64; 4]>(), 0..20)) {
            let exchanges: Vec<Exchange> = times
                .into_iter()
                .map(|[departed_ns, received_ns, sent_ns, arrived_ns]| Exchange {
                    departed_ns: departed_ns >> 2,
                    received_ns,
                    sent_ns,
                    arrived_ns: arrived_ns >> 2,
                })
                .collect();
            if let Ok(compared) = Comparison::of(&exchanges) {
                let _ = compared.offset_at(i64::MAX);
            }
        }
    }
}
