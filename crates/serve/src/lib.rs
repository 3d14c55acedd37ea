//! The far end: one responder for every client, with limits.
//!
//! Threads: one accepts and one echoes for each address, one runs while a connection says what it is, two for
//! each session, one for each stream and a sampler while a phase runs, one while a path is traced. Each protocol of
//! others' clients has threads of its own. Where a thread starts, a comment says what ends it.

mod access;
mod admission;
mod clock;
mod datagrams;
mod descriptors;
mod disk;
pub mod echo;
mod error;
mod events;
mod gate;
mod handshake;
mod listener;
mod policy;
mod ports;
mod protocol;
pub mod protocols;
mod proved;
mod registry;
mod session;
mod settings;
mod shared;
mod silent_places;
mod speaks_first;
mod tracing;

use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

use plumb_load::tls::Identity;
use plumb_wire::native::control::Limits;
use plumb_wire::native::spec;

pub use error::ServeError;
use gate::Gate;
use policy::LOADS;
pub use policy::{Policy, PolicyCell, StrangersLimits};
use ports::{Inherited, Port, bind};
use protocol::{Binding, Protocol};
pub use protocol::{Entry, Listening, Transport, Wanted};
use proved::Proved;
use registry::Registry;
pub use settings::{Judge, Settings, StampSettings, WebSettings};
use shared::Shared;

/// What a responder serves, and how much of it.
#[derive(Debug, Clone)]
pub struct Config {
    /// Addresses to listen on, TCP and UDP. The unspecified IPv6 address serves IPv4 too, and
    /// means the unspecified IPv4 address where there is no IPv6.
    pub listen: Vec<SocketAddr>,
    /// Longest phase of load; above zero.
    pub max_duration: Duration,
    /// Most streams of one phase, both directions together: 1 to [`spec::MOST_STREAMS`].
    pub max_streams: u32,
    /// Most sessions at once; at least 1.
    pub max_clients: usize,
    /// Directory in which clients may have temporary files; none when absent.
    pub disk: Option<PathBuf>,
    /// Most loads at once, of all protocols together, one of each address; those that yield do not count.
    pub max_loads: u32,
    /// Protocols of others' clients, on the same addresses.
    pub protocols: Vec<Wanted>,
    /// What they are configured with.
    pub settings: Settings,
    /// Whether paths towards clients are traced for them.
    pub traces: bool,
    /// Whom it serves; may be replaced while it runs.
    pub policy: Arc<PolicyCell>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv6Addr::UNSPECIFIED, spec::PORT))],
            max_duration: spec::MAX_DURATION,
            max_streams: spec::MAX_STREAMS,
            max_clients: spec::MAX_CLIENTS,
            disk: None,
            max_loads: LOADS,
            protocols: Vec::new(),
            settings: Settings::default(),
            traces: true,
            policy: Arc::default(),
        }
    }
}

impl Config {
    /// Checks all but the addresses, as the start does.
    ///
    /// # Errors
    /// Where a limit is one with which nothing could be served, or more than this process may have open, or files cannot
    /// be lent.
    pub fn check(&self) -> Result<(), ServeError> {
        check(self).map(drop)
    }
}

