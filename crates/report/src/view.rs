//! What the text, the page and the comparison all look for in a Run.

use plumb_model::distribution::Distribution;
use plumb_model::grade::Grade;
use plumb_model::results::app::AppResult;
use plumb_model::results::available_bandwidth::AvailableBandwidthResult;
use plumb_model::results::capacity::CapacityResult;
use plumb_model::results::mtu::MtuResult;
use plumb_model::results::owd::OwdResult;
use plumb_model::results::path::PathResult;
use plumb_model::results::udp::UdpResult;
use plumb_model::results::{
    Direction, LoadedLatencyResult, Outcome, PingResult, PortResult, ProbeProtocol, TcpResult,
    ThroughputResult,
};
use plumb_model::run::{Measurement, Run};

/// What the path carried besides the probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Nothing of ours, before the load.
    Idle,
    /// An upload.
    Up,
    /// A download.
    Down,
    /// Both at once.
    Both,
    /// Nothing again, after the load.
    After,
}

impl Phase {
    /// The phases in the order in which they are shown.
    pub(crate) const ALL: [Self; 5] = [Self::Idle, Self::Up, Self::Down, Self::Both, Self::After];

    /// The phase that a measurement says it belongs to, or that its direction implies.
    pub(crate) fn of(measurement: &Measurement) -> Self {
        let named = measurement.params.get("phase").and_then(|p| p.as_str());
        let implied = match &measurement.outcome {
            Outcome::Ping(_)
            | Outcome::Pings(_)
            | Outcome::Path(_)
            | Outcome::Port(_)
            | Outcome::Transactions(_)
            | Outcome::Host(_)
            | Outcome::HostRates(_)
            | Outcome::HostDisk(_)
            | Outcome::HostCipher(_)
            | Outcome::Owd(_)
            | Outcome::Mtu(_)
            | Outcome::Capacity(_) => Self::Idle,
            Outcome::Tune(t) => t.direction.into(),
            Outcome::Throughput(t) => t.direction.into(),
            Outcome::LoadedLatency(l) => l.direction.into(),
            Outcome::Tcp(t) => t.direction.into(),
            Outcome::Udp(u) => u.direction.into(),
            Outcome::App(a) => a.direction.into(),
            Outcome::AvailableBandwidth(a) => a.direction.into(),
            Outcome::Responsiveness(r) => r.direction.into(),
            Outcome::Quic(q) => q.direction.into(),
        };
        Self::ALL
            .into_iter()
            .find(|phase| Some(phase.name()) == named)
            .unwrap_or(implied)
    }

    /// The word used in Runs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both",
            Self::After => "after",
        }
    }

    /// The word used before people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Up => "upload",
            Self::Down => "download",
            Self::Both => "both at once",
            Self::After => "after load",
        }
    }

    /// When a latency was measured, to follow the word "latency".
    pub(crate) fn when(self) -> &'static str {
        match self {
            Self::Idle => "when idle",
            Self::Up => "under upload",
            Self::Down => "under download",
            Self::Both => "under both at once",
            Self::After => "after the load",
        }
    }
}

impl From<Direction> for Phase {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Up => Self::Up,
            Direction::Down => Self::Down,
            Direction::Both => Self::Both,
        }
    }
}

/// The noun for what flows in a direction.
pub(crate) fn flow(direction: Direction) -> &'static str {
    Phase::from(direction).title()
}

/// `upload`, or `both: upload` where the other direction was loaded too.
pub(crate) fn flow_in_phase(phase: Phase, direction: Direction) -> String {
    if phase == direction.into() {
        flow(direction).to_owned()
    } else {
        format!("{}: {}", phase.name(), flow(direction))
    }
}

/// Round trips of one measurement, idle or loaded.
pub(crate) struct Latency<'a> {
    pub(crate) phase: Phase,
    pub(crate) protocol: ProbeProtocol,
    pub(crate) rtt_s: Option<&'a Distribution>,
    pub(crate) increase_s: Option<&'a Distribution>,
    pub(crate) loss_ratio: Option<f64>,
    pub(crate) grade: Option<Grade>,
}

/// The throughput of one direction of one phase.
pub(crate) struct Rate<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) phase: Phase,
    pub(crate) result: &'a ThroughputResult,
}

impl Rate<'_> {
    /// Whether the sending end's record is there: it goes missing with a far end that goes away.
    pub(crate) fn has_sender(&self) -> bool {
        !self.result.cc.is_empty()
    }
}

/// The latencies of a Run, by phase.
pub(crate) fn latencies(run: &Run) -> Vec<Latency<'_>> {
    let of = |measurement| {
        let phase = Phase::of(measurement);
        Some(match &measurement.outcome {
            Outcome::Ping(p) => Latency {
                phase,
                protocol: p.protocol,
                rtt_s: p.rtt_s.as_ref(),
                increase_s: None,
                loss_ratio: p.loss_ratio,
                grade: None,
            },
            Outcome::LoadedLatency(l) => Latency {
                phase,
                protocol: l.protocol,
                rtt_s: Some(&l.rtt_s),
                increase_s: Some(&l.increase_s),
                loss_ratio: Some(l.loss_ratio),
                grade: l.grade,
            },
            Outcome::Throughput(_)
            | Outcome::Path(_)
            | Outcome::Port(_)
            | Outcome::Tcp(_)
            | Outcome::Udp(_)
            | Outcome::Transactions(_)
            | Outcome::App(_)
            | Outcome::AvailableBandwidth(_)
            | Outcome::Pings(_)
            | Outcome::Responsiveness(_)
            | Outcome::Host(_)
            | Outcome::HostRates(_)
            | Outcome::HostDisk(_)
            | Outcome::HostCipher(_)
            | Outcome::Mtu(_)
            | Outcome::Capacity(_)
            | Outcome::Owd(_)
            | Outcome::Quic(_)
            | Outcome::Tune(_) => return None,
        })
    };
    let mut found: Vec<_> = run.measurements.iter().filter_map(of).collect();
    found.sort_by_key(|latency| latency.phase);
    found
}

