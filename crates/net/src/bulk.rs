//! UDP sockets for load: trains of datagrams in one system call (udp(7): UDP_SEGMENT, UDP_GRO;
//! recvmmsg(2)), stamped by the kernel as they come. None of them ever blocks: waiting is
//! [`BulkSocket::wait_readable`] and [`BulkSocket::wait_writable`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};

use crate::datagram::control::{Beside, CONTROL_BYTES};
use crate::socket_options::{
    self, ERRORS, MARKS, MTU_DISCOVERY, OptionId, TRAFFIC_CLASS, local_address, set_of, tell_drops,
};
use crate::tcp::{get_option, socket_memory};
use crate::timestamp::{self, Stamped};

/// A UDP socket that talks to one far end.
#[derive(Debug)]
pub struct BulkSocket {
    socket: Socket,
    v6: bool,
}

impl BulkSocket {
    /// A socket of a port of its own, which talks to `target`.
    ///
    /// # Errors
    /// Errors of the kernel, such as no route to `target`, or no port free.
    pub fn connect(target: SocketAddr) -> io::Result<Self> {
        let this = Self::new(Domain::for_address(target))?;
        this.socket.connect(&target.into())?;
        Ok(this)
    }

    /// The same socket once more: it stays open until both are closed.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            socket: self.socket.try_clone()?,
            v6: self.v6,
        })
    }

    /// A socket of the port `local`, which another socket of this user has and shares
    /// ([`share_port`]): the kernel gives it what comes from `peer`, and the other all else. What
    /// comes from elsewhere between its binding and its connecting, some microseconds, is
    /// given to it too.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn beside(local: SocketAddr, peer: SocketAddr) -> io::Result<Self> {
        // To an IPv4 address the kernel has more to offer on a socket of IPv4.
        let (local, peer) = (canonical(local), canonical(peer));
        let this = Self::new(Domain::for_address(local))?;
        share_port(&this.socket)?;
        this.socket.bind(&local.into())?;
        this.socket.connect(&peer.into())?;
        Ok(this)
    }

    fn new(domain: Domain) -> io::Result<Self> {
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            v6: domain == Domain::IPV6,
        })
    }

    fn set(&self, option: [OptionId; 2], value: i32) -> io::Result<()> {
        set_of(&self.socket, !self.v6, option, value)
    }

    /// Makes the kernel report ICMP errors, and the packets that it does not send because its own queue is full.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn report_errors(&self) -> io::Result<()> {
        self.set(ERRORS, 1)?;
        // Errors about datagrams sent before do not matter any more.
        self.socket.take_error().map(|_| ())
    }

    /// Marks what is sent: DSCP (RFC 2474) and ECN (RFC 3168).
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_traffic_class(&self, dscp: u8, ecn: u8) -> io::Result<()> {
        self.set(TRAFFIC_CLASS, i32::from(dscp << 2 | (ecn & 3)))
    }

    /// Refuses to send what is above the MTU of the path, as far as that is known, instead of
    /// cutting it into fragments.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_dont_fragment(&self) -> io::Result<()> {
        self.set(MTU_DISCOVERY, libc::IP_PMTUDISC_DO)
    }

    /// MTU of the path, as far as the kernel knows.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn mtu_bytes(&self) -> io::Result<u32> {
        let (level, option) = if self.v6 {
            (libc::SOL_IPV6, libc::IPV6_MTU)
        } else {
            (libc::SOL_IP, libc::IP_MTU)
        };
        let mut mtu = 0u32;
        get_option(&self.socket, level, option, &mut mtu)?;
        Ok(mtu)
    }

    /// IP and UDP headers of each packet sent, in bytes.
    pub fn header_bytes(&self) -> u32 {
        if self.v6 { 48 } else { 28 }
    }

    /// From now on each send is cut into datagrams of that size (UDP_SEGMENT); 0 leaves it whole.
    ///
    /// # Errors
    /// Where the kernel does not know how to (before Linux 4.18).
    pub fn set_segment_bytes(&self, bytes: u16) -> io::Result<()> {
        let option = (libc::SOL_UDP, libc::UDP_SEGMENT);
        socket_options::set(&self.socket, option, bytes.into())
    }

    /// Prepares for receiving: stamps, ECN, our own drops, and where asked for trains of
    /// datagrams as one (UDP_GRO). Takes up to 50 ms.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn prepare_to_receive(&self, gro: bool) -> io::Result<()> {
        tell_drops(&self.socket)?;
        self.set(MARKS, 1)?;
        if gro {
            socket_options::set(&self.socket, (libc::SOL_UDP, libc::UDP_GRO), 1)?;
        }
        timestamp::enable(&self.socket, Stamped::Received)?;
        timestamp::await_receive_stamps();
        Ok(())
    }

    /// Asks for a receive buffer of so many bytes of kernel memory; beyond net.core.rmem_max
    /// that takes CAP_NET_ADMIN. The kernel doubles it, for its own book-keeping (socket(7)).
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_receive_buffer(&self, bytes: u32) -> io::Result<()> {
        socket_options::set_receive_buffer(&self.socket, bytes)
    }

    /// Sends a datagram, or a train of them; the number of bytes that the kernel took.
    ///
    /// # Errors
    /// When our own machine does not send it, or an ICMP error has come.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.send(bytes)
    }

    /// Fills `batch` with what has come; the number of messages.
    ///
    /// # Errors
    /// WouldBlock when nothing has, and on errors of the kernel.
    pub fn receive(&self, batch: &mut Batch) -> io::Result<usize> {
        batch.fill(&self.socket, 0)
    }

    /// Waits until something has come; false when `longest` passed first.
    ///
    /// # Errors
    /// Errors of ppoll(2).
    pub fn wait_readable(&self, longest: Duration) -> io::Result<bool> {
        self.wait(PollFlags::POLLIN, longest)
    }

    /// Waits until the kernel takes more; false when `longest` passed first.
    ///
    /// # Errors
    /// Errors of ppoll(2).
    pub fn wait_writable(&self, longest: Duration) -> io::Result<bool> {
        self.wait(PollFlags::POLLOUT, longest)
    }

    fn wait(&self, events: PollFlags, longest: Duration) -> io::Result<bool> {
        let mut fds = [PollFd::new(self.socket.as_fd(), events)];
        match ppoll(&mut fds, Some(TimeSpec::from_duration(longest)), None) {
            Ok(ready) => Ok(ready > 0),
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Packets, or trains of them, that the socket dropped because its buffer was full.
    pub fn drops(&self) -> Option<u64> {
        socket_memory(&self.socket).ok().map(|m| u64::from(m.drops))
    }

    /// Limit of the receive buffer in bytes of kernel memory.
    pub fn receive_buffer_bytes(&self) -> Option<u64> {
        socket_memory(&self.socket)
            .ok()
            .map(|m| u64::from(m.rcvbuf_bytes))
    }

    /// The far end.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket
            .peer_addr()?
            .as_socket()
            .ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Our own end.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        local_address(&self.socket)
    }
}

