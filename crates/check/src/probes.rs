//! The probe streams that run beside everything else, from beginning to end.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_model::results::{PingResult, ProbeProtocol};
use plumb_model::series::Series;
use plumb_net::clock;
use plumb_probe::{Plan, ProbeError, ProbeLog, Probing};
use serde_json::{Map, Value};

/// Fifty probes a second over UDP: a 95th percentile over 13 s rests on more than 30 probes
/// beyond it, and 64 bytes of payload are 50 kbit/s on the line.
const UDP_INTERVAL: Duration = Duration::from_millis(20);

/// Ten a second over ICMP, to see whether ICMP is treated otherwise.
const ICMP_INTERVAL: Duration = Duration::from_millis(100);

/// Running probes; at least one stream.
pub struct Probes {
    udp: Option<Probing>,
    icmp: Option<Probing>,
    /// What must be known: a stream that could not start.
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
    /// Starts probing over UDP, where `udp_port` says that the far end echoes, and over ICMP.
    ///
    /// # Errors
    /// When neither can be started.
    pub fn start(
        name: &str,
        address: IpAddr,
        udp_port: Option<u16>,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, ProbeError> {
        let start = |protocol, port, interval| {
            let plan = Plan {
                interval,
                ..Plan::new(protocol, name, SocketAddr::new(address, port))
            };
            Probing::start(plan, Arc::clone(stop))
        };
        let udp = udp_port
            .map(|port| start(ProbeProtocol::Udp, port, UDP_INTERVAL))
            .transpose();
        let icmp = start(ProbeProtocol::Icmp, 0, ICMP_INTERVAL);
        match (udp, icmp) {
            (Ok(Some(udp)), Ok(icmp)) => Ok(Self {
                udp: Some(udp),
                icmp: Some(icmp),
                notes: Vec::new(),
            }),
            (Ok(udp), Err(e)) if udp.is_some() => Ok(Self {
                udp,
                icmp: None,
                notes: vec![format!("ICMP was not measured: {e}")],
            }),
            (Ok(_), Ok(icmp)) => Ok(Self {
                udp: None,
                icmp: Some(icmp),
                notes: Vec::new(),
            }),
            (Err(e), Ok(icmp)) => Ok(Self {
                udp: None,
                icmp: Some(icmp),
                notes: vec![format!("UDP round trips were not measured: {e}")],
            }),
            (_, Err(e)) => Err(e),
        }
    }

    /// The round trip of the latest answer of the main stream.
    pub fn last_rtt(&self) -> Option<Duration> {
        self.udp
            .as_ref()
            .or(self.icmp.as_ref())?
            .progress()
            .read()
            .last_rtt
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
pub fn window_series(log: &ProbeLog, window: Window) -> Series {
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

fn relative(log: &ProbeLog, window: Window) -> (f64, f64) {
    let seconds = |ns: u64| (ns as f64 - log.started_monotonic_ns as f64) / 1e9;
    (seconds(window.from_ns), seconds(window.to_ns))
}
