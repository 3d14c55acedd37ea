//! The numbers of a Run that a comparison speaks of.

use plumb_model::distribution::Distribution;
use plumb_model::results::owd::OwdWay;
use plumb_model::results::path::PathHop;
use plumb_model::results::{Direction, Outcome, ProbeProtocol};
use plumb_model::run::{Measurement, Run};

use super::ChangeUnit;
use crate::view::{self, Phase};

/// What identifies a number in a Run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) phase: Phase,
    pub(super) direction: Option<Direction>,
    pub(super) protocol: Option<ProbeProtocol>,
    pub(super) of: Option<String>,
    pub(super) unit: ChangeUnit,
    /// Whether more of it, or less, is better: not where it is what was asked for.
    pub(super) judged: bool,
}

impl Key {
    pub(super) fn new(phase: Phase, name: &'static str, unit: ChangeUnit) -> Self {
        Self {
            name,
            phase,
            direction: None,
            protocol: None,
            of: None,
            unit,
            judged: true,
        }
    }
}

/// What was told of one thing.
struct Told {
    key: Key,
    found: Vec<(Key, f64)>,
}

impl Told {
    fn of(phase: Phase, of: impl Into<Option<String>>) -> Self {
        let mut key = Key::new(phase, "", ChangeUnit::Count);
        key.of = of.into();
        Self {
            key,
            found: Vec::new(),
        }
    }

    fn by(mut self, protocol: ProbeProtocol) -> Self {
        self.key.protocol = Some(protocol);
        self
    }

    fn way(mut self, direction: Direction) -> Self {
        self.key.direction = Some(direction);
        self
    }

    /// A number, where there is one.
    fn number(
        mut self,
        name: &'static str,
        unit: ChangeUnit,
        value: impl Into<Option<f64>>,
    ) -> Self {
        if let Some(value) = value.into() {
            let key = Key {
                name,
                unit,
                ..self.key.clone()
            };
            self.found.push((key, value));
        }
        self
    }

    /// A rate that is what was asked for, as long as the path carries it.
    fn asked_rate(mut self, value: Option<f64>) -> Self {
        self.key.judged = false;
        let mut told = self.number("bps", ChangeUnit::Bps, value);
        told.key.judged = true;
        told
    }

