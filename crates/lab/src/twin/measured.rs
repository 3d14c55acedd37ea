//! What a Run says about a path, as plain numbers: the only reader of results here. The error for a number that the twin
//! needs and that is missing names it, and what measures it.

use plumb_model::context::{Experiment, Phase};
use plumb_model::direction::OneDirection;
use plumb_model::distribution::Distribution;
use plumb_model::finding::{Cause, Finding, Place};
use plumb_model::protocol::Protocol;
use plumb_model::results::{Direction, PathPlace, ramp_end_s};
use plumb_model::run::{HostFacts, Measurement, Run};
use plumb_model::series::Series;
use plumb_model::units::si;

use super::made::TwinError;

/// The rates that scenarios which come with plumb have, in bit/s: from a modem of the telephone line to an ocean's fibre.
pub(super) const RATES_BPS: [f64; 2] = [8e3, 10e9];

/// No path has a longer round trip, in seconds: packets live for less (RFC 791: 255 s, and hops take off a second each).
const LONGEST_RTT_S: f64 = 60.0;

/// Headers of IPv4 and TCP in bytes, and of the timestamp option with its padding (RFC 9293, RFC 7323).
const TCP_HEADERS_BYTES: f64 = 40.0;
const TIMESTAMP_BYTES: f64 = 12.0;
/// Headers of IPv4 and UDP, in bytes.
const UDP_HEADERS_BYTES: f64 = 28.0;

/// The segment of a path of 1500 bytes, for senders that do not report theirs.
const USUAL_SEGMENT_BYTES: u64 = 1448;

/// From this share of its time on a sender was held by a window or a buffer rather than by the path.
const HELD_RATIO: f64 = 0.5;

/// What a Run measured of a path.
pub(super) struct Measured<'a> {
    pub(super) run: &'a Run,
    pub(super) idle: Idle<'a>,
    pub(super) up: Directed<'a>,
    pub(super) down: Directed<'a>,
}

/// Probes of the path before any load.
pub(super) struct Idle<'a> {
    pub(super) rtt_s: Distribution,
    pub(super) sent: u64,
    pub(super) lost: u64,
    /// Packets lost one after the other, in the mean.
    pub(super) burst_packets: Option<f64>,
    pub(super) duplicates_ratio: f64,
    pub(super) reordered_ratio: f64,
    pub(super) corrupted_ratio: f64,
    pub(super) series: Option<&'a Series>,
}

/// One direction of the path, loaded alone.
pub(super) struct Directed<'a> {
    pub(super) direction: OneDirection,
    /// Payload that TCP carried, in bit/s.
    pub(super) payload_bps: f64,
    /// The most payload that anything carried in that direction, in bit/s.
    pub(super) most_bps: f64,
    pub(super) streams: u64,
    /// The congestion control of its streams.
    pub(super) cc: &'a str,
    /// How long the direction was loaded, in seconds.
    pub(super) duration_s: f64,
    /// Share of the segments that TCP sent again.
    pub(super) again_ratio: f64,
    /// Bytes of IP for each byte of payload in a full segment.
    pub(super) ip_ratio: f64,
    /// Bytes of IP in a full segment.
    pub(super) packet_bytes: f64,
    /// Whether windows or buffers of the hosts held TCP back most of the time.
    pub(super) held_by_window: bool,
    /// How long TCP's own packets waited at most, in seconds.
    pub(super) own_wait_s: Option<f64>,
    pub(super) loaded: Option<Loaded>,
    /// Datagrams below the rate that TCP reached, and above it.
    pub(super) below: Option<Datagrams>,
    pub(super) above: Option<Datagrams>,
    /// Payload of TCP over time after slow start: seconds and bit/s.
    pub(super) rates: Vec<(f64, f64)>,
}

/// Probes beside the load.
#[derive(Clone, Copy)]
pub(super) struct Loaded {
    pub(super) rtt_s: Distribution,
    /// How much longer round trips were than on the idle path.
    pub(super) increase_s: Distribution,
    /// How much of that was on the way to the gateway, in seconds, at the 95th percentile.
    pub(super) local_s: Option<f64>,
}

