//! What remains of a probing: every sample, and the figures of any stretch of it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use plumb_model::distribution::Distribution;
use plumb_model::loss::Losses;
use plumb_model::protocol::Protocol;
use plumb_model::results::ping::{HopLimit, RequestPhases, SizeRoundTrips};
use plumb_model::results::udp::LossPattern;
use plumb_model::results::{PingResult, TimestampSource};
use plumb_model::series::{Series, Unit};
use plumb_net::udp_counters::Drops;

use crate::ping::sample::{FarClock, Phases, Sample};

/// Everything that was seen. Times in seconds count from the start.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeLog {
    /// What the probes were made of.
    pub protocol: Protocol,
    pub address: IpAddr,
    /// What the probes carried to be distinguished from others': ICMP's identifier, or the UDP session.
    pub id: u32,
    /// The probes sent, in order.
    pub samples: Vec<Sample>,
    /// When our own machine refused to send a probe.
    pub refused_s: Vec<f64>,
    /// Answers beyond the first: number of the probe, and the far end's count of it where it counts.
    pub again: Vec<(u32, Option<u32>)>,
    /// What the far end said of its clock.
    pub far_clock: Option<FarClock>,
    /// How many answers our own socket dropped, by when we learnt of it.
    pub drops: Vec<(f64, Drops)>,
    /// When an answer's hop limit differed from the hop limit of the answer before.
    pub hop_limit_changes_s: Vec<f64>,
    /// Answers by what they were, where the protocol has several.
    pub answers: BTreeMap<String, u64>,
    /// ICMP errors that came back, by what they said.
    pub icmp_errors: BTreeMap<String, u64>,
    /// The start, on CLOCK_MONOTONIC.
    pub started_monotonic_ns: u64,
    /// From the start until nothing more was waited for.
    pub duration_s: f64,
    /// What must be known to read the numbers.
    pub notes: Vec<String>,
}

impl ProbeLog {
    /// The probes sent from `from_s` until before `to_s`.
    pub fn window(&self, from_s: f64, to_s: f64) -> impl Iterator<Item = &Sample> {
        self.samples
            .iter()
            .filter(move |sample| (from_s..to_s).contains(&sample.sent_s))
    }

    /// The figures of the probes sent from `from_s` until before `to_s`.
    pub fn result(&self, from_s: f64, to_s: f64) -> PingResult {
        let within = |t: &f64| (from_s..to_s).contains(t);
        let drops = || {
            self.drops
                .iter()
                .filter(|(t, _)| within(t))
                .map(|(_, drops)| drops)
        };
        let samples: Vec<&Sample> = self.window(from_s, to_s).collect();
        let answered: Vec<&Sample> = samples
            .iter()
            .copied()
            .filter(|s| s.rtt.is_some())
            .collect();
        let (sent, received) = (samples.len() as u64, answered.len() as u64);
        let kernel = !answered.is_empty()
            && answered
                .iter()
                .all(|s| s.timestamps == TimestampSource::Kernel);
        PingResult {
            one_way: None,
            protocol: self.protocol,
            address: self.address.to_string(),
            sent,
            received,
            loss_ratio: (sent > 0).then(|| (sent - received) as f64 / sent as f64),
            duplicates: samples.iter().map(|s| u64::from(s.duplicates)).sum(),
            reordered: samples.iter().filter(|s| s.reordered).count() as u64,
            late: samples.iter().filter(|s| s.late).count() as u64,
            losses: losses(&samples),
            hop_limits: hop_limits(&answered),
            hop_limit_changes: self
                .hop_limit_changes_s
                .iter()
                .filter(|t| within(t))
                .count() as u64,
            answers: self.answers.clone(),
            icmp_errors: self.icmp_errors.clone(),
            phases: phases(&answered).map(Box::new),
            sizes: sizes(&samples),
            send_errors: self.refused_s.iter().filter(|t| within(t)).count() as u64,
            dropped_here: drops().map(|drops| drops.full).sum(),
            // The kernel's counters are of all sockets.
            corrupted: (drops().map(|drops| drops.corrupted).sum::<u64>()).min(sent - received),
            rtt_s: Distribution::of(
                answered
                    .iter()
                    .filter_map(|s| s.rtt)
                    .map(|rtt| rtt.as_secs_f64()),
            ),
            lateness_s: Distribution::of(
                samples.iter().map(|s| (s.sent_s - s.scheduled_s).max(0.0)),
            ),
            timestamps: if kernel {
                TimestampSource::Kernel
            } else {
                TimestampSource::User
            },
        }
    }

