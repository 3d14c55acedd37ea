//! Intercepts TCP connections between other hosts that pass through this machine, with policy routing alone
//! (ip-rule(8)): packets to the port are routed to a socket here whatever their address, and the sockets may use the
//! addresses of both ends (IP_TRANSPARENT, ip(7)).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::netlink::{Netlink, NetlinkError, PortOf, interface_index};
use crate::sysctl;

/// A routing table of our own, in which every address belongs to this machine. Any number above 255 that no other
/// program uses.
const TABLE: u32 = 7586;

/// Before the main table, which is looked at with 32766 (ip-rule(8)).
const PRIORITY: u32 = 1000;

/// Connections that the kernel holds complete until they are accepted.
const LISTEN_BACKLOG: i32 = 128;

/// Whether the network namespace of the calling thread has IPv6.
fn has_ipv6() -> bool {
    sysctl::read("net.ipv6.conf.lo.disable_ipv6").is_ok_and(|disabled| disabled == "0")
}

/// Sends TCP packets here that come in by the interface `clients` for the port `port`, and what
/// comes back for them by the interface `servers`; in the network namespace of the calling
/// thread, for good.
///
/// # Errors
/// Errors of the kernel: it may lack policy routing.
pub fn intercept(clients: &str, servers: &str, port: u16) -> Result<(), NetlinkError> {
    let loopback =
        interface_index("lo").map_err(NetlinkError::when(|| "find the interface lo".to_owned()))?;
    let mut netlink = Netlink::open()?;
    for family in [Some(libc::AF_INET), has_ipv6().then_some(libc::AF_INET6)] {
        let Some(family) = family.map(|family| family as u8) else {
            continue;
        };
        netlink.add_everything_local(family, loopback, TABLE)?;
        for (interface, which) in [(clients, PortOf::Destination), (servers, PortOf::Source)] {
            netlink.add_port_rule(family, interface, which, port, PRIORITY, TABLE)?;
        }
    }
    Ok(())
}

/// Listens on a port of all addresses, including addresses of other hosts: an accepted connection's local address is
/// the one that the client connected to. IPv4 comes in IPv6's form (RFC 4291, section 2.5.5.2) where there is IPv6.
///
/// # Errors
/// Errors of the kernel.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    let everywhere = match has_ipv6() {
        true => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
        false => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
    };
    let socket = transparent(everywhere)?;
    if everywhere.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&everywhere.into())?;
    socket.listen(LISTEN_BACKLOG)?;
    Ok(socket.into())
}

/// Connects to `server` with the address and port of `client`.
///
/// # Errors
/// Errors of the kernel.
pub fn connect_as(
    client: SocketAddr,
    server: SocketAddr,
    timeout: Duration,
) -> io::Result<TcpStream> {
    let socket = transparent(server)?;
    socket.bind(&client.into())?;
    socket.connect_timeout(&server.into(), timeout)?;
    Ok(socket.into())
}

/// A socket of an address's family that may use the address of any host.
fn transparent(like: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(like), Type::STREAM, Some(Protocol::TCP))?;
    match like {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true)?,
        SocketAddr::V6(_) => socket.set_ip_transparent_v6(true)?,
    }
    // The port of an earlier connection in TIME_WAIT may be used again.
    socket.set_reuse_address(true)?;
    Ok(socket)
}
