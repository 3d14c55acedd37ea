//! When the packets of a stream are due: its pattern as a sequence of departures, by a clock that
//! starts at zero and waits for nothing. Pure; the same seed gives the same departures.

use std::time::Duration;

use plumb_wire::native::control::flow::udp::{Pattern, Times, UdpFlow};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A packet that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Departure {
    /// Nanoseconds since the start.
    pub(crate) due_ns: u64,
    /// UDP payload.
    pub(crate) payload_bytes: u16,
}

/// The departures of a stream, for ever.
#[derive(Debug)]
pub(crate) struct Schedule {
    pattern: Pattern,
    payload_bytes: u16,
    random: Pcg64Mcg,
    /// Departures so far.
    count: u64,
    /// When the next is due, in seconds.
    next_s: f64,
    /// When the time that is on ends, in seconds.
    on_until_s: f64,
}

impl Schedule {
    /// The departures of `flow`; `None` where the host decides when it sends.
    pub(crate) fn of(flow: &UdpFlow) -> Option<Self> {
        if matches!(flow.pattern, Pattern::Max) {
            return None;
        }
        let mut this = Self {
            pattern: flow.pattern.clone(),
            payload_bytes: flow.payload_bytes,
            random: Pcg64Mcg::seed_from_u64(flow.seed),
            count: 0,
            next_s: 0.0,
            on_until_s: 0.0,
        };
        this.first();
        Some(this)
    }

    /// How late a departure may be and still take place: one interval of the schedule, so that
    /// after a pause of the machine at most one packet is sent that was due before.
    pub(crate) fn tolerance(flow: &UdpFlow) -> Duration {
        let pps = match &flow.pattern {
            Pattern::OnOff { pps, .. } => Some(*pps),
            pattern => pattern.mean_pps(),
        };
        Duration::from_secs_f64(
            pps.map_or(0.0, |pps| 1.0 / pps)
                .min(MOST_LATE.as_secs_f64()),
        )
    }

    fn first(&mut self) {
        match self.pattern {
            Pattern::Poisson { pps } => self.next_s = self.exponential() / pps,
            Pattern::OnOff { on_s, times, .. } => self.on_until_s = self.time(on_s, times),
            _ => {}
        }
    }

    /// The departure that is due next.
    pub(crate) fn next(&mut self) -> Departure {
        let due_ns = (self.next_s * 1e9).round() as u64;
        let number = self.count;
        self.count += 1;
        let mut payload_bytes = self.payload_bytes;
        match &self.pattern {
            Pattern::Max => {}
            // From the beginning each time, so that no rounding adds up.
            Pattern::Constant { pps } => self.next_s = self.count as f64 / pps,
            Pattern::Poisson { pps } => {
                let pps = *pps;
                self.next_s += self.exponential() / pps;
            }
            Pattern::OnOff {
                pps,
                on_s,
                off_s,
                times,
            } => {
                let (pps, on_s, off_s, times) = (*pps, *on_s, *off_s, *times);
                self.next_s += 1.0 / pps;
                while self.next_s >= self.on_until_s {
                    self.next_s = self.on_until_s + self.time(off_s, times);
                    self.on_until_s = self.next_s + self.time(on_s, times);
                }
            }
            Pattern::Trace { packets } => {
                let at = |number: u64| {
                    let length = packets.len().max(1) as u64;
                    packets.get((number % length) as usize).copied()
                };
                payload_bytes = at(number).map_or(payload_bytes, |(_, size)| size);
                self.next_s += at(self.count).map_or(f64::INFINITY, |(interval_s, _)| interval_s);
            }
        }
        Departure {
            due_ns,
            payload_bytes,
        }
    }

    fn time(&mut self, mean_s: f64, times: Times) -> f64 {
        match times {
            Times::Fixed => mean_s,
            Times::Exponential => mean_s * self.exponential(),
        }
    }

    /// From the exponential distribution with the mean 1.
    fn exponential(&mut self) -> f64 {
        // 1 − u is never 0.
        -(1.0 - self.random.random::<f64>()).ln()
    }
}

