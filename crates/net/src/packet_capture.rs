//! What passes an interface, as a capture sees it (packet(7)): large segments as the kernel has them,
//! with the virtio-net header that says what they are to be cut into.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::clock::{monotonic_ns, realtime_ns};
use crate::datagram::control::Beside;
use crate::datagram::receive_message;
use crate::link_address::link_address;
use crate::socket_options::{set, set_receive_buffer, tell_drops};
use crate::timestamp::{self, Stamped};
use crate::tun::VNET_HEADER_BYTES;
use crate::wait;

/// What is received and what is sent (linux/if_ether.h).
const EVERY_PROTOCOL: u16 = libc::ETH_P_ALL as u16;

/// The protocols that are IP.
const IP_PROTOCOLS: [u16; 2] = [libc::ETH_P_IP as u16, libc::ETH_P_IPV6 as u16];

const PACKET_VNET_HDR: libc::c_int = 15;

/// Destination, source and protocol (IEEE 802.3).
const ETHERNET_BYTES: usize = 14;

/// The largest packet that IP allows, and what stands before it.
const BUFFER_BYTES: usize = 65_535 + VNET_HEADER_BYTES + ETHERNET_BYTES;

/// What waits to be read at most: a tenth of a second at 1 Gbit/s, in the kernel's count of memory.
const QUEUE_BYTES: u32 = 32 << 20;

/// A capture of an interface that carries Ethernet frames.
#[derive(Debug)]
pub struct Cable {
    socket: Socket,
    buffer: Vec<u8>,
    /// Frames that the kernel could not describe.
    unreadable: u32,
}

/// An IP packet that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed<'a> {
    /// When, ns of CLOCK_REALTIME.
    pub unix_ns: u64,
    /// Whether this host sent it.
    pub sent: bool,
    /// How it is to be cut, and whether its checksum is complete.
    pub vnet: [u8; VNET_HEADER_BYTES],
    /// The packet, from its IP header on.
    pub data: &'a [u8],
    /// Packets that were not read in time, or that the kernel could not pass on, since the look began.
    pub missed: u32,
}

/// What came within a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look<'a> {
    Packet(Passed<'a>),
    /// A frame of another protocol.
    Other,
    Nothing,
}

impl Cable {
    /// A capture of an interface in the network namespace of the calling thread. It can then be read from any thread in
    /// any namespace.
    ///
    /// # Errors
    /// When there is no such interface, or packet sockets are not allowed (CAP_NET_RAW).
    pub fn open(interface: &str) -> io::Result<Self> {
        // Protocol 0: nothing comes before it is bound, from other interfaces.
        let socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
        socket.set_nonblocking(true)?;
        set(&socket, (libc::SOL_PACKET, PACKET_VNET_HDR), 1)?;
        set_receive_buffer(&socket, QUEUE_BYTES)?;
        tell_drops(&socket)?;
        timestamp::enable(&socket, Stamped::Received)?;
        socket.bind(&link_address(interface, EVERY_PROTOCOL)?)?;
        Ok(Self {
            socket,
            buffer: vec![0; BUFFER_BYTES],
            unreadable: 0,
        })
    }

    /// The next frame, for which it waits so long.
    ///
    /// # Errors
    /// Errors of the kernel: `ENETDOWN` where the interface is down or gone.
    pub fn next(&mut self, within: Duration) -> io::Result<Look<'_>> {
        let within = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
        wait::until(
            &[self.socket.as_fd()],
            monotonic_ns().saturating_add(within),
        )?;
        let message = match receive_message(&self.socket, &mut self.buffer, 0) {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(Look::Nothing),
            // Before Linux 6.2 there was no word for a train of UDP datagrams, which goes with this
            // (virtio_net_hdr_from_skb of linux/virtio_net.h).
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
                self.unreadable = self.unreadable.saturating_add(1);
                return Ok(Look::Other);
            }
            Err(e) => return Err(e),
        };
        let beside = Beside::parse(message.control());
        let sent = message.packet_type == Some(libc::PACKET_OUTGOING);
        let frame = self.buffer.get(..message.len).unwrap_or_default();
        let Some((vnet, data)) = packet(frame) else {
            return Ok(Look::Other);
        };
        Ok(Look::Packet(Passed {
            unix_ns: beside.kernel_ns.unwrap_or_else(realtime_ns),
            sent,
            vnet,
            data,
            missed: beside.drops.unwrap_or(0).saturating_add(self.unreadable),
        }))
    }
}

/// The virtio-net header and the IP packet of a frame; `None` when it holds none. The kernel's header
/// counts from the Ethernet header on, this one from the IP header.
fn packet(frame: &[u8]) -> Option<([u8; VNET_HEADER_BYTES], &[u8])> {
    let (vnet, frame) = frame.split_first_chunk::<VNET_HEADER_BYTES>()?;
    let (ethernet, data) = frame.split_first_chunk::<ETHERNET_BYTES>()?;
    let [.., high, low] = *ethernet;
    let from_ip = |offset: [u8; 2]| {
        let offset = u16::from_ne_bytes(offset).saturating_sub(ETHERNET_BYTES as u16);
        offset.to_ne_bytes()
    };
    let [flags, gso_type, h0, h1, g0, g1, s0, s1, o0, o1] = *vnet;
    let ([h0, h1], [s0, s1]) = (from_ip([h0, h1]), from_ip([s0, s1]));
    let vnet = [flags, gso_type, h0, h1, g0, g1, s0, s1, o0, o1];
    IP_PROTOCOLS
        .contains(&u16::from_be_bytes([high, low]))
        .then_some((vnet, data))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn a_frame_is_taken_apart() {
        // A header of 54 bytes and sums from the 34th on, of which Ethernet has 14.
        let vnet = |header: u16, sums: u16| {
            let [h, s] = [header, sums].map(u16::to_ne_bytes);
            [1, 1, h[0], h[1], 9, 9, s[0], s[1], 16, 0]
        };
        let mut frame = vnet(54, 34).to_vec();
        frame.extend([7; 12]);
        frame.extend([0x08, 0x00, 0x45, 1, 2]);
        assert_eq!(packet(&frame), Some((vnet(40, 20), &[0x45, 1, 2][..])));
        frame[VNET_HEADER_BYTES + 13] = 0x06; // ARP
        assert_eq!(packet(&frame), None);
        for short in 0..VNET_HEADER_BYTES + ETHERNET_BYTES {
            assert_eq!(packet(&frame[..short]), None);
        }
    }

    #[test]
    fn what_is_sent_over_the_loopback_passes_it() {
        let mut cable = Cable::open("lo").unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let text = b"what is sent over the loopback";
        let before = realtime_ns();
        socket.send_to(text, socket.local_addr().unwrap()).unwrap();
        let mut ways = Vec::new();
        // Others use the loopback too.
        while ways.len() < 2 {
            match cable.next(Duration::from_secs(5)).unwrap() {
                Look::Packet(passed) if passed.data.ends_with(text) => {
                    assert!((before..=realtime_ns()).contains(&passed.unix_ns));
                    ways.push(passed.sent);
                }
                Look::Nothing => panic!("nothing passed"),
                _ => {}
            }
        }
        assert_eq!(ways, [true, false]);
    }

    #[test]
    fn no_interface_is_an_error() {
        assert!(Cable::open("no-such-one").is_err());
    }
}