impl AsFd for BulkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Lets other sockets of this user have the same port (SO_REUSEPORT): to be set on all of them,
/// and on a socket that is bound already for those to come.
///
/// # Errors
/// Errors of the kernel.
pub fn share_port(socket: &impl AsFd) -> io::Result<()> {
    socket2::SockRef::from(socket).set_reuse_port(true)
}

/// An IPv4 address that is written as one of IPv6 as what it is.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        v4 @ IpAddr::V4(_) => SocketAddr::new(v4, address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Room for messages received in one system call.
#[derive(Debug)]
pub struct Batch {
    payload: Vec<u8>,
    payload_bytes: usize,
    control: Vec<[u8; CONTROL_BYTES]>,
    addresses: Vec<[u8; ADDRESS_BYTES]>,
    /// Bytes of payload and control of each message received.
    lengths: Vec<(usize, usize)>,
}

/// Room for a `struct sockaddr_in6`, the longest address that is met here.
const ADDRESS_BYTES: usize = 28;

/// One message of a batch.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// A datagram, or a train of them.
    pub payload: &'a [u8],
    /// Size of all datagrams of a train but the last.
    pub segment_bytes: Option<usize>,
    /// When the kernel received the first of them, ns of CLOCK_REALTIME.
    pub kernel_ns: Option<u64>,
    /// Traffic class: DSCP and ECN.
    pub traffic_class: Option<u8>,
    /// Its time to live, or hop limit, on arrival; only where the socket asked for it.
    pub hop_limit: Option<u8>,
    /// Its sender; for a message of the error queue, the destination of the original packet.
    pub from: Option<SocketAddr>,
    /// Packets that the socket dropped until then; only where the socket asked for it.
    pub drops: Option<u32>,
}

