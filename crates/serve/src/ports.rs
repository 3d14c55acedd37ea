//! The sockets of a responder.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plumb_net::{bulk, tcp};
use plumb_wire::native::spec;

use crate::error::ServeError;

/// Both sockets of one address.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    pub(crate) listener: TcpListener,
    pub(crate) echo: UdpSocket,
}

/// Listeners that a service manager opened for this process, each until it is taken.
#[derive(Debug, Default)]
pub(crate) struct Inherited(Mutex<Vec<TcpListener>>);

impl Inherited {
    pub(crate) fn of(listeners: Vec<TcpListener>) -> Self {
        Self(Mutex::new(listeners))
    }

    /// The one of that address and port.
    fn take(&self, address: SocketAddr) -> Option<TcpListener> {
        let mut listeners = self.lock();
        let everywhere = |address: SocketAddr| address.ip().is_unspecified();
        let is_it = |listener: &TcpListener| {
            listener.local_addr().is_ok_and(|its| {
                let same = its.ip() == address.ip() || everywhere(its) && everywhere(address);
                its.port() == address.port() && same
            })
        };
        let at = listeners.iter().position(is_it)?;
        Some(listeners.swap_remove(at))
    }

    /// The addresses of the listeners that were not taken.
    pub(crate) fn left(&self) -> Vec<SocketAddr> {
        let listeners = self.lock();
        let addresses = listeners.iter().map(TcpListener::local_addr);
        addresses.filter_map(Result::ok).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TcpListener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ports that are tried where any will do: the system chooses one that is free for TCP, and it
/// may be taken for UDP.
const PORT_TRIES: usize = 8;

pub(crate) fn bind(address: SocketAddr, inherited: &Inherited) -> Result<Port, ServeError> {
    let tries = if address.port() == 0 { PORT_TRIES } else { 1 };
    let mut result = bind_both(address, inherited);
    for _ in 1..tries {
        if !matches!(result, Err(ServeError::InUse { .. })) {
            break;
        }
        result = bind_both(address, inherited);
    }
    result
}

/// A socket of TCP alone.
pub(crate) fn listen(
    address: SocketAddr,
    inherited: &Inherited,
) -> Result<(SocketAddr, TcpListener), ServeError> {
    let listen = |address| {
        let listener = match inherited.take(address) {
            Some(listener) => tcp::adopt(listener)?,
            None => tcp::listen(address)?,
        };
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
    listening.map_err(failed(address, "TCP"))
}

fn failed(address: SocketAddr, protocol: &'static str) -> impl Fn(io::Error) -> ServeError {
    move |source| match source.kind() {
        io::ErrorKind::AddrInUse => ServeError::InUse { address, protocol },
        _ => ServeError::Listen { address, source },
    }
}

fn bind_both(address: SocketAddr, inherited: &Inherited) -> Result<Port, ServeError> {
    let (bound, listener) = listen(address, inherited)?;
    let failed = |protocol| failed(address, protocol);
    let echo = UdpSocket::bind(bound).map_err(failed("UDP"))?;
    // With the sockets of UDP streams, and only now, so that it is seen when another has it.
    bulk::share_port(&echo).map_err(failed("UDP"))?;
    Ok(Port {
        address: bound,
        listener,
        echo,
    })
}

/// The unspecified IPv4 address instead of `address`, which is the IPv6 one, where `error` means that the machine
/// has no IPv6.
pub(crate) fn without_ipv6(address: SocketAddr, error: &io::Error) -> Option<SocketAddr> {
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn connections_never_run_the_machines_default_first() {
        let port = bind((Ipv4Addr::LOCALHOST, 0).into(), &Inherited::default()).unwrap();
        let _client = std::net::TcpStream::connect(port.address).unwrap();
        let (accepted, _) = tcp::accept(&port.listener, Duration::from_secs(2)).unwrap();
        assert_eq!(
            tcp::congestion_control(&accepted).unwrap(),
            spec::DEFAULT_CONGESTION_CONTROL
        );
    }

    #[test]
    fn a_listener_that_was_open_before_is_taken_once() {
        let before = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = before.local_addr().unwrap();
        let inherited = Inherited::of(vec![before]);
        let (other, _) = listen("127.0.0.1:0".parse().unwrap(), &inherited).unwrap();
        assert_ne!(other, address);
        assert_eq!(inherited.left(), [address]);
        let (taken, listener) = listen(address, &inherited).unwrap();
        assert_eq!((taken, inherited.left()), (address, Vec::new()));
        let _client = std::net::TcpStream::connect(address).unwrap();
        tcp::accept(&listener, Duration::from_secs(2)).unwrap();
        let twice = listen(address, &inherited).unwrap_err();
        assert!(matches!(twice, ServeError::InUse { .. }), "{twice}");
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