    /// The round trips of the probes sent from `from_s` until before `to_s`, by when they were
    /// sent, counted from `from_s`. Every sequence number from the first has its point, also
    /// those that our own machine refused.
    pub fn series(&self, from_s: f64, to_s: f64) -> Series {
        let mut series = Series::new(Unit::Seconds);
        let mut next = None;
        for sample in self.window(from_s, to_s) {
            for _ in next.unwrap_or(sample.sequence)..sample.sequence {
                series.push(sample.sent_s - from_s, None);
            }
            next = Some(sample.sequence + 1);
            series.push(
                sample.sent_s - from_s,
                sample.rtt.map(|rtt| rtt.as_secs_f64()),
            );
        }
        series
    }

    /// Answers whose far end claimed times that made no sense, so that its residence is still
    /// in the round trip.
    pub fn residences_ignored(&self) -> u64 {
        self.samples.iter().filter(|s| s.residence_ignored).count() as u64
    }
}

/// How losses follow each other, by the order in which the probes were sent.
fn losses(samples: &[&Sample]) -> LossPattern {
    let mut losses = Losses::default();
    for (number, sample) in (0..).zip(samples) {
        losses.lose(number, sample.rtt.is_none().into());
    }
    losses.pattern()
}

fn hop_limits(answered: &[&Sample]) -> Vec<HopLimit> {
    let mut answers: BTreeMap<u8, u64> = BTreeMap::new();
    for hops in answered.iter().filter_map(|sample| sample.hop_limit) {
        *answers.entry(hops).or_default() += 1;
    }
    answers
        .into_iter()
        .map(|(hop_limit, answers)| HopLimit { hop_limit, answers })
        .collect()
}

/// The parts of the requests; `None` where the probes are none.
fn phases(answered: &[&Sample]) -> Option<RequestPhases> {
    let phases = || answered.iter().filter_map(|sample| sample.phases);
    let seconds = |part: fn(Phases) -> Option<Duration>| {
        Distribution::of(phases().filter_map(part).map(|time| time.as_secs_f64()))
    };
    phases().next().map(|_| RequestPhases {
        connect_s: seconds(|phases| Some(phases.connect)),
        tls_s: seconds(|phases| phases.tls),
        first_byte_s: seconds(|phases| Some(phases.first_byte)),
    })
}