/// A stream of datagrams of an experiment.
#[derive(Clone, Copy)]
pub(super) struct Datagrams {
    /// Payload that arrived, in bit/s.
    pub(super) bps: f64,
    pub(super) sent: u64,
    pub(super) loss_ratio: f64,
    /// Packets lost one after the other, in the mean.
    pub(super) burst_packets: Option<f64>,
    /// How much later than the fastest they came, in seconds.
    pub(super) late_s: Option<Distribution>,
    /// How long one takes at the rate at which they arrived, in seconds.
    pub(super) packet_s: f64,
    /// Bytes of IP for each byte of payload.
    pub(super) ip_ratio: f64,
}

impl<'a> Measured<'a> {
    pub(super) fn of(run: &'a Run) -> Result<Self, TwinError> {
        let mut lacks = Vec::new();
        let too_little = |lacks| TwinError::TooLittle {
            lacks,
            far_end: far_end(run),
        };
        let idle = idle(run);
        if idle.is_none() {
            lacks.push("round trips of the idle path".to_owned());
        }
        let up = directed(run, OneDirection::Up);
        if up.is_none() {
            lacks.push("what uploads carry".to_owned());
        }
        let down = directed(run, OneDirection::Down);
        if down.is_none() {
            lacks.push("what downloads carry".to_owned());
        }
        let (Some(idle), Some(up), Some(down)) = (idle, up, down) else {
            return Err(too_little(lacks));
        };
        for directed in [&up, &down] {
            let [least, most] = RATES_BPS;
            if directed.most_bps <= 0.0 {
                lacks.push(format!(
                    "what {}loads carry (nothing arrived)",
                    directed.direction.name()
                ));
            } else if !(least..=most).contains(&directed.most_bps) {
                return Err(TwinError::Beyond(format!(
                    "{}loads carry {:e} bit/s, and a lab's lines carry {} to {}",
                    directed.direction.name(),
                    directed.most_bps,
                    si(least, "bit/s"),
                    si(most, "bit/s"),
                )));
            }
        }
        if !lacks.is_empty() {
            return Err(too_little(lacks));
        }
        if !(0.0..=LONGEST_RTT_S).contains(&idle.rtt_s.min) || idle.rtt_s.p95 > LONGEST_RTT_S {
            return Err(TwinError::Beyond(format!(
                "round trips of the idle path take {:e} s to {:e} s, and no path's are below 0 or above {LONGEST_RTT_S} s",
                idle.rtt_s.min, idle.rtt_s.p95
            )));
        }
        Ok(Self {
            run,
            idle,
            up,
            down,
        })
    }

    pub(super) fn directions(&self) -> [&Directed<'a>; 2] {
        [&self.up, &self.down]
    }

    /// The finding of a cause, the first of them.
    pub(super) fn finding(&self, cause: Cause) -> Option<&'a Finding> {
        self.run.findings.iter().find(|found| found.cause == cause)
    }

    /// The finding of a cause about a direction.
    pub(super) fn finding_of(&self, cause: Cause, direction: OneDirection) -> Option<&'a Finding> {
        let place = Place::line(direction.into());
        let mut all = self.run.findings.iter();
        all.find(|found| found.cause == cause && found.place == place)
    }

    /// What is known of the host at this end, and at the other.
    pub(super) fn hosts(&self) -> [Option<&'a HostFacts>; 2] {
        let far = self.run.target.as_ref();
        [
            Some(&self.run.local.host),
            far.and_then(|far| far.host.as_ref()),
        ]
    }
}

/// From this queueing delay on, in seconds, packets waited noticeably: CoDel's target (RFC 8289).
pub(super) const WAITS_S: f64 = 0.005;

