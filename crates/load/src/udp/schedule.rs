//! When the packets of a stream are due: its pattern as a sequence of departures, by a clock that
//! starts at zero and waits for nothing. Pure; the same seed gives the same departures.
//!
//! The pattern comes from a far end. So each call takes a bounded number of steps whatever it says:
//! departures that passed are counted without being walked through.

use std::time::Duration;

use plumb_wire::native::control::flow::udp::{Pattern, Times, UdpFlow};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A packet that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departure {
    /// Nanoseconds since the start; [`u64::MAX`] means never.
    pub due_ns: u64,
    pub payload_bytes: u16,
}

/// The departures of a stream, for ever.
#[derive(Debug)]
pub struct Schedule {
    departures: Departures,
    payload_bytes: u16,
    /// Packets that leave together, when the first of them is due.
    train: u64,
}

#[derive(Debug)]
enum Departures {
    Regular {
        pattern: Regular,
        /// Number of the next.
        next: u64,
    },
    Drawn(Drawn),
}

impl Schedule {
    /// The departures of `flow`; `None` where the host decides when it sends.
    pub fn of(flow: &UdpFlow) -> Option<Self> {
        let departures = match &flow.pattern {
            Pattern::Max => return None,
            Pattern::Poisson { pps } => {
                Departures::Drawn(Drawn::new(Process::Poisson { pps: *pps }, flow.seed))
            }
            Pattern::OnOff {
                pps,
                on_s,
                off_s,
                times: Times::Exponential,
            } => {
                let process = Process::OnOff {
                    pps: *pps,
                    on_s: *on_s,
                    off_s: *off_s,
                };
                Departures::Drawn(Drawn::new(process, flow.seed))
            }
            Pattern::Constant { pps } => Departures::Regular {
                pattern: Regular::Constant { pps: *pps },
                next: 0,
            },
            Pattern::OnOff {
                pps, on_s, off_s, ..
            } => Departures::Regular {
                pattern: Regular::on_off(*pps, *on_s, *off_s),
                next: 0,
            },
            Pattern::Trace { packets } => Departures::Regular {
                pattern: Regular::trace(packets),
                next: 0,
            },
        };
        Some(Self {
            departures,
            payload_bytes: flow.payload_bytes,
            train: u64::from(flow.gso.unwrap_or(1)).max(1),
        })
    }

    /// How late a departure may be and still take place: one interval of the schedule, so that
    /// after a pause of the machine at most one packet is sent that was due before.
    pub(crate) fn tolerance(flow: &UdpFlow) -> Duration {
        let pps = match &flow.pattern {
            Pattern::OnOff { pps, .. } => Some(*pps),
            pattern => pattern.mean_pps(),
        };
        let interval_s = pps.map_or(0.0, |pps| 1.0 / pps);
        Duration::from_secs_f64(interval_s.clamp(LEAST_LATE.as_secs_f64(), MOST_LATE.as_secs_f64()))
    }

    /// The departure that is due next: of a train, the departure of its first packet.
    pub fn departure(&mut self) -> Departure {
        match &mut self.departures {
            Departures::Regular { pattern, next } => {
                let departure = Departure {
                    due_ns: pattern.due_ns(*next),
                    payload_bytes: pattern.payload_bytes(*next).unwrap_or(self.payload_bytes),
                };
                *next = next.saturating_add(self.train);
                departure
            }
            Departures::Drawn(drawn) => {
                let due_ns = nanoseconds(drawn.next_s);
                drawn.pass_train(self.train);
                Departure {
                    due_ns,
                    payload_bytes: self.payload_bytes,
                }
            }
        }
    }

    /// Passes over the trains that are due before `until_ns`, and returns how many packets they have.
    /// Of drawn departures beyond the first `MOST_WALKED` trains it is their mean number.
    pub fn skip(&mut self, until_ns: u64) -> u64 {
        match &mut self.departures {
            Departures::Regular { pattern, next } => {
                let first_left = pattern.first_from(*next, until_ns);
                let trains = (first_left - *next).div_ceil(self.train);
                let packets = trains.saturating_mul(self.train);
                *next = next.saturating_add(packets);
                packets
            }
            Departures::Drawn(drawn) => drawn.skip(until_ns, self.train),
        }
    }
}