impl Batch {
    /// Room for so many messages of at most so many bytes; what is longer is cut off.
    pub fn new(messages: usize, payload_bytes: usize) -> Self {
        Self {
            payload: vec![0; messages * payload_bytes],
            payload_bytes,
            control: vec![[0; CONTROL_BYTES]; messages],
            addresses: vec![[0; ADDRESS_BYTES]; messages],
            lengths: Vec::with_capacity(messages),
        }
    }

    /// Receives what is waiting, with these flags of recvmsg(2) besides.
    pub(crate) fn fill(&mut self, socket: &Socket, flags: i32) -> io::Result<usize> {
        self.lengths.clear();
        let buffers = self.payload.chunks_exact_mut(self.payload_bytes.max(1));
        let mut vectors: Vec<libc::iovec> = buffers
            .map(|buffer| libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            })
            .collect();
        let mut headers: Vec<libc::mmsghdr> = vectors
            .iter_mut()
            .zip(&mut self.control)
            .zip(&mut self.addresses)
            .map(|((vector, control), address)| {
                // A message without an address leaves none of the one before.
                *address = [0; ADDRESS_BYTES];
                // SAFETY: mmsghdr is plain data, for which all zeroes (null pointers, no
                // lengths) is valid.
                let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
                header.msg_hdr.msg_iov = vector;
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = control.as_mut_ptr().cast();
                header.msg_hdr.msg_controllen = control.len() as _;
                header.msg_hdr.msg_name = address.as_mut_ptr().cast();
                header.msg_hdr.msg_namelen = ADDRESS_BYTES as libc::socklen_t;
                header
            })
            .collect();
        // SAFETY: each header describes memory that is exclusively ours and outlives the call,
        // with its true lengths: a chunk of `payload` through its vector, an element of
        // `control`, and one of `addresses`. There are `headers.len()` of them. No timeout is given.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as libc::c_uint,
                (libc::MSG_DONTWAIT | flags) as _,
                std::ptr::null_mut(),
            )
        };
        let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
        self.lengths.extend(
            headers
                .iter()
                .take(received)
                .map(|h| (h.msg_len as usize, h.msg_hdr.msg_controllen as _)),
        );
        Ok(received)
    }

    /// What was received last.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        self.lengths
            .iter()
            .zip(self.payload.chunks_exact(self.payload_bytes.max(1)))
            .zip(&self.control)
            .zip(&self.addresses)
            .map(|((((length, told), payload), control), address)| {
                let beside = Beside::parse(control.get(..*told).unwrap_or_default());
                Message {
                    payload: payload.get(..*length).unwrap_or(payload),
                    segment_bytes: beside.segment_bytes,
                    kernel_ns: beside.kernel_ns,
                    traffic_class: beside.traffic_class,
                    hop_limit: beside.hop_limit,
                    from: socket_address(address),
                    drops: beside.drops,
                }
            })
    }

    /// What the kernel said beside each message.
    pub(crate) fn controls(&self) -> impl Iterator<Item = &[u8]> {
        self.lengths
            .iter()
            .zip(&self.control)
            .map(|((_, told), control)| control.get(..*told).unwrap_or_default())
    }
}

