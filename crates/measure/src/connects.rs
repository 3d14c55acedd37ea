//! A few TCP connections to a port, one after the other: whether it answers, and how long that takes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plumb_model::distribution::Distribution;
use plumb_model::results::port::PortState;
use plumb_model::results::{Outcome, PortResult};
use plumb_model::run::Run;
use plumb_net::tcp::{ConnectError, TcpOptions};
use plumb_net::{clock, tcp};

use crate::error::MeasureError;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// Connections to each: enough for a median.
const CONNECTS: u64 = 5;

/// From one connection to the next.
const PAUSE: Duration = Duration::from_millis(20);

/// Time for a connection: the first two retransmissions of its SYN (after 1 s and 3 s) fall within.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_millis(3500);

/// A few connections to a port, one after the other, side by side where a name has an address of each version of IP.
pub struct Connects {
    /// The addresses with the port, one or two.
    addresses: Vec<SocketAddr>,
}

impl Connects {
    /// The same to one address alone.
    pub fn to(address: SocketAddr) -> Self {
        Self {
            addresses: vec![address],
        }
    }

    /// Connects to the address that a plan uses, and to the name's address of the other version of IP, if any.
    pub fn to_both(used: SocketAddr, other: Option<SocketAddr>) -> Self {
        let mut addresses = vec![used];
        addresses.extend(other);
        Self { addresses }
    }
}

impl Step for Connects {
    fn name(&self) -> String {
        let port = self.addresses.first().map_or(0, SocketAddr::port);
        format!("TCP port {port}")
    }

    /// Takes five handshakes to each address, and 3.5 s for one that does not answer.
    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        session
            .watcher
            .step(&format!("connecting to {}", self.name()), CONNECT_TIMEOUT);
        let mut tried: Vec<Tried> = self.addresses.iter().copied().map(Tried::new).collect();
        let stop = Arc::clone(&session.stop);
        let time_left = session.time_left();
        let until = time_left.map(|left| Instant::now() + left);
        let left = || {
            until.map_or(CONNECT_TIMEOUT, |until| {
                until
                    .saturating_duration_since(Instant::now())
                    .min(CONNECT_TIMEOUT)
            })
        };
        // Side by side, so that what changes with time changes for both, and one that is silent holds up no other.
        thread::scope(|scope| {
            for one in &mut tried {
                scope.spawn(|| {
                    for _ in 0..CONNECTS {
                        one.again(&stop, left());
                        thread::sleep(PAUSE);
                    }
                });
            }
        });
        let mut found = Yield::default();
        for one in tried {
            let outcome = Outcome::Port(Box::new(one.result()));
            found.add(Measured::until_now(one.started_ns, outcome));
        }
        Ok(found)
    }
}

/// What came of one address so far.
struct Tried {
    started_ns: u64,
    address: SocketAddr,
    tried: u64,
    times: Vec<f64>,
    failed: Option<ConnectError>,
}

impl Tried {
    fn new(address: SocketAddr) -> Self {
        Self {
            started_ns: clock::monotonic_ns(),
            address,
            tried: 0,
            times: Vec::new(),
            failed: None,
        }
    }

    /// Once more, unless it failed before.
    fn again(&mut self, stop: &AtomicBool, timeout: Duration) {
        if self.failed.is_some() || timeout.is_zero() || stop.load(Ordering::Relaxed) {
            return;
        }
        self.tried += 1;
        let started = Instant::now();
        match tcp::connect(self.address, timeout, &TcpOptions::default()) {
            Ok(_) => self.times.push(started.elapsed().as_secs_f64()),
            Err(why) => self.failed = Some(why),
        }
    }

    fn result(&self) -> PortResult {
        let state = match &self.failed {
            _ if !self.times.is_empty() => Some(PortState::Open),
            Some(ConnectError::Refused) => Some(PortState::Refused),
            Some(ConnectError::TimedOut) => Some(PortState::Filtered),
            Some(ConnectError::Unreachable(_)) => Some(PortState::Unreachable),
            Some(ConnectError::NoPort | ConnectError::Other(_)) | None => None,
        };
        PortResult {
            address: self.address.ip().to_string(),
            port: self.address.port(),
            tried: self.tried,
            connected: self.times.len() as u64,
            connect_s: Distribution::of(self.times.iter().copied()),
            error: self.failed.as_ref().map(ToString::to_string),
            state,
            ..PortResult::default()
        }
    }
}

/// Whether that address answered a SYN of a Run: a host that refuses a connection is there.
pub(crate) fn answered(run: &Run, to: IpAddr) -> bool {
    let to = to.to_string();
    let answers = |outcome: &Outcome| match outcome {
        Outcome::Port(port) if port.address == to => {
            port.connected > 0 || port.state == Some(PortState::Refused)
        }
        _ => false,
    };
    run.measurements.iter().any(|m| answers(&m.outcome))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_open_port_and_a_closed_one_are_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // Discard (RFC 863), where nothing listens and which no program gets that asks for any port.
        let closed = SocketAddr::from(([127, 0, 0, 1], 9));
        let addresses = [listener.local_addr().unwrap(), closed];
        let stop = AtomicBool::new(false);
        let [open, refused] = addresses.map(|address| {
            let mut tried = Tried::new(address);
            (0..CONNECTS).for_each(|_| tried.again(&stop, CONNECT_TIMEOUT));
            tried.result()
        });
        assert_eq!(
            (open.connected, open.state),
            (CONNECTS, Some(PortState::Open))
        );
        assert!(open.connect_s.is_some() && open.error.is_none());
        assert_eq!(
            (refused.tried, refused.state),
            (1, Some(PortState::Refused))
        );
    }
}