impl Directed<'_> {
    /// Whether a queue stood before the line for at least half of the time, so that the line was full.
    pub(super) fn queue_stood(&self) -> bool {
        let stood = |loaded: Loaded| loaded.increase_s.p50 >= WAITS_S;
        self.loaded.is_some_and(stood)
    }

    /// The rate of IP packets that carries so much payload of TCP, in bit/s.
    pub(super) fn ip_bps(&self, payload_bps: f64) -> f64 {
        payload_bps * self.ip_ratio
    }

    /// The rates of whole seconds after slow start, in bit/s of payload.
    pub(super) fn seconds_bps(&self) -> Vec<f64> {
        let Some((first, _)) = self.rates.first() else {
            return Vec::new();
        };
        let mut seconds: Vec<Vec<f64>> = Vec::new();
        for (t, bps) in &self.rates {
            let second = (t - first) as usize;
            while seconds.len() <= second && seconds.len() < MOST_SECONDS {
                seconds.push(Vec::new());
            }
            if let Some(rates) = seconds.get_mut(second) {
                rates.push(*bps);
            }
        }
        // The last one is hardly whole.
        seconds.pop();
        let means = seconds.iter().filter(|rates| !rates.is_empty());
        means
            .map(|rates| rates.iter().sum::<f64>() / rates.len() as f64)
            .collect()
    }
}

/// No phase of a check lasts longer, in seconds; a series may claim any time.
const MOST_SECONDS: usize = 3600;

/// What the far end is called in the command that measures what is missing.
fn far_end(run: &Run) -> String {
    let name = run.target.as_ref().map(|target| target.name.clone());
    name.unwrap_or_else(|| "HOST".to_owned())
}

/// A number of the Run that is finite and above zero.
fn above_zero(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

/// A share of a whole; none where it is no number.
fn ratio(value: f64) -> f64 {
    if value.is_finite() {
        value.clamp(0.0, 1.0)
    } else {
        0.0
    }
}

fn share(part: u64, whole: u64) -> f64 {
    ratio(part as f64 / whole.max(1) as f64)
}

/// Whether all figures of a distribution are numbers in their order, which is not certain of figures from a file.
fn is_sound(spread: &Distribution) -> bool {
    let rising = [
        spread.min, spread.p5, spread.p25, spread.p50, spread.p75, spread.p95, spread.p99,
        spread.max,
    ];
    spread.count > 0
        && rising.iter().all(|value| value.is_finite())
        && rising.windows(2).all(|pair| pair.first() <= pair.last())
}

pub(super) fn idle(run: &Run) -> Option<Idle<'_>> {
    let by = |protocol: Protocol| {
        run.measurements.iter().find_map(move |measurement| {
            let ping = measurement.outcome.ping()?;
            let is_it = ping.protocol == protocol && measurement.context.phase == Some(Phase::Idle);
            let rtt_s = ping.rtt_s.filter(is_sound)?;
            if !is_it || ping.received == 0 {
                return None;
            }
            let sent = ping.sent.saturating_sub(ping.dropped_here);
            Some(Idle {
                rtt_s,
                sent,
                lost: sent.saturating_sub(ping.received),
                burst_packets: mean_burst(ping.losses.period_length),
                duplicates_ratio: share(ping.duplicates, ping.received),
                reordered_ratio: share(ping.reordered, ping.received),
                corrupted_ratio: share(ping.corrupted, sent),
                series: measurement.series.get("rtt"),
            })
        })
    };
    [Protocol::Udp, Protocol::Icmp, Protocol::WebSocket]
        .into_iter()
        .find_map(by)
}

fn mean_burst(length: Option<Distribution>) -> Option<f64> {
    above_zero(length?.mean).filter(|mean| *mean >= 1.0)
}

