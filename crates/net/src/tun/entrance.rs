//! What the reader of a TUN device itself puts behind the packets that wait there: what it then
//! reads tells how long they had to (packet(7)).

use std::io;
use std::os::fd::AsRawFd;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::netlink::interface_index;

/// linux/if_packet.h: straight to the device, past queueing disciplines and captures.
const PACKET_QDISC_BYPASS: libc::c_int = 20;

/// The end of a device's queue; nothing is received here.
#[derive(Debug)]
pub struct Entrance(Socket);

impl Entrance {
    /// That of an interface in the network namespace of the calling thread. It can then be used
    /// from any thread in any namespace.
    ///
    /// # Errors
    /// When there is no such interface, or the kernel has no packet sockets.
    pub fn open(interface: &str) -> io::Result<Self> {
        // Protocol 0 of every kind: such a socket is given no packets.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)?;
        socket.set_nonblocking(true)?;
        let on: libc::c_int = 1;
        // SAFETY: the option is one int, which `on` is and outlives the call.
        let set = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_QDISC_BYPASS,
                (&raw const on).cast(),
                size_of_val(&on) as libc::socklen_t,
            )
        };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
        let index = interface_index(interface)?;
        // SAFETY: sockaddr_ll fits the storage, for which all zeroes is a valid value, and its
        // length is told.
        let ((), address) = unsafe {
            SockAddr::try_init(|storage, length| {
                let address = storage.cast::<libc::sockaddr_ll>();
                (*address).sll_family = libc::AF_PACKET as libc::sa_family_t;
                (*address).sll_ifindex = index as libc::c_int;
                *length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
                Ok(())
            })
        }?;
        socket.bind(&address)?;
        Ok(Self(socket))
    }

    /// Puts a packet behind those that wait.
    ///
    /// # Errors
    /// Those of the kernel: `ENOBUFS` where there is no room, `ENETDOWN` where the device is down.
    pub fn put(&self, packet: &[u8]) -> io::Result<()> {
        self.0.send(packet).map(drop)
    }
}