/// The same at low rates: a packet of a slow stream may wait for a busy machine, but not so long
/// that its time tells nothing.
const MOST_LATE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn due(pattern: Pattern, seed: u64, count: usize) -> Vec<Departure> {
        let flow = UdpFlow {
            seed,
            ..UdpFlow::new(100, pattern)
        };
        let mut schedule = Schedule::of(&flow).unwrap();
        (0..count).map(|_| schedule.next()).collect()
    }

    fn times(departures: &[Departure]) -> Vec<u64> {
        departures.iter().map(|d| d.due_ns).collect()
    }

    #[test]
    fn constant_intervals_do_not_drift() {
        let all = due(Pattern::Constant { pps: 44_642.857 }, 0, 1_000_001);
        assert_eq!(times(&all)[..3], [0, 22_400, 44_800]);
        let last_s = 1e6 / 44_642.857;
        assert_eq!(all.last().unwrap().due_ns, (last_s * 1e9f64).round() as u64);
    }

    #[test]
    fn poisson_intervals_are_exponential_and_the_seeds_own() {
        let pattern = || Pattern::Poisson { pps: 1000.0 };
        let all = times(&due(pattern(), 7, 20_000));
        let gaps: Vec<f64> = all.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // The mean of 20,000 has a standard deviation of 1/141; the variance of 1/50.
        assert!((mean - 1.0).abs() < 4.0 / 141.0, "{mean}");
        assert!((variance - 1.0).abs() < 4.0 / 50.0, "{variance}");
        let beyond = gaps.iter().filter(|g| **g > 3.0).count() as f64 / gaps.len() as f64;
        assert!((beyond - (-3.0f64).exp()).abs() < 0.006, "{beyond}");
        assert_eq!(all[..100], times(&due(pattern(), 7, 100)));
        assert_ne!(all[..100], times(&due(pattern(), 8, 100)));
    }

    #[test]
    fn on_and_off_take_turns() {
        let pattern = |times| Pattern::OnOff {
            pps: 100.0,
            on_s: 0.035,
            off_s: 0.1,
            times,
        };
        let ms: Vec<u64> = times(&due(pattern(Times::Fixed), 0, 9))
            .iter()
            .map(|ns| ns / 1_000_000)
            .collect();
        assert_eq!(ms, [0, 10, 20, 30, 135, 145, 155, 165, 270]);
        let all = times(&due(pattern(Times::Exponential), 3, 30_000));
        let seconds = *all.last().unwrap() as f64 / 1e9;
        // 35 of 135 ms on, and the first packet of each time comes at its beginning.
        let pps = 30_000.0 / seconds;
        assert!((25.0..34.0).contains(&pps), "{pps}");
    }

    #[test]
    fn traces_begin_again() {
        let packets = vec![(0.0, 1400), (0.0, 64), (0.02, 500)];
        let all = due(Pattern::Trace { packets }, 0, 7);
        let seen: Vec<_> = all
            .iter()
            .map(|d| (d.due_ns / 1_000_000, d.payload_bytes))
            .collect();
        assert_eq!(
            seen,
            [
                (0, 1400),
                (0, 64),
                (20, 500),
                (20, 1400),
                (20, 64),
                (40, 500),
                (40, 1400)
            ]
        );
    }

    #[test]
    fn a_late_packet_goes_until_the_next_is_due() {
        let tolerance = |pattern| Schedule::tolerance(&UdpFlow::new(100, pattern));
        assert_eq!(
            tolerance(Pattern::Constant { pps: 50_000.0 }),
            Duration::from_micros(20)
        );
        assert_eq!(tolerance(Pattern::Constant { pps: 1.0 }), MOST_LATE);
        assert!(Schedule::of(&UdpFlow::new(100, Pattern::Max)).is_none());
    }

    proptest! {
        #[test]
        fn time_goes_forward(kind in 0..4u8, pps in 1.0..1e6f64, a in 1e-4..1.0f64, b in 1e-4..1.0f64, seed: u64) {
            let pattern = match kind {
                0 => Pattern::Constant { pps },
                1 => Pattern::Poisson { pps },
                2 => Pattern::OnOff { pps, on_s: a, off_s: b, times: Times::Exponential },
                _ => Pattern::Trace { packets: vec![(a, 100), (0.0, 200), (b, 300)] },
            };
            prop_assert!(times(&due(pattern, seed, 500)).is_sorted());
        }
    }
}
