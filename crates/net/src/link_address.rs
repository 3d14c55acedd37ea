//! Addresses of packet sockets (packet(7)): an interface, and a protocol.

use std::io;

use socket2::SockAddr;

use crate::netlink::interface_index;

/// The address of an interface of this network namespace, for packet sockets of a protocol.
pub(crate) fn link_address(interface: &str, protocol: u16) -> io::Result<SockAddr> {
    address(interface_index(interface)?, protocol)
}

/// The address of an interface by its number, 0 for all, for packets of a protocol.
pub(crate) fn address(index: u32, protocol: u16) -> io::Result<SockAddr> {
    // SAFETY: sockaddr_ll fits the storage, for which all zeroes is a valid value, and its length is given.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let address = storage.cast::<libc::sockaddr_ll>();
            (*address).sll_family = libc::AF_PACKET as libc::sa_family_t;
            (*address).sll_protocol = protocol.to_be();
            (*address).sll_ifindex = index as libc::c_int;
            *length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })
    }?;
    Ok(address)
}
