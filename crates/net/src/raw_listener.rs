//! Raw sockets that only listen (raw(7)): for what comes back to probes that another socket sent.
//! They never block.

use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use crate::datagram::control::Beside;
use crate::datagram::{only_icmp_types, receive_message};
use crate::socket_options::{
    HOPS, icmp_of, ip_header_bytes, local_address, set_of, set_receive_buffer,
};
use crate::tcp::socket_memory;
use crate::timestamp::{self, Stamped};

/// Receive buffer asked for, in bytes: the answers to a thousand probes, each of which takes up to 2.3 kB of kernel
/// memory, with what else comes before this program gets a processor.
const RECEIVE_BUFFER_BYTES: u32 = 4 << 20;

/// A message received, its IP header taken off.
#[derive(Debug, Clone, Copy)]
pub struct Heard {
    /// Where the message begins in the buffer: behind the IP header, where there was one.
    pub start: usize,
    pub end: usize,
    pub from: SocketAddr,
    /// When the kernel received it, ns of CLOCK_REALTIME; absent where it took no stamp.
    pub kernel_ns: Option<u64>,
    /// Its time to live, or hop limit, as it came in.
    pub hop_limit: Option<u8>,
}

/// A raw socket that listens.
#[derive(Debug)]
pub struct AnswerSocket {
    socket: Socket,
    /// Raw IPv4 sockets receive the IP header too; raw IPv6 sockets do not.
    ip_header: bool,
}

impl AnswerSocket {
    /// Listens for ICMP (`v4`) or ICMPv6 messages of these types.
    ///
    /// # Errors
    /// Without CAP_NET_RAW: `EPERM`.
    pub fn icmp(v4: bool, types: &[u8]) -> io::Result<Self> {
        let (_, protocol) = icmp_of(v4);
        let this = Self::open(v4, protocol)?;
        only_icmp_types(&this.socket, v4, types)?;
        Ok(this)
    }

    /// Listens for segments or datagrams of a protocol that begins with its ports, sent to local
    /// ports in this range.
    ///
    /// # Errors
    /// Without CAP_NET_RAW: `EPERM`.
    pub fn ports(v4: bool, protocol: i32, ports: &RangeInclusive<u16>) -> io::Result<Self> {
        let this = Self::open(v4, Protocol::from(protocol))?;
        this.socket.attach_filter(&port_filter(v4, ports))?;
        Ok(this)
    }

    fn open(v4: bool, protocol: Protocol) -> io::Result<Self> {
        let (domain, _) = icmp_of(v4);
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        socket.set_nonblocking(true)?;
        set_receive_buffer(&socket, RECEIVE_BUFFER_BYTES)?;
        set_of(&socket, v4, HOPS, 1)?;
        timestamp::enable(&socket, Stamped::Received)?;
        timestamp::await_receive_stamps();
        Ok(Self {
            socket,
            ip_header: v4,
        })
    }

    /// Messages that were dropped because the receive buffer was full, since it was opened.
    ///
    /// # Errors
    /// Before Linux 4.12, which does not count them.
    pub fn dropped(&self) -> io::Result<u32> {
        Ok(socket_memory(&self.socket)?.drops)
    }

    /// The next message, or `None` when none is waiting.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<Heard>> {
        while let Some(message) = receive_message(&self.socket, buffer, 0)? {
            let beside = Beside::parse(message.control());
            let start = match self.ip_header {
                true => ip_header_bytes(buffer),
                false => 0,
            };
            let Some(from) = message.from else { continue };
            if start > message.len {
                continue;
            }
            return Ok(Some(Heard {
                start,
                end: message.len,
                from,
                kernel_ns: beside.kernel_ns,
                hop_limit: beside.hop_limit,
            }));
        }
        Ok(None)
    }
}

impl AsFd for AnswerSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A TCP port kept from other programs, on which no socket listens: the kernel answers segments to it with a reset.
#[derive(Debug)]
pub struct ReservedPort(Socket);

impl ReservedPort {
    /// Reserves a port of the kernel's choice on a local address.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn tcp(mut address: SocketAddr) -> io::Result<Self> {
        address.set_port(0);
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&address.into())?;
        Ok(Self(socket))
    }

    /// Its address.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn address(&self) -> io::Result<SocketAddr> {
        local_address(&self.0)
    }
}

/// A classic BPF program (Linux Documentation/networking/filter.rst) that passes what is sent to a
/// port of a range: behind the IPv4 header, or at the start where there is none.
fn port_filter(v4: bool, ports: &RangeInclusive<u16>) -> Vec<SockFilter> {
    /// The destination port follows the source port (2 bytes).
    const DESTINATION_PORT: u32 = 2;
    let instruction = |code: u32, jt: u8, jf: u8, k: u32| SockFilter::new(code as u16, jt, jf, k);
    let mode = if v4 { libc::BPF_IND } else { libc::BPF_ABS };
    vec![
        // x = 4 × (first byte & 15): the length of an IPv4 header.
        instruction(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0, 0),
        instruction(libc::BPF_LD | libc::BPF_H | mode, 0, 0, DESTINATION_PORT),
        instruction(
            libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K,
            0,
            2,
            u32::from(*ports.start()),
        ),
        instruction(
            libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K,
            1,
            0,
            u32::from(*ports.end()),
        ),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ]
}
