//! `plumb port`: TCP ports, with what is said on them, part by part.

mod hints;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plumb_load::Client;
use plumb_model::distribution::Distribution;
use plumb_model::results::Outcome;
use plumb_model::results::port::{FirstWord, IdleResult, PortResult, PortState, PortTls};
use plumb_net::clock::monotonic_ns;
use plumb_net::egress::Outlet;
use plumb_net::tcp::{ConnectError, TcpOptions};
use plumb_probe::Trust;
use plumb_probe::exchange::{Exchange, NoConnection, Talk, exchange};
use plumb_probe::idle::{self, Speaker};
use plumb_wire::native::spec::MAX_SILENCE;

use crate::conductor::{Conducted, Conductor, Went};
use crate::error::MeasureError;
use crate::progress::{Nobody, Watcher};
use crate::record::{Judgement, Measured};
use crate::session::Session;
use crate::step::Step;
use crate::tunnel;
use crate::yields::Yield;

/// Ports whose services begin with TLS (IANA's registry of services).
const TLS_PORTS: &[u16] = &[
    443, 465, 563, 636, 853, 989, 990, 992, 993, 995, 5061, 5671, 6514, 8443, 8883,
];
/// Ports at which a page can be asked for, with TLS or without.
const HTTP_PORTS: &[u16] = &[80, 443, 3000, 8000, 8008, 8080, 8081, 8443, 8888];

/// How long what a service says by itself is waited for: reverse look-ups hold many up for a second.
const LISTEN: Duration = Duration::from_millis(1500);

/// How long a responder is waited for to say that it is one.
const GREETING: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct PortPlan {
    /// The host as the user typed it.
    pub name: String,
    pub address: SocketAddr,
    /// Time that looking the name up took; `None` where an address was typed.
    pub name_s: Option<f64>,
    /// The canonical name to which the name is an alias.
    pub canonical_name: Option<String>,
    pub ports: Vec<u16>,
    pub tries: u64,
    /// How long each may take.
    pub timeout: Duration,
    /// Whether to speak TLS; `None` for the ports that usually do.
    pub tls: Option<bool>,
    /// Whether to ask for a page's head; `None` for the ports that usually have one.
    pub http: Option<bool>,
    pub path: String,
    /// How long connections are silent at most, to see how long they are kept.
    pub idle: Option<Duration>,
    /// By which way connections leave this host.
    pub outlet: Outlet,
}

/// Ports that are tried at once: several filtered ones take no longer than one, and no host sees a scan.
const AT_ONCE: usize = 8;

/// Tries the ports, several at once, and records them in order; those that do not answer are a result, too.
///
/// # Errors
/// When it was stopped before any was tried.
pub fn run(
    command: Vec<String>,
    plan: &PortPlan,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let mut conductor = Conductor::towards(command, &plan.name, plan.address.ip(), watcher, stop);
    for ports in plan.ports.chunks(AT_ONCE) {
        if conductor.step(&mut Ports { plan, ports }, 0) == Went::Not {
            conductor.note("Stopped before all ports were tried.");
            break;
        }
    }
    conductor.finish(Judgement::AsAudited)
}

/// Some TCP ports at once.
struct Ports<'a> {
    plan: &'a PortPlan,
    ports: &'a [u16],
}

impl Step for Ports<'_> {
    fn name(&self) -> String {
        match self.ports {
            [port] => format!("port {port}"),
            ports => format!("{} ports", ports.len()),
        }
    }

    /// Each port has a thread of its own, which ends with the last of its tries.
    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let Self { plan, ports } = *self;
        if let [port] = ports {
            return Port { plan, port: *port }.measure(session);
        }
        let what = format!("{} of {}", self.name(), plan.name);
        session.watcher.step(&what, Duration::ZERO);
        let stop = &session.stop;
        let tried: Vec<Measured> = thread::scope(|scope| {
            let threads: Vec<_> = ports
                .iter()
                .map(|port| scope.spawn(|| measured(plan, *port, &Nobody, stop)))
                .collect();
            threads
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .collect()
        });
        let mut out = Yield::default();
        tried.into_iter().for_each(|one| out.add(one));
        Ok(out)
    }
}

/// One TCP port, with what is said on it.
pub struct Port<'a> {
    /// How to try it.
    pub plan: &'a PortPlan,
    pub port: u16,
}

impl Step for Port<'_> {
    fn name(&self) -> String {
        format!("port {}", self.port)
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let Self { plan, port } = self;
        let what = format!("port {port} of {}", plan.name);
        session.watcher.step(&what, Duration::ZERO);
        let measured = measured(plan, *port, session.watcher, &session.stop);
        Ok(Yield::of(measured))
    }
}

fn measured(plan: &PortPlan, port: u16, watcher: &dyn Watcher, stop: &AtomicBool) -> Measured {
    let started_ns = monotonic_ns();
    let result = try_port(plan, port, watcher, stop);
    let measured = Measured::until_now(started_ns, Outcome::Port(Box::new(result)));
    measured.set("timeout_s", plan.timeout.as_secs_f64())
}

