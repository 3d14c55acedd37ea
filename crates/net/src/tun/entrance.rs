//! Packets that the reader of a TUN device itself appends to the device's queue: reading them back shows how long
//! packets waited there (packet(7)).

use std::io;

use socket2::{Domain, Socket, Type};

use crate::link_address::link_address;
use crate::socket_options::set;

/// The end of a device's queue; nothing is received here.
#[derive(Debug)]
pub struct Entrance(Socket);

impl Entrance {
    /// The queue's end of an interface in the network namespace of the calling thread. It can then be used from any
    /// thread in any namespace.
    ///
    /// # Errors
    /// When there is no such interface, or the kernel has no packet sockets.
    pub fn open(interface: &str) -> io::Result<Self> {
        // Protocol 0 of every kind: such a socket is given no packets.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, None)?;
        socket.set_nonblocking(true)?;
        // Straight to the device, past queueing disciplines and captures.
        set(&socket, (libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS), 1)?;
        socket.bind(&link_address(interface, 0)?)?;
        Ok(Self(socket))
    }

    /// Puts a packet behind those that wait.
    ///
    /// # Errors
    /// Errors of the kernel: `ENOBUFS` where there is no room, `ENETDOWN` where the device is down.
    pub fn put(&self, packet: &[u8]) -> io::Result<()> {
        self.0.send(packet).map(drop)
    }
}