/// Departures whose times follow from their number.
#[derive(Debug)]
enum Regular {
    Constant {
        pps: f64,
    },
    OnOff {
        pps: f64,
        /// Departures of each time that is on; at least one.
        on_packets: u64,
        cycle_s: f64,
    },
    Trace {
        /// Seconds since the first departure of the list, and UDP payload.
        packets: Vec<(f64, u16)>,
        cycle_s: f64,
    },
}

impl Regular {
    fn on_off(pps: f64, on_s: f64, off_s: f64) -> Self {
        let mut on_packets = ((on_s * pps).ceil() as u64).max(1);
        // The product may be rounded up: the last one must be due while it is on.
        if on_packets > 1 && (on_packets - 1) as f64 / pps >= on_s {
            on_packets -= 1;
        }
        Self::OnOff {
            pps,
            on_packets,
            cycle_s: on_s + off_s,
        }
    }

    /// The interval before the first departure is that between the last and the first.
    fn trace(packets: &[(f64, u16)]) -> Self {
        let mut at_s = 0.0;
        let offset = |(number, (interval_s, payload_bytes)): (usize, &(f64, u16))| {
            at_s += if number == 0 { 0.0 } else { *interval_s };
            (at_s, *payload_bytes)
        };
        let offsets: Vec<_> = packets.iter().enumerate().map(offset).collect();
        Self::Trace {
            packets: offsets,
            cycle_s: at_s
                + packets
                    .first()
                    .map_or(f64::INFINITY, |(first_s, _)| *first_s),
        }
    }

    /// From the beginning each time, so that no rounding adds up.
    fn due_ns(&self, number: u64) -> u64 {
        if number == u64::MAX {
            return u64::MAX;
        }
        nanoseconds(match self {
            Self::Constant { pps } => number as f64 / pps,
            Self::OnOff {
                pps,
                on_packets,
                cycle_s,
            } => in_cycle(number, *on_packets, *cycle_s, |place| place as f64 / pps),
            Self::Trace { packets, cycle_s } => {
                let offset_s = |place: u64| {
                    let packet = packets.get(usize::try_from(place).unwrap_or(usize::MAX));
                    packet.map_or(f64::INFINITY, |(offset_s, _)| *offset_s)
                };
                in_cycle(number, packets.len() as u64, *cycle_s, offset_s)
            }
        })
    }

    fn payload_bytes(&self, number: u64) -> Option<u16> {
        let Self::Trace { packets, .. } = self else {
            return None;
        };
        let place = number % (packets.len() as u64).max(1);
        packets
            .get(usize::try_from(place).ok()?)
            .map(|(_, payload_bytes)| *payload_bytes)
    }

    /// The number of the first departure from `next` on that is not due before `until_ns`: found by
    /// doubling the distance and halving it again, in at most 128 steps.
    fn first_from(&self, next: u64, until_ns: u64) -> u64 {
        let is_left = |number: u64| self.due_ns(number) >= until_ns;
        if is_left(next) {
            return next;
        }
        let (mut passed, mut distance) = (next, 1_u64);
        let mut left = next.saturating_add(distance);
        while !is_left(left) {
            passed = left;
            distance = distance.saturating_mul(2);
            left = next.saturating_add(distance);
        }
        while left - passed > 1 {
            let middle = passed + (left - passed) / 2;
            if is_left(middle) {
                left = middle;
            } else {
                passed = middle;
            }
        }
        left
    }
}

/// When a departure is due of which each cycle has `length`.
fn in_cycle(number: u64, length: u64, cycle_s: f64, offset_s: impl Fn(u64) -> f64) -> f64 {
    let length = length.max(1);
    match number / length {
        // Also where a cycle is endless.
        0 => offset_s(number),
        cycles => cycles as f64 * cycle_s + offset_s(number % length),
    }
}

/// What departures are drawn from.
#[derive(Debug, Clone, Copy)]
enum Process {
    Poisson { pps: f64 },
    OnOff { pps: f64, on_s: f64, off_s: f64 },
}

/// Departures that are drawn one after the other.
#[derive(Debug)]
struct Drawn {
    process: Process,
    random: Pcg64Mcg,
    /// When the next is due.
    next_s: f64,
    /// When the time that is on ends.
    on_until_s: f64,
}

/// Trains that are passed over one by one, as exact as the seed has them.
const MOST_WALKED: u64 = 64;