/// `struct sockaddr_in` or `struct sockaddr_in6` (ip(7), ipv6(7)).
fn socket_address(bytes: &[u8; ADDRESS_BYTES]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let port = u16::from_be_bytes(*port);
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => Some((*rest.first_chunk::<4>()?, port).into()),
        // After the flow label.
        libc::AF_INET6 => Some((*rest.get(4..)?.first_chunk::<16>()?, port).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};

    fn pair() -> (BulkSocket, BulkSocket) {
        let place = UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = place.local_addr().unwrap();
        share_port(&place).unwrap();
        let one = BulkSocket::connect(local).unwrap();
        let other = BulkSocket::beside(local, one.local_addr().unwrap()).unwrap();
        (one, other)
    }

    fn receive(socket: &BulkSocket, batch: &mut Batch) -> usize {
        assert!(socket.wait_readable(Duration::from_secs(2)).unwrap());
        socket.receive(batch).unwrap()
    }

    #[test]
    fn a_train_comes_as_datagrams_or_as_one() {
        for gro in [false, true] {
            let (one, other) = pair();
            other.prepare_to_receive(gro).unwrap();
            one.set_segment_bytes(100).unwrap();
            one.set_traffic_class(46, 1).unwrap();
            let train: Vec<u8> = (0..250u8).collect();
            assert_eq!(one.send(&train).unwrap(), 250);
            let mut batch = Batch::new(8, 1000);
            let mut seen = Vec::new();
            while seen.len() < 250 {
                receive(&other, &mut batch);
                for message in batch.messages() {
                    let segment = message.segment_bytes.unwrap_or(message.payload.len());
                    assert!(message.payload.chunks(segment).all(|s| s.len() <= 100));
                    assert!(gro || message.payload.len() <= 100);
                    assert!(message.kernel_ns.is_some());
                    assert_eq!(message.traffic_class, Some(46 << 2 | 1));
                    seen.extend_from_slice(message.payload);
                }
            }
            assert_eq!(seen, train);
        }
    }

    #[test]
    fn a_port_is_shared_with_whoever_answers_all_others() {
        let echo = UdpSocket::bind("[::]:0").unwrap();
        share_port(&echo).unwrap();
        echo.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let port = echo.local_addr().unwrap().port();
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let one = BulkSocket::connect(target).unwrap();
        one.send(b"first").unwrap();
        let mut buffer = [0; 10];
        let (_, from) = echo.recv_from(&mut buffer).unwrap();
        // Mapped into IPv6, as a socket for both families sees it.
        assert!(from.is_ipv6());
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST.to_ipv6_mapped(), port));
        let mine = BulkSocket::beside(local, from).unwrap();
        one.send(b"second").unwrap();
        let mut batch = Batch::new(2, 100);
        assert_eq!(receive(&mine, &mut batch), 1);
        assert_eq!(batch.messages().next().unwrap().payload, b"second");
        let other = BulkSocket::connect(target).unwrap();
        other.send(b"third").unwrap();
        let (len, _) = echo.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], b"third");
        assert!(!mine.wait_readable(Duration::from_millis(20)).unwrap());
    }

    #[test]
    fn our_own_drops_are_counted() {
        let (one, other) = pair();
        other.set_receive_buffer(2048).unwrap();
        for _ in 0..100 {
            one.send(&[0; 1000]).unwrap();
        }
        let mut batch = Batch::new(200, 1000);
        let received = receive(&other, &mut batch) as u64;
        assert!(received > 0 && received < 100);
        assert_eq!(other.drops(), Some(100 - received));
    }

    #[test]
    fn the_mtu_of_the_path_is_known() {
        let (one, _other) = pair();
        // The loopback takes 65,536 bytes, and an IPv4 packet has 65,535.
        assert_eq!(one.mtu_bytes().unwrap(), 65_535);
        one.set_dont_fragment().unwrap();
        assert!(one.send(&[0; 65_507]).is_ok());
    }
}