    /// Two percentiles of a time.
    fn time(self, names: [&'static str; 2], of: Option<&Distribution>) -> Self {
        let [median, tail] = names;
        self.number(median, ChangeUnit::S, of.map(|d| d.p50))
            .number(tail, ChangeUnit::S, of.map(|d| d.p95))
    }
}

const RTT: [&str; 2] = ["rtt_s.p50", "rtt_s.p95"];
const LATENCY: [&str; 2] = ["latency_s.p50", "latency_s.p95"];
const DELAY: [&str; 2] = ["one_way_delay_s.p50", "one_way_delay_s.p95"];

/// All of them, latencies first; those that are not finite are not there.
pub(super) fn numbers(run: &Run) -> Vec<(Key, f64)> {
    let mut found = Vec::new();
    for row in view::latencies(run) {
        let told = Told::of(row.phase, None)
            .by(row.protocol)
            .time(RTT, row.rtt_s)
            .number("rtt_s.max", ChangeUnit::S, row.rtt_s.map(|d| d.max))
            .number(
                "increase_s.p95",
                ChangeUnit::S,
                row.increase_s.map(|d| d.p95),
            )
            .number("loss_ratio", ChangeUnit::Ratio, row.loss_ratio);
        found.extend(told.found);
    }
    for row in view::rates(run) {
        let told = Told::of(row.phase, None)
            .way(row.result.direction)
            .number("bps", ChangeUnit::Bps, row.result.bps)
            .number("steady_bps", ChangeUnit::Bps, row.result.steady_bps)
            .number(
                "tcp.retransmits",
                ChangeUnit::Count,
                row.result.tcp.retransmits as f64,
            );
        found.extend(told.found);
    }
    found.extend(run.measurements.iter().flat_map(of_others));
    found.retain(|(_, value)| value.is_finite());
    found
}

/// Those of a measurement that has numbers of its own kind.
fn of_others(measurement: &Measurement) -> Vec<(Key, f64)> {
    use ChangeUnit::{Bps, Bytes, Count, Mos, PerMinute, PerSecond, Ratio, S};
    let phase = Phase::of(measurement);
    match &measurement.outcome {
        Outcome::Port(port) => {
            Told::of(phase, format!("port {}", port.port))
                .number("connect_s.p50", S, port.connect_s.map(|d| d.p50))
                .number("first_byte_s.p50", S, port.first_byte_s.map(|d| d.p50))
                .found
        }
        Outcome::Udp(udp) => {
            let receiver = udp.receiver.as_ref();
            let delay = udp.one_way_delay.as_ref().map(|delay| &delay.delay_s);
            let pdv = receiver.and_then(|r| r.pdv_s.as_ref());
            Told::of(phase, format!("udp stream {}", udp.stream))
                .way(udp.direction)
                .asked_rate(udp.bps)
                .number("loss_ratio", Ratio, receiver.map(|r| r.loss_ratio))
                .number("pdv_s.p95", S, pdv.map(|d| d.p95))
                .time(DELAY, delay)
                .found
        }
        Outcome::Quic(quic) => {
            Told::of(phase, "quic".to_owned())
                .way(quic.direction)
                .number("bps", Bps, quic.bps)
                .number("steady_bps", Bps, quic.steady_bps)
                .found
        }
        Outcome::Transactions(many) => {
            let each = if many.connect {
                "connections"
            } else {
                "requests"
            };
            Told::of(phase, format!("{} {each}", many.transport.name()))
                .time(LATENCY, many.latency_s.as_ref())
                .number("rate_tps", PerSecond, many.rate_tps)
                .number("failed", Count, many.failed as f64)
                .found
        }
        Outcome::App(app) => {
            Told::of(phase, app.profile.clone())
                .way(app.direction)
                .number("loss_ratio", Ratio, app.loss_ratio)
                .time(DELAY, app.one_way_delay_s.as_ref())
                .number("voice.mos", Mos, app.voice.as_ref().map(|v| v.mos))
                .number(
                    "playback.stalled_ratio",
                    Ratio,
                    app.playback.as_ref().map(|p| p.stalled_ratio),
                )
                .found
        }
        Outcome::AvailableBandwidth(found) => {
            Told::of(phase, "UDP below 1 % of loss".to_owned())
                .way(found.direction)
                .number("bps", Bps, found.bps)
                .found
        }
        Outcome::Responsiveness(found) => {
            Told::of(phase, None)
                .way(found.direction)
                .number("rpm", PerMinute, found.rpm)
                .found
        }
        Outcome::Owd(owd) => [(Direction::Up, &owd.up), (Direction::Down, &owd.down)]
            .into_iter()
            .flat_map(|(direction, way)| one_way(phase, direction, way))
            .collect(),
        Outcome::Path(path) => {
            let target = path.hops.last().filter(|_| path.reached);
            let target = target.and_then(|hop: &PathHop| hop.rtt_s.as_ref());
            Told::of(phase, "path".to_owned())
                .time(RTT, target)
                .number(
                    "hops",
                    Count,
                    path.reached.then_some(path.hops.len() as f64),
                )
                .found
        }
        Outcome::Pings(pings) => {
            Told::of(phase, format!("{} targets", pings.targets.len()))
                .by(pings.protocol)
                .time(RTT, pings.rtt_s.as_ref())
                .number("loss_ratio", Ratio, pings.loss_ratio)
                .found
        }
        Outcome::Mtu(mtu) => {
            Told::of(phase, None)
                .number("path_mtu_bytes", Bytes, mtu.path_mtu_bytes.map(f64::from))
                .found
        }
        Outcome::Capacity(capacity) => {
            Told::of(phase, "narrowest line".to_owned())
                .number("bps", Bps, capacity.train.as_ref().and_then(|t| t.rate.bps))
                .found
        }
        // What `numbers` has taken, what describes a host, and what is a comparison itself.
        Outcome::Ping(_)
        | Outcome::LoadedLatency(_)
        | Outcome::Throughput(_)
        | Outcome::Tcp(_)
        | Outcome::Host(_)
        | Outcome::HostRates(_)
        | Outcome::HostDisk(_)
        | Outcome::HostCipher(_)
        | Outcome::Tune(_) => Vec::new(),
    }
}

fn one_way(phase: Phase, direction: Direction, way: &OwdWay) -> Vec<(Key, f64)> {
    let delay = way.delay.as_ref().map(|delay| &delay.delay_s);
    let pdv = way.pdv_s.as_ref().map(|d| d.p95);
    Told::of(phase, None)
        .way(direction)
        .time(DELAY, delay)
        .number("pdv_s.p95", ChangeUnit::S, pdv)
        .number("loss_ratio", ChangeUnit::Ratio, way.loss_ratio)
        .found
}