/// A responder that listens.
#[derive(Debug)]
pub struct Server {
    config: Config,
    ports: Vec<Port>,
    protocols: Vec<(&'static Entry, Box<dyn Protocol>)>,
    missing: Vec<(&'static Entry, ServeError)>,
    /// Where listeners were inherited that nothing is served on.
    left: Vec<SocketAddr>,
    /// How many silent connections there may be.
    silent: usize,
}

impl Server {
    /// Listens on every address of the configuration.
    ///
    /// # Errors
    /// When one of them cannot be had, or a limit is one with which nothing could be served, or more than this
    /// process may have open.
    pub fn bind(config: Config) -> Result<Self, ServeError> {
        Self::inherit(config, Vec::new())
    }

    /// The same where TCP listens already on some of them, as a service manager opens sockets.
    ///
    /// # Errors
    /// Like [`Self::bind`].
    pub fn inherit(config: Config, listeners: Vec<TcpListener>) -> Result<Self, ServeError> {
        let silent = check(&config)?;
        let inherited = Inherited::of(listeners);
        let ports = config
            .listen
            .iter()
            .map(|address| bind(*address, &inherited))
            .collect::<Result<_, _>>()?;
        let listen: Vec<IpAddr> = config.listen.iter().map(SocketAddr::ip).collect();
        let (mut protocols, mut missing) = (Vec::new(), Vec::new());
        for wanted in &config.protocols {
            let binding = Binding {
                listen: &listen,
                port: wanted.port,
                settings: &config.settings,
                inherited: &inherited,
            };
            match (wanted.entry.bind)(&binding) {
                Ok(bound) => protocols.push((wanted.entry, bound)),
                Err(error) if wanted.is_required => return Err(error),
                Err(error) => missing.push((wanted.entry, error)),
            }
        }
        Ok(Self {
            config,
            ports,
            protocols,
            missing,
            left: inherited.left(),
            silent,
        })
    }

    /// Where it listens, with the ports that the system chose where the configuration says 0.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.ports.iter().map(|port| port.address).collect()
    }

    /// Where others' clients are served, by protocol.
    pub fn listening(&self) -> Vec<(&'static Entry, Listening)> {
        let all = self.protocols.iter();
        let of = |(entry, protocol): &(&'static Entry, Box<dyn Protocol>)| {
            let entry = *entry;
            let listening = protocol.listening().into_iter();
            listening.map(move |at| (entry, at)).collect::<Vec<_>>()
        };
        all.flat_map(of).collect()
    }

    /// What is not served although it was not switched off, and why.
    pub fn missing(&self) -> &[(&'static Entry, ServeError)] {
        &self.missing
    }

    /// Where listeners were inherited that nothing is served on.
    pub fn left(&self) -> &[SocketAddr] {
        &self.left
    }

    /// Serves until `stop` is set. Sessions end within a tenth of a second of that, and all that waits for a
    /// far end within half a second, or a second where a path is traced.
    ///
    /// # Errors
    /// When it cannot start, or the echo fails; `stop` is then set.
    pub fn run(self, stop: &Arc<AtomicBool>) -> Result<(), ServeError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(ServeError::Random)?;
        let limits = Limits {
            max_duration_s: self.config.max_duration.as_secs_f64(),
            max_streams: self.config.max_streams,
        };
        let shared = &Arc::new(Shared {
            limits,
            registry: Arc::new(Registry::new(
                self.config.max_clients,
                self.config.max_loads,
                self.silent,
            )),
            identity: Identity::generate().map_err(ServeError::Certificate)?,
            disk: self.config.disk.clone(),
            traces: self.config.traces,
            policy: Arc::clone(&self.config.policy),
            proved: Proved::new(),
            stop: Arc::clone(stop),
        });
        // Whatever fails ends the rest: half a responder would be taken for a bad path.
        let stop_with = |error| {
            stop.store(true, Ordering::Relaxed);
            Err(error)
        };
        std::thread::scope(|scope| {
            let mut echoes = Vec::new();
            for (entry, protocol) in self.protocols {
                let name = format!("plumb-{}", entry.name);
                let serving = Builder::new().name(name).spawn_scoped(scope, move || {
                    let failed = |source| ServeError::Protocol {
                        protocol: entry.name,
                        source,
                    };
                    let served = protocol.run(&Gate::of(shared));
                    served.map_err(failed).or_else(stop_with)
                });
                match serving {
                    Ok(thread) => echoes.push(thread),
                    Err(error) => return stop_with(ServeError::Thread(error)),
                }
            }
            for Port { listener, echo, .. } in self.ports {
                let echoing = Builder::new().name("plumb-echo".to_owned());
                let echoing = echoing.spawn_scoped(scope, move || {
                    let asked = |asked| shared.registry.ask(asked);
                    let declared = |peer| shared.registry.declared(peer);
                    let answers = |peer| shared.answers(peer);
                    echo::run(
                        echo,
                        secret,
                        &echo::Clients {
                            asked: &asked,
                            declared: &declared,
                            answers: &answers,
                        },
                        stop,
                    )
                    .map(|_| ())
                    .or_else(|error| stop_with(ServeError::Echo(error)))
                });
                let listening = Builder::new().name("plumb-listen".to_owned());
                let listening =
                    listening.spawn_scoped(scope, move || listener::run(shared, &listener));
                match (listening, echoing) {
                    (Ok(_), Ok(thread)) => echoes.push(thread),
                    (Err(error), _) | (_, Err(error)) => {
                        return stop_with(ServeError::Thread(error));
                    }
                }
            }
            echoes
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or(Ok(())))
        })
    }
}

/// Whether the limits let anything be served, and what they let can be carried.
/// How many silent connections there may be with that configuration.
fn check(config: &Config) -> Result<usize, ServeError> {
    let limit = |option, value: String, wanted: String| {
        Err(ServeError::Limit {
            option,
            value,
            wanted,
        })
    };
    let streams = 1..=spec::MOST_STREAMS;
    if !streams.contains(&config.max_streams) {
        let wanted = format!("{} to {}", streams.start(), streams.end());
        return limit("--max-streams", config.max_streams.to_string(), wanted);
    }
    if config.max_clients == 0 {
        return limit("--max-clients", "0".to_owned(), "1 or more".to_owned());
    }
    if config.max_loads == 0 {
        return limit("loads", "0".to_owned(), "1 or more".to_owned());
    }
    if config.max_duration.is_zero() {
        let wanted = "a time above 0, like 120s".to_owned();
        return limit("--max-duration", "0s".to_owned(), wanted);
    }
    let silent = descriptors::allow(config.max_clients, config.max_loads, config.disk.is_some())?;
    if let Some(disk) = &config.disk {
        tempfile::tempfile_in(disk).map_err(|source| ServeError::Disk {
            disk: disk.clone(),
            source,
        })?;
    }
    Ok(silent)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn limits_with_which_nothing_could_be_served_are_named() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config {
                listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
                ..Config::default()
            };
            change(&mut config);
            Server::bind(config).err().map(|error| error.to_string())
        };
        assert_eq!(refused(|_| ()), None);
        assert_eq!(refused(|c| c.max_streams = spec::MOST_STREAMS), None);
        assert!(refused(|c| c.max_loads = 0).is_some());
        assert_eq!(
            refused(|c| c.max_streams = spec::MOST_STREAMS + 1).as_deref(),
            Some("cannot serve with --max-streams 192: write 1 to 191")
        );
        assert_eq!(
            refused(|c| c.max_streams = 0).as_deref(),
            Some("cannot serve with --max-streams 0: write 1 to 191")
        );
        assert_eq!(
            refused(|c| c.max_clients = 0).as_deref(),
            Some("cannot serve with --max-clients 0: write 1 or more")
        );
        assert_eq!(
            refused(|c| c.max_duration = Duration::ZERO).as_deref(),
            Some("cannot serve with --max-duration 0s: write a time above 0, like 120s")
        );
    }
}