/// The throughputs of a Run, by phase.
pub(crate) fn rates(run: &Run) -> Vec<Rate<'_>> {
    let mut found: Vec<_> = run
        .measurements
        .iter()
        .filter_map(|measurement| match &measurement.outcome {
            Outcome::Throughput(result) => Some(Rate {
                measurement,
                phase: Phase::of(measurement),
                result,
            }),
            _ => None,
        })
        .collect();
    found.sort_by_key(|rate| (rate.phase, rate.result.direction == Direction::Down));
    found
}

/// The pings of a Run.
pub(crate) fn pings(run: &Run) -> impl Iterator<Item = (&Measurement, &PingResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Ping(p) => Some((m, p)),
        _ => None,
    })
}

/// The loaded latencies of a Run.
pub(crate) fn loaded(run: &Run) -> impl Iterator<Item = (&Measurement, &LoadedLatencyResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::LoadedLatency(l) => Some((m, l)),
        _ => None,
    })
}

/// The UDP streams of a Run.
pub(crate) fn udp(run: &Run) -> impl Iterator<Item = (&Measurement, &UdpResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Udp(u) => Some((m, u.as_ref())),
        _ => None,
    })
}

/// How applications fared.
pub(crate) fn applications(run: &Run) -> impl Iterator<Item = (&Measurement, &AppResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::App(a) => Some((m, a.as_ref())),
        _ => None,
    })
}

/// The searches for the highest UDP rate.
pub(crate) fn available(
    run: &Run,
) -> impl Iterator<Item = (&Measurement, &AvailableBandwidthResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::AvailableBandwidth(a) => Some((m, a.as_ref())),
        _ => None,
    })
}

/// What one connection could carry, by direction.
pub(crate) fn windows(run: &Run) -> impl Iterator<Item = &TcpResult> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Tcp(t) => Some(t),
        _ => None,
    })
}

/// The port tests of a Run.
pub(crate) fn ports(run: &Run) -> impl Iterator<Item = (&Measurement, &PortResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Port(p) => Some((m, p.as_ref())),
        _ => None,
    })
}

/// What is known of the two ways of a path.
pub(crate) fn owds(run: &Run) -> impl Iterator<Item = (&Measurement, &OwdResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Owd(owd) => Some((m, owd.as_ref())),
        _ => None,
    })
}

/// The paths of a Run.
pub(crate) fn paths(run: &Run) -> impl Iterator<Item = (&Measurement, &PathResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Path(path) => Some((m, path.as_ref())),
        _ => None,
    })
}

/// What the lines of paths could carry.
pub(crate) fn capacities(run: &Run) -> impl Iterator<Item = (&Measurement, &CapacityResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Capacity(capacity) => Some((m, capacity.as_ref())),
        _ => None,
    })
}

/// The sizes that paths take.
pub(crate) fn mtus(run: &Run) -> impl Iterator<Item = (&Measurement, &MtuResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Mtu(mtu) => Some((m, mtu.as_ref())),
        _ => None,
    })
}

/// The protocol whose round trips lead: UDP where the far end answers it, because the loaded
/// phases are graded with it.
pub(crate) fn leading_protocol(run: &Run) -> ProbeProtocol {
    let rows = latencies(run);
    let there = |protocol: &ProbeProtocol| {
        rows.iter()
            .any(|l| l.protocol == *protocol && l.rtt_s.is_some())
    };
    // A ping by another protocol stands alone.
    let first = rows.first().map(|l| l.protocol);
    [ProbeProtocol::Udp, ProbeProtocol::Stamp]
        .into_iter()
        .find(there)
        .or(first.filter(|protocol| *protocol != ProbeProtocol::Udp))
        .unwrap_or(ProbeProtocol::Icmp)
}

/// Seconds from the start of the Run to the end of its last measurement.
pub(crate) fn length_s(run: &Run) -> f64 {
    let ends = run
        .measurements
        .iter()
        .map(|m| m.at_s + m.duration_s)
        .filter(|t| t.is_finite());
    ends.fold(0.0, f64::max)
}

/// A time of RFC 3339 in UTC as people read it; what is no such time stays as it is.
pub(crate) fn started(text: &str) -> String {
    let parts = text
        .split_once('T')
        .and_then(|(date, time)| Some((date, time.strip_suffix('Z')?)));
    parts.map_or_else(
        || text.to_owned(),
        |(date, time)| {
            format!(
                "{date} {} UTC",
                time.split_once('.').map_or(time, |(whole, _)| whole)
            )
        },
    )
}

/// `name (address)`, or what is known of it.
pub(crate) fn target(run: &Run) -> String {
    match &run.target {
        Some(target) => match &target.address {
            Some(address) if *address != target.name => format!("{} ({address})", target.name),
            _ => target.name.clone(),
        },
        None => "this host".to_owned(),
    }
}

/// What the numbers are worth when the laboratory fell behind.
pub(crate) fn overrun_warning(run: &Run) -> Option<&'static str> {
    run.local.lab.as_ref().is_some_and(|lab| lab.overrun).then_some(
        "The machine could not keep up with the emulated network: packets were late, or the programs at \
         the ends had to wait for a processor, so these numbers say more of this machine than of the scenario. Measure again with nothing else running.",
    )
}
