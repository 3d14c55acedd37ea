//! Decides, interval after interval, when the path carries all that it can, how densely it is
//! probed then, and when its responsiveness is known: the algorithm of
//! draft-ietf-ippm-responsiveness, section "Final Algorithm". Pure: time comes with what is seen.
//!
//! 1. A connection more is loaded at each interval ([`super::flows`]).
//! 2. Until the goodput is stable: its moving average is looked at.
//! 3. From then on probes go out, and the responsiveness of the last four intervals is looked at,
//!    until it is stable too.

use std::time::Duration;

use plumb_load::phase_controller::{Conduct, Conductor, Looked, Probe, Seen};
use plumb_model::distribution::Distribution;
use plumb_model::results::responsiveness::{RpmConfidence, RpmProbes, RpmTimes};
use plumb_model::series::{Series, Unit};

use super::formula::{DISTANCE, Rpm, is_stable, spread, trimmed_mean};

/// Most probes a second of each kind together (MPS).
const MOST_PROBES_PER_S: f64 = 100.0;

/// Share of the capacity that probes may take (PTC).
const PROBES_SHARE: f64 = 0.05;

/// What the draft reckons for a probe on a connection of its own, and for one on a loaded one.
const PAIR_BYTES: f64 = 5000.0 + 1000.0;

/// The state of a measurement in one direction.
#[derive(Debug)]
pub struct Controller {
    carried: fn(&Looked) -> u64,
    interval: Duration,
    /// Where the interval that runs began.
    mark: (f64, u64),
    intervals: usize,
    goodputs: Vec<f64>,
    averages: Vec<f64>,
    goodput_stable_at_s: Option<f64>,
    probes: Vec<Probe>,
    outcomes: RpmProbes,
    rpms: Vec<f64>,
    times: Option<Times>,
    is_over: bool,
    broken_connections: u64,
    series: Over,
}

/// Values at the end of each interval.
#[derive(Debug)]
struct Over {
    goodput: Series,
    rpm: Series,
}

/// The times of the probes that counted at the last look.
type Times = RpmTimes<Vec<f64>>;

