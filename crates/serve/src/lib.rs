//! The far end: one responder for every client, with limits.
//!
//! Threads: one accepts, one echoes and one reflects for each address, one runs while a connection says what it is, two for
//! each session, one for each stream and a sampler while a phase runs, one while a path is traced. Each says what ends it.

mod admission;
mod clock;
mod disk;
pub mod echo;
mod greeting;
mod listener;
mod registry;
mod session;
mod silence;
mod stamp;
mod tracing;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

use plumb_load::tls::{Identity, TlsError};
use plumb_net::{bulk, tcp};
use plumb_wire::native::control::Limits;
use plumb_wire::native::spec;

use registry::Registry;
pub use stamp::StampConfig;

/// What a responder serves, and how much of it.
#[derive(Debug, Clone)]
pub struct Config {
    /// Addresses to listen on, TCP and UDP. The unspecified IPv6 address serves IPv4 too, and
    /// stands for the unspecified IPv4 address where there is no IPv6.
    pub listen: Vec<SocketAddr>,
    /// Longest phase of load; above zero.
    pub max_duration: Duration,
    /// Most streams of one phase, both directions together: 1 to [`spec::MOST_STREAMS`].
    pub max_streams: u32,
    /// Most sessions at once; at least 1.
    pub max_clients: usize,
    /// Directory in which clients may have temporary files; none when absent.
    pub disk: Option<PathBuf>,
    /// The STAMP reflector on the same addresses; none when absent.
    pub stamp: Option<StampConfig>,
    /// Whether paths towards clients are traced for them.
    pub traces: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv6Addr::UNSPECIFIED, spec::PORT))],
            max_duration: spec::MAX_DURATION,
            max_streams: spec::MAX_STREAMS,
            max_clients: spec::MAX_CLIENTS,
            disk: None,
            stamp: None,
            traces: true,
        }
    }
}

/// Why a responder cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A limit with which nothing could be served.
    #[error("cannot serve with {option} {value}: write {wanted}")]
    Limit {
        /// The option of `plumb serve` that sets it.
        option: &'static str,
        /// As configured.
        value: String,
        /// What it may be.
        wanted: String,
    },
    /// The directory for temporary files cannot be used.
    #[error("cannot lend {}: {source}; check that it is a directory and may be written to", disk.display())]
    Disk {
        /// As configured.
        disk: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another program has the port.
    #[error(
        "cannot listen on {address}: another program uses the {protocol} port (is 'plumb serve' running already?); \
         stop it, or choose another port"
    )]
    InUse {
        /// As configured.
        address: SocketAddr,
        /// TCP or UDP.
        protocol: &'static str,
    },
    /// The address cannot be had for another reason.
    #[error(
        "cannot listen on {address}: {source}; check the address and the port (below 1024 needs privilege)"
    )]
    Listen {
        /// As configured.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The machine gives no thread.
    #[error("cannot start a thread: {0}; look at the limit of processes (ulimit -u)")]
    Thread(io::Error),
    /// The machine gives no random numbers, without which sessions could be guessed.
    #[error("cannot get random numbers: {0}")]
    Random(getrandom::Error),
    /// No certificate could be made.
    #[error(transparent)]
    Certificate(TlsError),
    /// The echo over UDP failed while it ran.
    #[error("the UDP echo failed: {0}; start the responder again")]
    Echo(io::Error),
    /// The STAMP reflector failed while it ran.
    #[error("the STAMP reflector failed: {0}; start the responder again, or with --no-stamp")]
    Stamp(io::Error),
}

/// A responder that listens.
#[derive(Debug)]
pub struct Server {
    config: Config,
    ports: Vec<Port>,
    reflectors: stamp::Reflectors,
}

/// Both sockets of one address.
#[derive(Debug)]
struct Port {
    address: SocketAddr,
    listener: TcpListener,
    echo: UdpSocket,
}

impl Server {
    /// Listens on every address of the configuration.
    ///
    /// # Errors
    /// When one of them cannot be had, or a limit is one with which nothing could be served.
    pub fn bind(config: Config) -> Result<Self, ServeError> {
        check(&config)?;
        if let Some(disk) = &config.disk {
            tempfile::tempfile_in(disk).map_err(|source| ServeError::Disk {
                disk: disk.clone(),
                source,
            })?;
        }
        let ports = config
            .listen
            .iter()
            .map(|address| bind(*address))
            .collect::<Result<_, _>>()?;
        let reflectors = match &config.stamp {
            Some(stamp) => stamp::Reflectors::bind(stamp, &config.listen)?,
            None => stamp::Reflectors::default(),
        };
        Ok(Self {
            config,
            ports,
            reflectors,
        })
    }