fn try_port(plan: &PortPlan, port: u16, watcher: &dyn Watcher, stop: &AtomicBool) -> PortResult {
    let address = SocketAddr::new(plan.address.ip(), port);
    let address = match (plan.address, address) {
        (SocketAddr::V6(scoped), SocketAddr::V6(mut address)) => {
            address.set_scope_id(scoped.scope_id());
            SocketAddr::V6(address)
        }
        (_, address) => address,
    };
    let asks = plan.http.unwrap_or_else(|| HTTP_PORTS.contains(&port));
    let mut result = PortResult {
        address: address.ip().to_string(),
        port,
        name_s: plan.name_s,
        canonical_name: plan.canonical_name.clone(),
        ..PortResult::default()
    };
    let tls = plan.tls.unwrap_or_else(|| TLS_PORTS.contains(&port));
    // Nothing is said that is worth a secret, and what a port is does not hang on its certificate.
    let trust = match tls.then(Trust::anyone).transpose() {
        Ok(trust) => trust,
        Err(error) => {
            result.error = Some(error.to_string());
            return result;
        }
    };
    let mut talk = Talk {
        host: plan.name.clone(),
        tls: trust,
        path: asks.then(|| plan.path.clone()),
        listen: LISTEN,
        dscp: None,
        outlet: plan.outlet.clone(),
    };
    let mut seen: Vec<Exchange> = Vec::new();
    for number in 1..=plan.tries {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        result.tried += 1;
        watcher.update(&format!("connection {number} of {}", plan.tries));
        let state = match exchange(address, &talk, plan.timeout) {
            Ok(exchange) => {
                result.error = exchange.error.clone().or(result.error);
                // A service that sent nothing first is not waited for again.
                if exchange.first_byte.is_none() && exchange.closed.is_none() {
                    talk.listen = Duration::ZERO;
                }
                seen.push(exchange);
                PortState::Open
            }
            Err(NoConnection::Refused(_)) => {
                result.error =
                    Some("connection refused: the host is there, and nothing listens".to_owned());
                PortState::Refused
            }
            Err(NoConnection::NoAnswer) => {
                result.error = Some("no answer: filtered on the path, or no host there".to_owned());
                PortState::Filtered
            }
            Err(NoConnection::Unreachable(why) | NoConnection::Local(why)) => {
                result.error = Some(why);
                PortState::Unreachable
            }
        };
        // One that succeeded says more than any that did not.
        if result.state != Some(PortState::Open) {
            result.state = Some(state);
        }
    }
    fill(&mut result, address.ip(), &plan.outlet, &seen);
    let said = result.first_byte_s.is_some() || result.closed_s.is_some();
    let waited = !asks && !said && seen.iter().any(|seen| seen.error.is_none());
    result.mute_s = waited.then(|| LISTEN.min(plan.timeout).as_secs_f64());
    if let (Some(longest), Some(PortState::Open)) = (plan.idle, result.state) {
        watcher.update("waiting in silence");
        match silence(plan, address, &result, longest, stop) {
            Ok(idle) => result.idle = Some(idle),
            Err(error) => result.error = Some(format!("silence could not be tried: {error}")),
        }
    }
    result
}

/// A responder of plumb's speaks first when it is asked to; before any other service this end does.
fn silence(
    plan: &PortPlan,
    address: SocketAddr,
    seen: &PortResult,
    longest: Duration,
    stop: &AtomicBool,
) -> Result<IdleResult, ConnectError> {
    // A service that says what it is by itself is none, and is not to be puzzled.
    let mute = seen.banner.is_none() && seen.tls.is_none() && seen.http_status.is_none();
    let session = (mute && longest <= MAX_SILENCE)
        .then(|| {
            let patience = plan.timeout.min(GREETING);
            Client::connect_by(&plan.outlet, &plan.name, address, patience).ok()
        })
        .flatten();
    let connections = session.as_ref().map(Client::silent_connections);
    let open = connections
        .map(|connections| move |silence: Duration| connections.open(silence, plan.timeout));
    let speaker = match &open {
        Some(open) => Speaker::Them(open),
        None => Speaker::Us,
    };
    let options = TcpOptions {
        outlet: plan.outlet.clone(),
        ..TcpOptions::default()
    };
    let found = idle::search(address, &options, longest, plan.timeout, speaker, stop)?;
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    Ok(IdleResult {
        kept_s: seconds(found.kept),
        lost_s: seconds(found.lost),
        closed_s: seconds(found.closed),
        tried: found.tried,
        first_word: match session {
            Some(_) => FirstWord::FarEnd,
            None => FirstWord::ThisHost,
        },
    })
}

fn fill(result: &mut PortResult, address: IpAddr, outlet: &Outlet, seen: &[Exchange]) {
    let times = |of: fn(&Exchange) -> Option<Duration>| {
        Distribution::of(seen.iter().filter_map(of).map(|time| time.as_secs_f64()))
    };
    result.connected = seen.len() as u64;
    result.connect_s = times(|seen| Some(seen.connect));
    result.first_byte_s = times(|seen| seen.first_byte);
    result.closed_s = times(|seen| seen.closed);
    let last = seen.iter().rev();
    result.http_status = last
        .clone()
        .find_map(|seen| seen.head.as_ref().map(|h| h.status));
    result.banner = last.clone().find_map(|seen| seen.banner.clone());
    let handshake = times(|seen| seen.tls.as_ref().map(|tls| tls.handshake));
    let tls = last.clone().find_map(|seen| seen.tls.clone());
    result.tls = tls.zip(handshake).map(|(tls, handshake_s)| PortTls {
        version: tls.version,
        cipher_suite: tls.cipher_suite,
        handshake_s,
        names: tls.names,
    });
    let edge = seen
        .last()
        .and_then(|last| hints::edge(last, result.canonical_name.as_deref()));
    // Where nothing answers, a tunnel on the way may be why.
    result.hints = edge
        .into_iter()
        .chain(tunnel::hint(address, outlet))
        .collect();
}
