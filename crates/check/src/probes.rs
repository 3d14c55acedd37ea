//! The probe streams that run beside everything else, from beginning to end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_model::results::{Outcome, PingResult, ProbeProtocol};
use plumb_model::series::Series;
use plumb_net::clock;
use plumb_probe::{Plan, ProbeLog, Probing, Progress};
use serde_json::{Map, Value};

use crate::assembly::{Assembly, Measured};

/// Fifty probes a second over UDP: a 95th percentile over 13 s rests on more than 30 probes
/// beyond it, and 64 bytes of payload are 50 kbit/s on the line.
const UDP_INTERVAL: Duration = Duration::from_millis(20);

/// Ten a second over ICMP, to see whether ICMP is treated otherwise.
const ICMP_INTERVAL: Duration = Duration::from_millis(100);

/// How late an answer may come and still count: several times what the fullest queue holds, so
/// that a path is not called lossy, or healthy, because it is slow.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Running probes.
pub struct Probes {
    udp: Option<Probing>,
    icmp: Option<Probing>,
    /// What must be known: streams that could not start.
    pub notes: Vec<String>,
}

/// What the probes saw.
pub struct ProbeLogs {
    udp: Option<ProbeLog>,
    icmp: Option<ProbeLog>,
}

/// A stretch of time on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}

impl Window {
    /// From `from_ns` until now.
    pub fn until_now(from_ns: u64) -> Self {
        Self {
            from_ns,
            to_ns: clock::monotonic_ns(),
        }
    }

    /// How long it is.
    pub fn seconds(self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }

    /// The same without its first `seconds`.
    pub fn after(self, seconds: f64) -> Self {
        Self {
            from_ns: self.from_ns + (seconds * 1e9) as u64,
            ..self
        }
    }
}

impl Probes {
    /// No probes at all.
    pub fn none() -> Self {
        Self {
            udp: None,
            icmp: None,
            notes: Vec::new(),
        }
    }

    /// Starts probing over UDP, where the far end `echoes` at its port, and over ICMP. What cannot be
    /// started is noted.
    pub fn start(name: &str, address: SocketAddr, echoes: bool, stop: &Arc<AtomicBool>) -> Self {
        let mut notes = Vec::new();
        let mut start = |protocol: ProbeProtocol, interval| {
            let plan = Plan {
                interval,
                timeout: TIMEOUT,
                ..Plan::new(protocol, name, address)
            };
            Probing::start(plan, Arc::clone(stop))
                .map_err(|error| {
                    notes.push(format!(
                        "{} was not measured: {error}",
                        protocol.name().to_uppercase()
                    ))
                })
                .ok()
        };
        let udp = echoes
            .then(|| start(ProbeProtocol::Udp, UDP_INTERVAL))
            .flatten();
        let icmp = start(ProbeProtocol::Icmp, ICMP_INTERVAL);
        Self { udp, icmp, notes }
    }

    /// Starts probing over UDP alone, to compare the two hosts' clocks.
    pub fn for_clocks(
        name: &str,
        address: SocketAddr,
        echoes: bool,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        let mut this = Self::none();
        if !echoes {
            return this;
        }
        let plan = Plan {
            interval: UDP_INTERVAL,
            timeout: TIMEOUT,
            ..Plan::new(ProbeProtocol::Udp, name, address)
        };
        match Probing::start(plan, Arc::clone(stop)) {
            Ok(probing) => this.udp = Some(probing),
            Err(error) => this
                .notes
                .push(format!("The clocks could not be compared: {error}")),
        }
        this
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.udp.is_none() && self.icmp.is_none()
    }

    /// How far the main stream has come.
    pub fn latest(&self) -> Progress {
        self.udp
            .as_ref()
            .or(self.icmp.as_ref())
            .map(|probing| probing.progress().read())
            .unwrap_or_default()
    }

    /// Ends the probes and waits for those under way.
    pub fn finish(self) -> ProbeLogs {
        for probing in [&self.udp, &self.icmp].into_iter().flatten() {
            probing.stop();
        }
        ProbeLogs {
            udp: self.udp.map(Probing::join),
            icmp: self.icmp.map(Probing::join),
        }
    }
}

impl ProbeLogs {
    /// The streams there are, the main one first.
    pub fn streams(&self) -> impl Iterator<Item = &ProbeLog> {
        self.udp.iter().chain(&self.icmp)
    }

    /// The stream that tells of the far host's clock.
    pub fn udp(&self) -> Option<&ProbeLog> {
        self.udp.as_ref()
    }

    /// Notes of the streams.
    pub fn notes(&self) -> impl Iterator<Item = &String> {
        self.streams().flat_map(|log| &log.notes)
    }

    /// What the main stream saw in a window, if anything came back.
    pub fn main(&self, window: Window) -> Option<PingResult> {
        self.streams()
            .map(|log| result(log, window))
            .find(|ping| ping.rtt_s.is_some())
    }

    /// Adds the round trips of a time without load, one measurement a stream; true when any came
    /// back.
    pub fn record_ping(&self, assembly: &mut Assembly, window: Window, phase: &str) -> bool {
        let mut answered = false;
        for log in self.streams() {
            let ping = result(log, window);
            answered |= ping.received > 0;
            let mut params = Map::new();
            params.insert("phase".to_owned(), phase.into());
            identify(log, window, &mut params);
            assembly.add(Measured {
                started_ns: window.from_ns,
                duration_s: window.seconds(),
                params,
                outcome: Outcome::Ping(ping),
                series: [("rtt".to_owned(), window_series(log, window))].into(),
            });
        }
        answered
    }

    /// The round trips of every stream in a window, and which probes they were.
    pub fn series(&self, window: Window) -> (BTreeMap<String, Series>, Map<String, Value>) {
        let mut series = BTreeMap::new();
        let mut params = Map::new();
        for log in self.streams() {
            let name = match log.protocol {
                ProbeProtocol::Udp => "rtt",
                ProbeProtocol::Icmp => "rtt_icmp",
            };
            series.insert(name.to_owned(), window_series(log, window));
            identify(log, window, &mut params);
        }
        (series, params)
    }
}

/// What one stream saw in a window.
pub fn result(log: &ProbeLog, window: Window) -> PingResult {
    let (from, to) = relative(log, window);
    log.result(from, to)
}

/// The round trips of one stream in a window.
fn window_series(log: &ProbeLog, window: Window) -> Series {
    let (from, to) = relative(log, window);
    log.series(from, to)
}

/// Says which probes they were, so that they can be found again in a capture or a lab's record.
pub fn identify(log: &ProbeLog, window: Window, params: &mut Map<String, Value>) {
    let (from, to) = relative(log, window);
    if let Some(first) = log.window(from, to).next() {
        params.insert(format!("{}_id", log.protocol.name()), log.id.into());
        params.insert(
            format!("{}_first_seq", log.protocol.name()),
            first.sequence.into(),
        );
    }
}

/// A window in seconds from the start of a stream.
pub(crate) fn relative(log: &ProbeLog, window: Window) -> (f64, f64) {
    let seconds = |ns: u64| (ns as f64 - log.started_monotonic_ns as f64) / 1e9;
    (seconds(window.from_ns), seconds(window.to_ns))
}