    /// Where it listens, with the ports that the system chose where the configuration says 0.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.ports.iter().map(|port| port.address).collect()
    }

    /// Where the STAMP reflector listens; nowhere where it is off or could not.
    pub fn stamp_addresses(&self) -> Vec<SocketAddr> {
        self.reflectors.addresses()
    }

    /// What is not served although nobody switched it off, and why.
    pub fn missing(&self) -> Option<&ServeError> {
        self.reflectors.missing()
    }

    /// Serves until `stop` is set. Sessions end within a tenth of a second of that, and all that waits for a
    /// far end within half a second, or a second where a path is traced.
    ///
    /// # Errors
    /// When it cannot start, or the echo fails; `stop` is then set.
    pub fn run(self, stop: &AtomicBool) -> Result<(), ServeError> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(ServeError::Random)?;
        let limits = Limits {
            max_duration_s: self.config.max_duration.as_secs_f64(),
            max_streams: self.config.max_streams,
        };
        let shared = &Shared {
            limits,
            registry: Registry::new(self.config.max_clients),
            identity: Identity::generate().map_err(ServeError::Certificate)?,
            disk: self.config.disk.clone(),
            traces: self.config.traces,
            stop,
        };
        // Whatever fails ends the rest: half a responder would be taken for a bad path.
        let stop_with = |error| {
            stop.store(true, Ordering::Relaxed);
            Err(error)
        };
        std::thread::scope(|scope| {
            let mut echoes = Vec::new();
            for reflecting in self.reflectors.start(scope, stop) {
                match reflecting {
                    Ok(thread) => echoes.push(thread),
                    Err(error) => return stop_with(ServeError::Thread(error)),
                }
            }
            for Port { listener, echo, .. } in self.ports {
                let echoing = Builder::new().name("plumb-echo".to_owned());
                let echoing = echoing.spawn_scoped(scope, move || {
                    let asked = |asked| shared.registry.ask(asked);
                    let declared = |peer| shared.registry.declared(peer);
                    echo::run(
                        echo,
                        secret,
                        &echo::Clients {
                            asked: &asked,
                            declared: &declared,
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

/// What all threads of a responder share.
#[derive(Debug)]
struct Shared<'a> {
    limits: Limits,
    registry: Registry,
    identity: Identity,
    disk: Option<PathBuf>,
    traces: bool,
    stop: &'a AtomicBool,
}

/// Whether the limits let anything be served, and what they let can be carried.
fn check(config: &Config) -> Result<(), ServeError> {
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
    if config.max_duration.is_zero() {
        let wanted = "a time above 0, like 120s".to_owned();
        return limit("--max-duration", "0s".to_owned(), wanted);
    }
    Ok(())
}

/// Ports that are tried where any will do: the system chooses one that is free for TCP, and it
/// may be taken for UDP.
const PORT_TRIES: usize = 8;

fn bind(address: SocketAddr) -> Result<Port, ServeError> {
    let tries = if address.port() == 0 { PORT_TRIES } else { 1 };
    let mut result = bind_both(address);
    for _ in 1..tries {
        if !matches!(result, Err(ServeError::InUse { .. })) {
            break;
        }
        result = bind_both(address);
    }
    result
}

fn bind_both(address: SocketAddr) -> Result<Port, ServeError> {
    let failed = |protocol: &'static str| {
        move |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => ServeError::InUse { address, protocol },
            _ => ServeError::Listen { address, source },
        }
    };
    let listen = |address| {
        let listener = tcp::listen(address)?;
        // What is accepted begins with it. A socket that began with the machine's default and changed
        // later keeps what that one set up: after BBR, CUBIC too is paced (Linux 6.18). A
        // kernel without it says so when a stream asks for it.
        let _ = tcp::set_congestion_control(&listener, spec::DEFAULT_CONGESTION_CONTROL);
        Ok((listener.local_addr()?, listener))
    };
    let listening = listen(address).or_else(|error| match without_ipv6(address, &error) {
        Some(address) => listen(address),
        None => Err(error),
    });
    let (bound, listener) = listening.map_err(failed("TCP"))?;
    let echo = UdpSocket::bind(bound).map_err(failed("UDP"))?;
    // With the sockets of UDP streams, and only now, so that it is seen when another has it.
    bulk::share_port(&echo).map_err(failed("UDP"))?;
    Ok(Port {
        address: bound,
        listener,
        echo,
    })
}

/// The IPv4 address that stands for `address` on a machine without IPv6.
fn without_ipv6(address: SocketAddr, error: &io::Error) -> Option<SocketAddr> {
    // A kernel without IPv6 knows no such family; one that has it switched off, no address.
    let absent = error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(ADDRESS_FAMILY_NOT_SUPPORTED);
    (absent && address.is_ipv6() && address.ip().is_unspecified())
        .then(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
}

/// EAFNOSUPPORT of Linux (`include/uapi/asm-generic/errno.h`), for which std has no kind.
const ADDRESS_FAMILY_NOT_SUPPORTED: i32 = 97;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn connections_never_run_the_machines_default_first() {
        let port = bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let _client = std::net::TcpStream::connect(port.address).unwrap();
        let (accepted, _) = tcp::accept(&port.listener, Duration::from_secs(2)).unwrap();
        assert_eq!(
            tcp::congestion_control(&accepted).unwrap(),
            spec::DEFAULT_CONGESTION_CONTROL
        );
    }

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

    #[test]
    fn the_unspecified_address_falls_back_to_ipv4() {
        let fallback = |text: &str, error: i32| {
            let address = text.parse().ok()?;
            without_ipv6(address, &io::Error::from_raw_os_error(error)).map(|a| a.to_string())
        };
        assert_eq!(fallback("[::]:7586", 97).as_deref(), Some("0.0.0.0:7586"));
        // EADDRNOTAVAIL, as with net.ipv6.conf.all.disable_ipv6.
        assert_eq!(fallback("[::]:0", 99).as_deref(), Some("0.0.0.0:0"));
        assert_eq!(fallback("[::]:7586", 98), None);
        assert_eq!(fallback("[2001:db8::1]:7586", 99), None);
    }
}
