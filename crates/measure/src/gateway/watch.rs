//! The gateway's counters once a second, beside the counters of this host's interface.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plumb_model::results::Outcome;
use plumb_model::results::gateway::GatewayResult;
use plumb_model::series::{Series, Unit};
use plumb_net::clock;
use plumb_net::netlink::interface_name;
use plumb_net::route::{default_routes, next_hop};
use plumb_probe::gateway::{Gateway, GatewayError};

use super::counter::Counter;
use crate::record::Measured;

/// How long it is searched for, with its description: devices spread their answers over a second, and are asked twice.
pub(super) const FIND: Duration = Duration::from_secs(4);

/// How long each question may take: a home router answers in 5 to 50 ms, and later where its processor forwards.
const QUESTION: Duration = Duration::from_secs(2);

/// From one reading of the counters to the next: two questions a second are no load for a gateway, and a counter of 32 bits
/// cannot wrap unseen below 34 Gbit/s.
const INTERVAL: Duration = Duration::from_secs(1);

/// Readings that fail one after the other, after which it is asked no more.
const MOST_FAILED: u64 = 5;

/// What a line whose rate is not known carries at most, in bit/s: the fastest that are sold to homes.
const FASTEST_BPS: f64 = 10e9;

/// What a line may carry whatever its gateway reports, in bit/s: some report a rate that was never configured.
const SURELY_BPS: f64 = 1e9;

/// How much more than its rate a counter may show, because gateways count headers, and read their counters unevenly.
const MARGIN: f64 = 2.0;

/// How often the wish to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Why a gateway is not watched.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotWatched {
    #[error("there is no IPv4 gateway towards the far end")]
    NoGateway,
    #[error(transparent)]
    Gateway(#[from] GatewayError),
}

/// The gateway's counters, read beside what else is measured. It ends within a question's time when it is dropped.
pub struct Watch {
    started_ns: u64,
    result: GatewayResult,
    stop: Arc<AtomicBool>,
    /// Ends when `stop` is set, or after so many readings that failed.
    reader: Option<JoinHandle<Readings>>,
}

impl Watch {
    /// Asks the gateway towards an address for its line, and begins to read.
    ///
    /// # Errors
    /// When there is none, or it does not answer.
    pub(super) fn begin(towards: IpAddr) -> Result<Self, NotWatched> {
        let started_ns = clock::monotonic_ns();
        let (address, interface) = gateway(towards).ok_or(NotWatched::NoGateway)?;
        let gateway = Gateway::find(address, FIND)?;
        let line = gateway.line(QUESTION).unwrap_or_default();
        let external = gateway.address(QUESTION).ok().flatten();
        let result = GatewayResult {
            address: address.to_string(),
            model: gateway.model.clone(),
            external_address: external.map(|address| address.to_string()),
            access: line.access.map(str::to_owned),
            connected: line.up,
            down_bps: line.down_bps,
            up_bps: line.up_bps,
            ..GatewayResult::default()
        };
        let stop = Arc::new(AtomicBool::new(false));
        let mut readings = Readings::of([line.down_bps, line.up_bps], interface);
        let stopped = Arc::clone(&stop);
        let reader = thread::Builder::new()
            .name("plumb-gateway".to_owned())
            .spawn(move || {
                readings.read_on(&gateway, started_ns, &stopped);
                readings
            })
            .map_err(GatewayError::Local)?;
        Ok(Self {
            started_ns,
            result,
            stop,
            reader: Some(reader),
        })
    }

