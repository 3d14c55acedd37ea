//! netlink(7): what the kernel lists, and the little of rtnetlink(7) that lays out a network.
//!
//! Blocking, one request at a time, in the network namespace of the calling thread.

pub(crate) mod attribute;
pub(crate) mod connection;
mod device;
pub mod driver;
mod error;
mod generic;
pub mod link;
pub mod neighbour;
pub mod queue;
mod routing;
pub mod socket;
pub mod tcp_metrics;
pub mod wifi;

use std::io;
use std::net::IpAddr;

use nix::sys::socket::SockProtocol;

use connection::{Connection, Message};
pub use error::NetlinkError;
pub(crate) use routing::PortOf;

/// The routing table of ordinary routes (RT_TABLE_MAIN, `linux/rtnetlink.h`).
pub const MAIN_TABLE: u32 = 254;

/// The table of a machine's own addresses, and of IPv6's multicast groups (RT_TABLE_LOCAL): it is
/// looked at before all others.
pub const LOCAL_TABLE: u32 = 255;

/// Where a packet goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// Number of the interface.
    pub interface: u32,
    /// The neighbour that takes it on; none when the destination is the neighbour.
    pub gateway: Option<IpAddr>,
}

/// A connection to the kernel's routing subsystem.
pub struct Netlink {
    connection: Connection,
}

impl Netlink {
    /// Connects in the network namespace of the calling thread, where the socket then stays.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn open() -> Result<Self, NetlinkError> {
        let connection = Connection::open(SockProtocol::NetlinkRoute)
            .map_err(NetlinkError::when(|| "open a netlink socket"))?;
        Ok(Self { connection })
    }

    fn request<W: Into<String>>(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[Vec<u8>],
        what: impl FnOnce() -> W,
    ) -> Result<Vec<Message>, NetlinkError> {
        self.connection
            .request(kind, flags, &body.concat())
            .map_err(NetlinkError::when(what))
    }
}

/// Address family of a header, `AF_*` in one byte.
fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

/// Number of the interface of that name in the namespace of the calling thread.
///
/// # Errors
/// When there is none.
pub fn interface_index(name: &str) -> io::Result<u32> {
    nix::net::if_::if_nametoindex(name).map_err(io::Error::from)
}

/// Number of the interface of that name, as what comes of a request.
///
/// # Errors
/// When there is none.
pub fn index_of(name: &str) -> Result<u32, NetlinkError> {
    interface_index(name).map_err(NetlinkError::when(|| format!("find the device {name}")))
}

/// The name of the interface of an index, in the network namespace of the calling thread.
///
/// # Errors
/// When there is none.
pub fn interface_name(index: u32) -> io::Result<String> {
    let name = nix::net::if_::if_indextoname(index).map_err(io::Error::from)?;
    // nix 0.31 gives no error but an empty name where there is none.
    match name.is_empty() {
        true => Err(io::Error::from_raw_os_error(libc::ENODEV)),
        false => Ok(name.to_string_lossy().into_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_number_without_an_interface_has_no_name() {
        assert_eq!(interface_name(1).unwrap(), "lo");
        assert!(interface_name(u32::MAX).is_err());
    }
}
