//! The interface or source address by which packets leave this host.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use socket2::{Domain, Protocol, Socket, Type};

use crate::socket_options::local_address;

/// The longest name of an interface, in bytes (linux/if.h, IFNAMSIZ without the zero at its end); the
/// kernel would cut a longer one without a word.
const MAX_NAME_BYTES: usize = 15;

/// The outlet of this host that packets take; by default the routing table decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outlet {
    /// The interface, by its name (SO_BINDTODEVICE).
    pub interface: Option<String>,
    /// The address to send from.
    pub source: Option<IpAddr>,
}

/// Why packets cannot leave by an outlet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutletError {
    /// There is no such interface.
    #[error("this host has no interface {0}; `ip link` lists those it has")]
    NoInterface(String),
    /// There is no such address.
    #[error(
        "packets would bear {0}, which is no address of this host; `ip address` lists those it has"
    )]
    NoAddress(IpAddr),
    /// One is of IPv4 and the other of IPv6.
    #[error(
        "{from} and {to} are not of one version of IP; -4 and -6 choose among the addresses of a name"
    )]
    OtherVersion {
        /// The address to send from.
        from: IpAddr,
        to: IpAddr,
    },
    #[error("the kernel refuses it ({0})")]
    Other(String),
}

/// No interface and no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither an address nor the name of an interface, of 1 to {MAX_NAME_BYTES} bytes")]
pub struct NoOutlet(String);

impl FromStr for Outlet {
    type Err = NoOutlet;

    /// An address, or else the name of an interface.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(source) = text.parse() {
            return Ok(Self {
                source: Some(source),
                interface: None,
            });
        }
        let name = (1..=MAX_NAME_BYTES).contains(&text.len())
            && !text.contains(|c: char| c == '/' || c.is_whitespace());
        match name {
            true => Ok(Self {
                interface: Some(text.to_owned()),
                source: None,
            }),
            false => Err(NoOutlet(text.to_owned())),
        }
    }
}

impl Outlet {
    /// Whether packets to `to` can leave by it, as far as this host knows; nothing is sent.
    ///
    /// # Errors
    /// When they cannot.
    pub fn check(&self, to: SocketAddr) -> Result<(), OutletError> {
        if let Some(from) = self.source.filter(|from| from.is_ipv4() != to.is_ipv4()) {
            return Err(OutletError::OtherVersion { from, to: to.ip() });
        }
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP));
        let applied = socket.and_then(|socket| self.apply(&socket, to));
        applied.map_err(|error| match (&self.interface, self.source) {
            (Some(name), _) if error.raw_os_error() == Some(libc::ENODEV) => {
                OutletError::NoInterface(name.clone())
            }
            (_, Some(source)) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                OutletError::NoAddress(source)
            }
            _ => OutletError::Other(error.to_string()),
        })
    }

    /// Binds a socket that will talk to `target`.
    pub(crate) fn apply(&self, socket: &Socket, target: SocketAddr) -> io::Result<()> {
        if let Some(interface) = &self.interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        if let Some(source) = self.source {
            let mut from = SocketAddr::new(source, 0);
            if let (SocketAddr::V6(from), SocketAddr::V6(to)) = (&mut from, target) {
                from.set_scope_id(to.scope_id());
            }
            socket.bind(&from.into())?;
        }
        Ok(())
    }
}

/// The source address of packets to a target that leave by this outlet.
///
/// # Errors
/// When there is no route to it.
pub fn source_towards(target: SocketAddr, outlet: &Outlet) -> io::Result<IpAddr> {
    let socket = connected(target, outlet)?;
    local_address(&socket).map(|address| address.ip())
}

/// A UDP socket connected to a target, which sends nothing by that.
pub(crate) fn connected(mut target: SocketAddr, outlet: &Outlet) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(target),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    outlet.apply(&socket, target)?;
    // Any port but zero will do; 9 is discard (RFC 863).
    target.set_port(9);
    socket.connect(&target.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn outlet(text: &str) -> Outlet {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_or_a_name_is_an_outlet() {
        assert_eq!(outlet("192.0.2.1").source, Some([192, 0, 2, 1].into()));
        assert_eq!(outlet("2001:db8::1").interface, None);
        assert_eq!(outlet("eth0.7").interface.as_deref(), Some("eth0.7"));
        for wrong in ["", "a/b", "eth 0", "an-interface-of-17"] {
            assert!(wrong.parse::<Outlet>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_this_host_lacks_is_said() {
        let to: SocketAddr = "127.0.0.1:80".parse().unwrap();
        for (text, wanted) in [
            ("lo", None),
            ("127.0.0.9", None),
            ("no-such0", Some("no interface no-such0")),
            // TEST-NET-1 (RFC 5737).
            (
                "192.0.2.1",
                Some("192.0.2.1, which is no address of this host"),
            ),
            ("::1", Some("not of one version of IP")),
        ] {
            let checked = outlet(text).check(to);
            match (checked, wanted) {
                (Ok(()), None) => {}
                (Err(error), Some(wanted)) => {
                    assert!(error.to_string().contains(wanted), "{error}");
                }
                (checked, _) => panic!("{text}: {checked:?}"),
            }
        }
        let from = outlet("127.0.0.9");
        assert_eq!(source_towards(to, &from).unwrap(), from.source.unwrap());
    }
}