impl Drawn {
    fn new(process: Process, seed: u64) -> Self {
        let mut this = Self {
            process,
            random: Pcg64Mcg::seed_from_u64(seed),
            next_s: 0.0,
            on_until_s: 0.0,
        };
        this.begin(0.0);
        this
    }

    /// Continues from `at_s` as from a beginning, which a process without memory may do at any time.
    fn begin(&mut self, at_s: f64) {
        self.next_s = at_s;
        match self.process {
            Process::Poisson { pps } => self.next_s += (self.exponential() / pps).max(0.0),
            Process::OnOff { on_s, .. } => self.on_until_s = at_s + on_s * self.exponential(),
        }
    }

    fn pass(&mut self) {
        match self.process {
            Process::Poisson { pps } => self.next_s += self.exponential() / pps,
            Process::OnOff { pps, on_s, off_s } => {
                self.next_s += 1.0 / pps;
                if self.next_s >= self.on_until_s {
                    // A time that is on begins with a departure, however short it is.
                    self.next_s = self.on_until_s + off_s * self.exponential();
                    self.on_until_s = self.next_s + on_s * self.exponential();
                }
            }
        }
    }

    fn pass_train(&mut self, train: u64) {
        for _ in 0..train {
            self.pass();
        }
    }

    fn skip(&mut self, until_ns: u64, train: u64) -> u64 {
        let mut packets = 0_u64;
        for _ in 0..MOST_WALKED {
            if nanoseconds(self.next_s) >= until_ns {
                return packets;
            }
            self.pass_train(train);
            packets += train;
        }
        let gap_s = until_ns as f64 / 1e9 - self.next_s;
        if nanoseconds(self.next_s) < until_ns {
            let trains = (gap_s * self.mean_pps() / train as f64).round() as u64;
            packets = packets.saturating_add(trains.saturating_mul(train));
            self.begin(until_ns as f64 / 1e9);
        }
        packets
    }

    fn mean_pps(&self) -> f64 {
        match self.process {
            Process::Poisson { pps } => pps,
            Process::OnOff { pps, on_s, off_s } => {
                // One at the beginning, and one after each interval that a time which is on outlasts.
                let of_a_time = 1.0 / -(-1.0 / (pps * on_s)).exp_m1();
                of_a_time / (on_s + off_s)
            }
        }
    }

    /// From the exponential distribution with the mean 1.
    fn exponential(&mut self) -> f64 {
        // 1 − u is never 0.
        -(1.0 - self.random.random::<f64>()).ln()
    }
}

/// What is beyond all clocks, or no time at all, is due never.
fn nanoseconds(seconds: f64) -> u64 {
    if seconds.is_nan() {
        u64::MAX
    } else {
        (seconds * 1e9).round() as u64
    }
}

/// The same at high rates: about what one system call takes, below which no schedule can be kept.
const LEAST_LATE: Duration = Duration::from_micros(1);