pub(super) fn directed(run: &Run, one: OneDirection) -> Option<Directed<'_>> {
    let direction = Direction::from(one);
    let phase = Phase::from(direction);
    let alone = |measurement: &&Measurement| {
        let held = measurement
            .context
            .load
            .as_ref()
            .is_some_and(|load| load.is_held());
        measurement.context.phase == Some(phase)
            && measurement.context.experiment.is_none()
            && !held
    };
    let measurement = run.measurements.iter().filter(alone).find(|measurement| {
        let carried = measurement.outcome.throughput();
        carried.is_some_and(|carried| carried.direction == direction)
    })?;
    let carried = measurement.outcome.throughput()?;
    let payload_bps = carried.steady_bps.unwrap_or(carried.bps);
    if !payload_bps.is_finite() {
        return None;
    }
    let segment = match carried.tcp.mss_bytes {
        0 => USUAL_SEGMENT_BYTES,
        bytes => bytes.clamp(1, 65_535),
    } as f64;
    let options = match carried.tcp.timestamps {
        Some(false) => 0.0,
        _ => TIMESTAMP_BYTES,
    };
    let packet_bytes = segment + TCP_HEADERS_BYTES + options;
    let segments = carried.bytes as f64 / segment + carried.tcp.retransmits as f64;
    let limited = carried.tcp.limited;
    let least_rtt_s = carried.tcp.min_rtt_s;
    let from_s = ramp_end_s(least_rtt_s.unwrap_or(0.0), measurement.duration_s);
    let rates = measurement.series.get("bps").into_iter();
    let rates = rates.flat_map(Series::points);
    let rates = rates.filter(|(t, bps)| t.is_finite() && *t >= from_s && bps.is_finite());
    let rates: Vec<(f64, f64)> = rates.collect();
    let loaded = run.measurements.iter().find_map(|measurement| {
        let loaded = measurement.outcome.loaded_latency()?;
        let sound = is_sound(&loaded.increase_s) && is_sound(&loaded.rtt_s);
        (loaded.direction == direction && sound).then_some(Loaded {
            rtt_s: loaded.rtt_s,
            increase_s: loaded.increase_s,
            local_s: loaded.path.as_ref().and_then(|path| {
                let is_near = |place: PathPlace| place == PathPlace::Gateway;
                path.places.first().filter(|first| is_near(first.place))?;
                Some(path.local_increase_s.p95).filter(|local| local.is_finite())
            }),
        })
    });
    let (below, above) = (
        datagrams(run, direction, Experiment::Paced),
        datagrams(run, direction, Experiment::Overload),
    );
    let seen = [below, above].into_iter().flatten().map(|seen| seen.bps);
    let seen = seen.chain(small_segments(run, direction));
    Some(Directed {
        direction: one,
        payload_bps,
        most_bps: seen.fold(payload_bps, f64::max),
        streams: carried.streams.len().max(1) as u64,
        cc: &carried.cc,
        duration_s: above_zero(measurement.duration_s)?,
        again_ratio: ratio(carried.tcp.retransmits as f64 / segments.max(1.0)),
        ip_ratio: packet_bytes / segment,
        packet_bytes,
        held_by_window: ratio(limited.rwnd_ratio) + ratio(limited.sndbuf_ratio) >= HELD_RATIO,
        own_wait_s: carried
            .tcp
            .max_srtt_s
            .zip(least_rtt_s)
            .and_then(|(most, least)| above_zero(most - least)),
        loaded,
        below,
        above,
        rates,
    })
}

/// Payload that one connection of small packets carried, in bit/s: where larger ones vanish it is all that is known.
fn small_segments(run: &Run, direction: Direction) -> Option<f64> {
    let is_it = |measurement: &&Measurement| {
        measurement.context.experiment == Some(Experiment::SmallSegments)
    };
    let mut all = run.measurements.iter().filter(is_it);
    all.find_map(|measurement| {
        let carried = measurement.outcome.throughput()?;
        above_zero(carried.bps).filter(|_| carried.direction == direction)
    })
}

fn datagrams(run: &Run, direction: Direction, experiment: Experiment) -> Option<Datagrams> {
    let mut all = run.measurements.iter().rev();
    all.find_map(|measurement| {
        let stream = measurement.outcome.udp()?;
        let is_it = measurement.context.experiment == Some(experiment)
            && stream.direction == direction
            && stream.error.is_none();
        let receiver = stream.receiver.as_ref().filter(|_| is_it)?;
        let payload = f64::from(stream.payload_bytes.max(1));
        let bps = above_zero(stream.bps?)?;
        Some(Datagrams {
            bps,
            late_s: receiver.pdv_s.filter(is_sound),
            packet_s: payload * 8.0 / bps,
            sent: receiver.received.saturating_add(receiver.lost),
            loss_ratio: ratio(receiver.path_loss_ratio()),
            burst_packets: mean_burst(receiver.losses.period_length),
            ip_ratio: (payload + UDP_HEADERS_BYTES) / payload,
        })
    })
}