    /// Ends it; what it has seen, from when it began until now.
    pub(crate) fn end(mut self) -> Measured {
        self.stop.store(true, Ordering::Relaxed);
        let readings = self.reader.take().and_then(|reader| reader.join().ok());
        let mut result = std::mem::take(&mut self.result);
        let mut series = BTreeMap::new();
        if let Some(readings) = readings {
            (result.readings, result.failed) = (readings.taken, readings.failed);
            let counters = readings.counters.into_iter();
            result.restarts = counters.map(|counter| counter.restarts).sum();
            let names = ["down_bytes", "up_bytes", "own_down_bytes", "own_up_bytes"];
            let all = names.into_iter().zip(readings.series);
            series = all.map(|(name, one)| (name.to_owned(), one)).collect();
        }
        Measured::until_now(self.started_ns, Outcome::Gateway(Box::new(result))).with_series(series)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// The IPv4 gateway towards an address, or of the default route where that is not reached over one, and the folder of this
/// host's counters of the interface that leads there.
fn gateway(towards: IpAddr) -> Option<(Ipv4Addr, PathBuf)> {
    let [default, _] = default_routes().unwrap_or_default();
    let own = next_hop(towards).ok().flatten();
    [own, default].into_iter().flatten().find_map(|hop| {
        let Some(IpAddr::V4(address)) = hop.gateway else {
            return None;
        };
        let name = interface_name(hop.interface).ok()?;
        let interface = PathBuf::from("/sys/class/net").join(name);
        Some((address, interface.join("statistics")))
    })
}

/// What was read so far: of the gateway what its line brought and took, and the same of this host's interface.
struct Readings {
    /// What each of the gateway's counters can count in a second at most, in bytes.
    most_bytes_per_s: [f64; 2],
    interface: PathBuf,
    counters: [Counter; 4],
    series: [Series; 4],
    taken: u64,
    failed: u64,
    last: Option<Instant>,
}

impl Readings {
    fn of(line_bps: [Option<f64>; 2], interface: PathBuf) -> Self {
        Self {
            most_bytes_per_s: line_bps
                .map(|bps| bps.unwrap_or(FASTEST_BPS).clamp(SURELY_BPS, FASTEST_BPS) / 8.0),
            interface,
            counters: Default::default(),
            series: [(); 4].map(|()| Series::new(Unit::Bytes)),
            taken: 0,
            failed: 0,
            last: None,
        }
    }

    /// Reads once a second until it is stopped or the gateway answers no more.
    fn read_on(&mut self, gateway: &Gateway, started_ns: u64, stop: &AtomicBool) {
        let mut in_a_row = 0;
        let mut due = Instant::now();
        // The last reading is of the end.
        let mut ended = false;
        while !ended && in_a_row < MOST_FAILED {
            ended = stop.load(Ordering::Relaxed);
            let began_ns = clock::monotonic_ns();
            let own = self.own();
            let read = gateway.bytes(QUESTION);
            // The gateway's counters are of some instant between.
            let at_ns = began_ns.midpoint(clock::monotonic_ns());
            match read {
                Ok(line) => {
                    in_a_row = 0;
                    let t_s = at_ns.saturating_sub(started_ns) as f64 / 1e9;
                    self.take(t_s, Instant::now(), line, own);
                }
                Err(_) => {
                    in_a_row += 1;
                    self.failed += 1;
                }
            }
            due = (due + INTERVAL).max(Instant::now());
            while Instant::now() < due && !ended && !stop.load(Ordering::Relaxed) {
                thread::sleep(LOOK_EVERY);
            }
        }
    }

    /// What this host's interface has received and sent.
    fn own(&self) -> [Option<u64>; 2] {
        ["rx_bytes", "tx_bytes"].map(|name| {
            let text = std::fs::read_to_string(self.interface.join(name)).ok()?;
            text.trim().parse().ok()
        })
    }

    fn take(&mut self, t_s: f64, now: Instant, line: [u64; 2], own: [Option<u64>; 2]) {
        let since = self.last.replace(now).map(|last| now.duration_since(last));
        // What changed since the reading before may have been counted since the one before that.
        let since_s = since.map_or(0.0, |since| since.as_secs_f64() + INTERVAL.as_secs_f64());
        let [down, up] = self
            .most_bytes_per_s
            .map(|most| (MARGIN * most * since_s) as u64);
        let ([brought, took], [received, sent]) = (line, own);
        let readings = [
            (Some(brought), down),
            (Some(took), up),
            (received, u64::MAX),
            (sent, u64::MAX),
        ];
        let all = self.counters.iter_mut().zip(&mut self.series).zip(readings);
        for ((counter, series), (reading, most)) in all {
            let total = reading.and_then(|reading| counter.take(reading, most));
            series.push(t_s, total.map(|total| total as f64));
        }
        self.taken += 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn readings_become_series_since_the_first() {
        let mut readings = Readings::of([Some(8e6), None], PathBuf::new());
        let begun = Instant::now();
        let at = |s| begun + Duration::from_secs(s);
        readings.take(0.0, at(0), [1000, 50], [Some(7), None]);
        readings.take(1.0, at(1), [2000, 60], [Some(9), None]);
        // 3 GB in a second are more than twice what 1 Gbit/s carries in two.
        readings.take(2.0, at(2), [3_000_000_000, 70], [Some(9), None]);
        readings.take(3.0, at(3), [3_000_000_500, 70], [Some(10), None]);
        let values = readings
            .series
            .each_ref()
            .map(|series| series.values.clone());
        let [down, up, own_down, own_up] = values;
        assert_eq!(down, [Some(0.0), Some(1000.0), None, Some(1500.0)]);
        assert_eq!(up, [Some(0.0), Some(10.0), Some(20.0), Some(20.0)]);
        assert_eq!(own_down, [Some(0.0), Some(2.0), Some(2.0), Some(3.0)]);
        assert_eq!(own_up, [None; 4]);
        let restarts = readings.counters.map(|counter| counter.restarts);
        assert_eq!((restarts, readings.taken), ([1, 0, 0, 0], 4));
    }
}