/// The same at low rates: a packet of a slow stream may wait for a busy machine, but not so long that its time means
/// nothing.
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
        (0..count).map(|_| schedule.departure()).collect()
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

    fn schedule(pattern: Pattern, gso: Option<u16>) -> Schedule {
        let flow = UdpFlow {
            gso,
            ..UdpFlow::new(100, pattern)
        };
        Schedule::of(&flow).unwrap()
    }

    #[test]
    fn what_passed_is_counted_at_once_however_much_it_is() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let on_off = |on_s, off_s, times| Pattern::OnOff {
            pps: 1e9,
            on_s,
            off_s,
            times,
        };
        for (pattern, least) in [
            (Pattern::Constant { pps: 1e9 }, 3_600_000_000_000),
            (Pattern::Poisson { pps: 1e9 }, 3_500_000_000_000),
            (
                Pattern::Trace {
                    packets: vec![(1e-9, 100); 8192],
                },
                3_599_999_000_000,
            ),
            // As short as can be, and what no client may ask for.
            (on_off(1e-6, 1e-6, Times::Fixed), 1_800_000_000_000),
            (on_off(1e-6, 1e-6, Times::Exponential), 1_700_000_000_000),
            (on_off(1e-300, 1e300, Times::Fixed), 1),
            (on_off(1e-300, 1e300, Times::Exponential), 1),
            (on_off(1e-300, 1e-300, Times::Exponential), 1),
        ] {
            let begun = std::time::Instant::now();
            let mut schedule = schedule(pattern.clone(), None);
            let passed = schedule.skip(HOUR_NS);
            assert!(passed >= least, "{passed} of {pattern:?}");
            assert!(schedule.departure().due_ns >= HOUR_NS, "{pattern:?}");
            // Walking through them takes hours.
            assert!(begun.elapsed() < Duration::from_secs(20), "{pattern:?}");
        }
    }

    #[test]
    fn drawn_departures_that_are_passed_over_have_the_same_mean() {
        for pattern in [
            Pattern::Poisson { pps: 1e5 },
            Pattern::OnOff {
                pps: 1e6,
                on_s: 1e-4,
                off_s: 9e-4,
                times: Times::Exponential,
            },
        ] {
            let passed = schedule(pattern.clone(), None).skip(1_000_000_000);
            // A hundred thousand, in a thousand times that are on: three standard deviations.
            assert!(
                (85_000..115_000).contains(&passed),
                "{passed} of {pattern:?}"
            );
        }
    }

    /// Any number that a float can be, the odd ones often.
    fn any_number() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>(),
            prop_oneof![
                Just(0.0),
                Just(-0.0),
                Just(f64::NAN),
                Just(f64::INFINITY),
                Just(f64::MIN_POSITIVE),
                Just(5e-324),
                Just(1e-300),
                Just(1e300),
                Just(f64::MAX),
                Just(1e9),
                Just(1e-9),
            ],
            1e-9..1e9f64,
        ]
    }

    fn any_pattern() -> impl Strategy<Value = Pattern> {
        let number = any_number;
        let times = prop_oneof![Just(Times::Fixed), Just(Times::Exponential)];
        prop_oneof![
            number().prop_map(|pps| Pattern::Constant { pps }),
            number().prop_map(|pps| Pattern::Poisson { pps }),
            (number(), number(), number(), times).prop_map(|(pps, on_s, off_s, times)| {
                Pattern::OnOff {
                    pps,
                    on_s,
                    off_s,
                    times,
                }
            }),
            proptest::collection::vec((number(), 32..1500u16), 0..20)
                .prop_map(|packets| Pattern::Trace { packets }),
        ]
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

        /// What is passed over is what would have been due one by one.
        #[test]
        fn skipping_is_walking(
            kind in 0..4u8, pps in 1.0..1e5f64, a in 1e-4..0.1f64, b in 1e-4..0.1f64,
            until_ns in 0..50_000_000u64, gso in 1..8u16,
        ) {
            let pattern = match kind {
                0 => Pattern::Constant { pps },
                1 => Pattern::Poisson { pps: pps.min(1000.0) },
                2 => Pattern::OnOff { pps, on_s: a, off_s: b, times: Times::Fixed },
                _ => Pattern::Trace { packets: vec![(a, 100), (0.0, 200), (b, 300)] },
            };
            let gso = (kind < 3 && gso > 1).then_some(gso);
            let (mut skipping, mut walking) = (schedule(pattern.clone(), gso), schedule(pattern, gso));
            let passed = skipping.skip(until_ns);
            let mut walked = 0;
            let first = loop {
                let departure = walking.departure();
                if departure.due_ns >= until_ns {
                    break departure;
                }
                walked += u64::from(gso.unwrap_or(1));
            };
            prop_assert_eq!((passed, skipping.departure()), (walked, first));
        }

        /// No pattern makes a sender's loop that outlives its session: each round of it passes over what
        /// is gone and takes one departure, and time passes meanwhile.
        #[test]
        fn any_pattern_keeps_up_with_the_clock(pattern in any_pattern(), seed: u64) {
            const LASTS_NS: u64 = 600_000_000_000;
            let flow = UdpFlow { seed, ..UdpFlow::new(100, pattern) };
            let mut schedule = Schedule::of(&flow).unwrap();
            let (mut now_ns, mut rounds) = (0, 0);
            while now_ns < LASTS_NS {
                schedule.skip(now_ns);
                let due_ns = schedule.departure().due_ns;
                prop_assert!(due_ns >= now_ns);
                // A second goes by in each round.
                now_ns = due_ns.max(now_ns + 1_000_000_000);
                rounds += 1;
            }
            prop_assert!(rounds <= 601);
        }
    }
}