/// The figures of each size; none where all are of one.
fn sizes(samples: &[&Sample]) -> Vec<SizeRoundTrips> {
    let mut by_size: BTreeMap<usize, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        by_size.entry(sample.size_bytes).or_default().push(sample);
    }
    if by_size.len() < 2 {
        return Vec::new();
    }
    let figures = |(size_bytes, samples): (usize, Vec<&Sample>)| SizeRoundTrips {
        size_bytes: size_bytes as u64,
        sent: samples.len() as u64,
        received: samples.iter().filter(|s| s.rtt.is_some()).count() as u64,
        rtt_s: Distribution::of(
            samples
                .iter()
                .filter_map(|s| s.rtt)
                .map(|t| t.as_secs_f64()),
        ),
    };
    by_size.into_iter().map(figures).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use std::net::Ipv4Addr;

    fn sample(sequence: u32, rtt_ms: Option<u64>) -> Sample {
        let scheduled_s = f64::from(sequence) * 0.1;
        Sample {
            sequence,
            scheduled_s,
            sent_s: scheduled_s + 0.001,
            sent_monotonic_ns: 0,
            rtt: rtt_ms.map(Duration::from_millis),
            residence_ignored: false,
            timestamps: if rtt_ms.is_some() {
                TimestampSource::Kernel
            } else {
                TimestampSource::User
            },
            duplicates: 0,
            reordered: false,
            late: false,
            size_bytes: 56 + sequence as usize % 2,
            hop_limit: rtt_ms.map(|ms| if ms < 50 { 64 } else { 63 }),
            exchange: None,
            phases: None,
        }
    }

    fn log() -> ProbeLog {
        let mut samples: Vec<Sample> = [Some(20), None, Some(40), Some(60)]
            .into_iter()
            .zip(0..)
            .map(|(rtt, n)| sample(n, rtt))
            .collect();
        samples[2].duplicates = 2;
        samples[2].reordered = true;
        ProbeLog {
            protocol: Protocol::Udp,
            address: Ipv4Addr::LOCALHOST.into(),
            id: 7,
            samples,
            refused_s: vec![0.05, 0.35],
            again: vec![],
            far_clock: None,
            drops: [(0.25, 3), (9.0, 1)]
                .map(|(at, full)| (at, Drops { full, corrupted: 2 }))
                .to_vec(),
            hop_limit_changes_s: vec![0.31],
            answers: BTreeMap::new(),
            icmp_errors: BTreeMap::new(),
            started_monotonic_ns: 0,
            duration_s: 0.4,
            notes: vec![],
        }
    }

    #[test]
    fn the_figures_of_a_window_are_of_the_probes_sent_in_it() {
        let result = log().result(0.1, 0.301);
        assert_eq!(
            (result.sent, result.received, result.loss_ratio),
            (2, 1, Some(0.5))
        );
        assert_eq!((result.duplicates, result.reordered), (2, 1));
        assert_eq!((result.send_errors, result.dropped_here), (0, 3));
        assert_eq!(result.rtt_s.unwrap().p50, 0.04);
        assert!((result.lateness_s.unwrap().max - 0.001).abs() < 1e-9);
        assert_eq!(
            result.timestamps,
            TimestampSource::Kernel,
            "a lost probe has no stamps to spoil it"
        );
        assert_eq!(result.corrupted, 1, "no more than were lost");
        let whole = log().result(0.0, f64::INFINITY);
        assert_eq!(
            (
                whole.sent,
                whole.received,
                whole.send_errors,
                whole.dropped_here
            ),
            (4, 3, 2, 4)
        );
    }

    #[test]
    fn losses_hop_limits_and_sizes_are_told() {
        let result = log().result(0.0, 1.0);
        assert_eq!((result.losses.periods, result.losses.distance), (1, None));
        assert_eq!(result.losses.period_length.unwrap().mean, 1.0);
        let limits: Vec<_> = result
            .hop_limits
            .iter()
            .map(|h| (h.hop_limit, h.answers))
            .collect();
        assert_eq!(
            (limits, result.hop_limit_changes),
            (vec![(63, 1), (64, 2)], 1)
        );
        let sizes: Vec<_> = result
            .sizes
            .iter()
            .map(|s| (s.size_bytes, s.sent, s.received))
            .collect();
        assert_eq!(sizes, [(56, 2, 2), (57, 2, 1)]);
        let mut alike = log();
        alike.samples.iter_mut().for_each(|s| s.size_bytes = 56);
        assert!(alike.result(0.0, 1.0).sizes.is_empty());
    }

    #[test]
    fn one_user_stamp_makes_the_result_user_stamped() {
        let mut log = log();
        log.samples[0].timestamps = TimestampSource::User;
        assert_eq!(log.result(0.0, 1.0).timestamps, TimestampSource::User);
        assert_eq!(log.result(0.1, 1.0).timestamps, TimestampSource::Kernel);
    }

    #[test]
    fn an_empty_window_has_no_loss_and_no_round_trip() {
        let result = log().result(5.0, 6.0);
        assert_eq!(
            (result.sent, result.loss_ratio, result.rtt_s),
            (0, None, None)
        );
    }

    #[test]
    fn the_series_has_gaps_where_probes_were_lost() {
        let series = log().series(0.1, 0.35);
        assert_eq!(series.values, [None, Some(0.04), Some(0.06)]);
        assert!((series.t_s.first().unwrap() - 0.001).abs() < 1e-9);
    }
}