/// What a measurement came to.
#[derive(Debug)]
pub struct Found {
    /// Round trips a minute, by kind of probe; nothing where a loaded connection broke.
    pub rpm: Rpm,
    /// How far they can be trusted.
    pub confidence: RpmConfidence,
    /// What that rests on: how far the last four values lay apart, as a share of the latest.
    pub spread_ratio: Option<f64>,
    /// The moving average at the end.
    pub goodput_bps: Option<f64>,
    /// How far that can be trusted.
    pub goodput_confidence: RpmConfidence,
    /// When it had become stable.
    pub goodput_stable_after_s: Option<f64>,
    pub trimmed_mean_s: RpmTimes<Option<f64>>,
    /// All times that counted.
    pub times_s: RpmTimes<Option<Distribution>>,
    /// What became of all probes.
    pub probes: RpmProbes,
    /// Loaded connections that broke.
    pub broken_connections: u64,
    /// `goodput` and `rpm` at the end of each interval.
    pub series: [(&'static str, Series); 2],
}

impl Controller {
    /// Begins a measurement; `carried` says what of a look the load is.
    pub fn new(interval: Duration, carried: fn(&Looked) -> u64) -> Self {
        Self {
            carried,
            interval,
            mark: (0.0, 0),
            intervals: 0,
            goodputs: Vec::new(),
            averages: Vec::new(),
            goodput_stable_at_s: None,
            probes: Vec::new(),
            outcomes: RpmProbes::default(),
            rpms: Vec::new(),
            times: None,
            is_over: false,
            broken_connections: 0,
            series: Over {
                goodput: Series::new(Unit::BitsPerSecond),
                rpm: Series::new(Unit::Count),
            },
        }
    }

    /// What it came to.
    pub fn finish(self) -> Found {
        let confidence = |looks: usize, stable: bool| match (looks, stable) {
            (_, true) => RpmConfidence::High,
            (looks, false) if looks >= DISTANCE => RpmConfidence::Medium,
            (_, false) => RpmConfidence::Low,
        };
        let times = self.times.unwrap_or_default();
        let trimmed = trimmed_means(&times);
        // "If at any point one of these connections terminates with an error, the test should be
        // aborted": the load was not what it was to be.
        let rpm = match self.broken_connections {
            0 => Rpm::of(&trimmed),
            _ => Rpm::default(),
        };
        let all = |times: &Vec<f64>| Distribution::of(times.iter().copied());
        Found {
            rpm,
            confidence: confidence(self.rpms.len(), is_stable(&self.rpms)),
            spread_ratio: spread(&self.rpms),
            goodput_bps: self.averages.last().copied(),
            goodput_confidence: confidence(self.averages.len(), self.goodput_stable_at_s.is_some()),
            goodput_stable_after_s: self.goodput_stable_at_s,
            trimmed_mean_s: trimmed,
            times_s: RpmTimes {
                connect: all(&times.connect),
                tls_handshake: all(&times.tls_handshake),
                first_answer: all(&times.first_answer),
                in_band: all(&times.in_band),
            },
            probes: self.outcomes,
            broken_connections: self.broken_connections,
            series: [("goodput", self.series.goodput), ("rpm", self.series.rpm)],
        }
    }

    fn note(&mut self, seen: &mut Seen) {
        let probes = &mut seen.probes;
        for probe in &probes.answered {
            match probe {
                Probe::Foreign { .. } => self.outcomes.foreign += 1,
                Probe::InBand { .. } => self.outcomes.in_band += 1,
            }
        }
        self.probes.append(&mut probes.answered);
        self.outcomes.failed += probes.failed;
        self.outcomes.left_out += probes.left_out;
        self.outcomes.unanswered = probes.under_way;
        self.outcomes.error = probes.error.take().or(self.outcomes.error.take());
        self.broken_connections = probes.broken_connections;
    }

    /// An interval is over: `bytes` came in `seconds`.
    fn end_interval(&mut self, t_s: f64, bytes: u64, seconds: f64) {
        self.goodputs.push(bytes as f64 * 8.0 / seconds);
        let last = self.goodputs.len().saturating_sub(DISTANCE);
        let window = self.goodputs.get(last..).unwrap_or_default();
        let average = window.iter().sum::<f64>() / window.len().max(1) as f64;
        self.averages.push(average);
        self.series.goodput.push(t_s, Some(average));
        if self.goodput_stable_at_s.is_none() {
            if is_stable(&self.averages) {
                self.goodput_stable_at_s = Some(t_s);
            }
            return;
        }
        let since = t_s - DISTANCE as f64 * self.interval.as_secs_f64();
        self.probes.retain(|probe| at(probe).as_secs_f64() >= since);
        let times = times(&self.probes);
        let rpm = Rpm::of(&trimmed_means(&times)).both();
        self.times = Some(times);
        self.series.rpm.push(t_s, rpm);
        self.rpms.extend(rpm);
        self.is_over = is_stable(&self.rpms);
    }

    /// As many as the draft allows, of the goodput that there is.
    fn pairs_per_s(&self) -> f64 {
        if self.goodput_stable_at_s.is_none() {
            return 0.0;
        }
        let goodput = self.averages.last().copied().unwrap_or(0.0);
        let share = goodput / 8.0 * PROBES_SHARE / PAIR_BYTES;
        share.min(MOST_PROBES_PER_S / 2.0)
    }
}

impl Conductor for Controller {
    fn look(&mut self, mut seen: Seen) -> Conduct {
        self.note(&mut seen);
        let end = self.interval.as_secs_f64() * (self.intervals + 1) as f64;
        let (t_s, carried) = (seen.looked.t_s, (self.carried)(&seen.looked));
        if t_s >= end {
            let (since, before) = self.mark;
            self.mark = (t_s, carried);
            // A sampler that was held up may have missed whole intervals.
            self.intervals = (t_s / self.interval.as_secs_f64()) as usize;
            self.end_interval(t_s, carried.saturating_sub(before), t_s - since);
        }
        if self.is_over || self.broken_connections > 0 {
            return Conduct::End;
        }
        Conduct::Probe {
            pairs_per_s: self.pairs_per_s(),
        }
    }
}

fn at(probe: &Probe) -> Duration {
    match probe {
        Probe::Foreign { at, .. } | Probe::InBand { at, .. } => *at,
    }
}

fn times(probes: &[Probe]) -> Times {
    let mut times = Times::default();
    for probe in probes {
        match probe {
            Probe::Foreign {
                connect,
                handshake,
                response,
                ..
            } => {
                times.connect.push(connect.as_secs_f64());
                times
                    .tls_handshake
                    .extend(handshake.map(|h| h.as_secs_f64()));
                times.first_answer.push(response.as_secs_f64());
            }
            Probe::InBand { response, .. } => times.in_band.push(response.as_secs_f64()),
        }
    }
    times
}

fn trimmed_means(times: &Times) -> RpmTimes<Option<f64>> {
    let of = |times: &Vec<f64>| trimmed_mean(times.iter().copied());
    RpmTimes {
        connect: of(&times.connect),
        tls_handshake: of(&times.tls_handshake),
        first_answer: of(&times.first_answer),
        in_band: of(&times.in_band),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_load::phase_controller::Probes;

    /// A path in virtual time: its goodput and its round trip are functions of time.
    struct Path {
        goodput_bps: fn(f64) -> f64,
        rtt_s: fn(f64) -> f64,
    }

    /// Runs the controller on it for at most so long, a look every 50 ms and a sample every 100 ms.
    fn run(path: &Path, longest_s: f64) -> (Found, f64) {
        let mut controller = Controller::new(Duration::from_secs(1), |l| l.received_bytes);
        let (mut carried, mut pairs, mut owed) = (0.0, 0.0, 0.0);
        let mut coming: Vec<(f64, Probe)> = Vec::new();
        let mut looked = Looked::default();
        for tick in 1.. {
            let t_s = f64::from(tick) * 0.05;
            if t_s > longest_s {
                return (controller.finish(), longest_s);
            }
            carried += (path.goodput_bps)(t_s) / 8.0 * 0.05;
            if tick % 2 == 0 {
                looked = Looked {
                    t_s,
                    received_bytes: carried as u64,
                    acked_bytes: 0,
                };
            }
            owed += pairs * 0.05;
            while owed >= 1.0 {
                owed -= 1.0;
                let rtt_s = (path.rtt_s)(t_s);
                let rtt = Duration::from_secs_f64(rtt_s);
                let after = |round_trips: f64| {
                    let t_s = t_s + round_trips * rtt_s;
                    (t_s, Duration::from_secs_f64(t_s))
                };
                let (foreign_s, at) = after(3.0);
                let foreign = Probe::Foreign {
                    at,
                    connect: rtt,
                    handshake: Some(rtt),
                    response: rtt,
                };
                coming.push((foreign_s, foreign));
                let (in_band_s, at) = after(1.0);
                coming.push((in_band_s, Probe::InBand { at, response: rtt }));
            }
            let (come, yet): (Vec<_>, _) = coming.into_iter().partition(|(at, _)| *at <= t_s);
            coming = yet;
            let seen = Seen {
                elapsed: Duration::from_secs_f64(t_s),
                looked,
                probes: Probes {
                    answered: come.into_iter().map(|(_, probe)| probe).collect(),
                    under_way: coming.len() as u64,
                    ..Probes::default()
                },
            };
            match controller.look(seen) {
                Conduct::End => return (controller.finish(), t_s),
                Conduct::Probe { pairs_per_s } => pairs = pairs_per_s,
            }
        }
        unreachable!("the loop has no end")
    }

    #[test]
    fn a_path_at_rest_is_known_when_it_has_been_looked_at_four_times_twice() {
        let path = Path {
            goodput_bps: |_| 20e6,
            rtt_s: |_| 0.030,
        };
        let (found, after_s) = run(&path, 20.0);
        assert_eq!((found.goodput_stable_after_s, after_s), (Some(4.0), 8.0));
        assert_eq!(found.confidence, RpmConfidence::High);
        assert_eq!(found.goodput_confidence, RpmConfidence::High);
        assert!((found.goodput_bps.unwrap() - 20e6).abs() < 1e5);
        // 60 s of 30 ms.
        assert!((found.rpm.both().unwrap() - 2000.0).abs() < 1.0);
        // A twentieth of 20 Mbit/s in pairs of 6,000 bytes is 20.8 a second.
        assert!(
            (80..=84).contains(&found.probes.in_band),
            "{:?}",
            found.probes
        );
    }

    #[test]
    fn nothing_is_probed_before_the_goodput_is_stable() {
        let path = Path {
            goodput_bps: |t| 1e6 * t,
            rtt_s: |_| 0.030,
        };
        // A line that grows for ever is within 5 % of itself after a while; not in 8 s.
        let (found, _) = run(&path, 8.0);
        assert_eq!(found.goodput_stable_after_s, None);
        assert_eq!(found.goodput_confidence, RpmConfidence::Medium);
        assert_eq!(found.confidence, RpmConfidence::Low);
        assert_eq!((found.rpm.both(), found.probes.in_band), (None, 0));
    }

    #[test]
    fn a_queue_that_fills_is_waited_for() {
        // 700 ms that fill in ten seconds.
        let path = Path {
            goodput_bps: |_| 20e6,
            rtt_s: |t| 0.020 + 0.07 * t.min(10.0),
        };
        let (found, after_s) = run(&path, 20.0);
        assert_eq!(found.confidence, RpmConfidence::High);
        assert!((11.0..=16.0).contains(&after_s), "{after_s}");
        // Of 720 ms; some of the last four seconds were better.
        let rpm = found.rpm.both().unwrap();
        assert!((83.0..92.0).contains(&rpm), "{rpm}");
    }

    #[test]
    fn what_never_becomes_stable_is_told_with_medium_confidence() {
        let path = Path {
            goodput_bps: |_| 20e6,
            // Bad from the seventh second on, which the last four have not all seen.
            rtt_s: |t| if t < 7.0 { 0.02 } else { 0.2 },
        };
        let (found, after_s) = run(&path, 9.5);
        assert_eq!((found.confidence, after_s), (RpmConfidence::Medium, 9.5));
        assert!(found.spread_ratio.unwrap() > 0.05, "{found:?}");
        assert!(found.rpm.both().is_some());
    }

    #[test]
    fn probes_never_take_more_than_their_share() {
        let mut controller = Controller::new(Duration::from_secs(1), |l| l.received_bytes);
        controller.goodput_stable_at_s = Some(4.0);
        for (goodput_bps, pairs_per_s) in [(1e6, 25.0 / 24.0), (20e6, 500.0 / 24.0), (1e9, 50.0)] {
            controller.averages.push(goodput_bps);
            assert!((controller.pairs_per_s() - pairs_per_s).abs() < 1e-9);
        }
    }

    #[test]
    fn a_loaded_connection_that_breaks_ends_it_without_a_number() {
        let mut controller = Controller::new(Duration::from_secs(1), |l| l.received_bytes);
        let seen = Seen {
            elapsed: Duration::from_secs(1),
            looked: Looked::default(),
            probes: Probes {
                broken_connections: 1,
                ..Probes::default()
            },
        };
        assert_eq!(controller.look(seen), Conduct::End);
        assert_eq!(controller.finish().rpm, Rpm::default());
    }
}
