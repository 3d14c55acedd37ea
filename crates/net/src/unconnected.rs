//! A socket for probes of many far ends at once, by ICMP echo or UDP: packets go out and come in by
//! batches (sendmmsg(2), recvmmsg(2)). It never blocks: waiting is the caller's.

use std::io::{self, ErrorKind, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::bulk::Batch;
use crate::datagram::control::QueueEntry;
use crate::datagram::{
    Failure, IcmpAccess, IcmpError, PathMtuDiscovery, Unreachable, is_icmp_errno, only_echo_replies,
};
use crate::egress::Outlet;
use crate::socket_options::{
    self, icmp_of, ip_header_bytes, local_address, set_receive_buffer, tell_drops,
    tell_errors_and_hops,
};
use crate::timestamp::{self, Stamped};
use crate::udp_counters::{Drops, SocketDrops};

/// Packets received in one system call.
const MESSAGES: usize = 64;

/// Of the ICMP errors that come back, as much is looked at as holds an echo's header and the number of
/// the probe in its payload.
const QUOTED_BYTES: usize = 64;

/// Receive buffer asked for: a tenth of a second at 100,000 packets a second, of which each
/// takes about 800 bytes of kernel memory.
const RECEIVE_BUFFER_BYTES: u32 = 8 << 20;

#[derive(Debug, Clone, Copy)]
pub struct Heard<'a> {
    /// The ICMP message, or the payload of the UDP datagram.
    pub message: &'a [u8],
    /// Who sent it; of ICMP the port means nothing.
    pub from: SocketAddr,
    /// When the kernel received it, ns of CLOCK_REALTIME.
    pub kernel_ns: Option<u64>,
    /// Its time to live, or hop limit, as it came in.
    pub hop_limit: Option<u8>,
    /// Messages that the socket dropped until then.
    pub drops: Drops,
}

/// A report of the kernel about a packet that was sent.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    /// It entered the packet scheduler.
    Departed {
        /// Number of the packet since the socket was opened, from 0.
        id: u64,
        /// When, ns of CLOCK_REALTIME.
        ns: u64,
    },
    /// An ICMP error came back about it.
    Failed {
        /// Where it was sent to.
        to: IpAddr,
        /// When the kernel received it, ns of CLOCK_REALTIME.
        kernel_ns: Option<u64>,
        /// What the error quotes from the header of the echo, or from the payload of the datagram on; it
        /// may be short or empty.
        quoted: &'a [u8],
        /// What it says, and who says so.
        failure: Failure,
    },
}

/// A socket for small packets to whomever: ICMP echoes or UDP datagrams.
#[derive(Debug)]
pub struct UnconnectedSocket {
    socket: Socket,
    /// A raw socket of IPv4 is given the IP header too.
    ip_header: bool,
    stamped: Stamped,
    /// Our number of the packet that the kernel calls 0. `next_id` is the number of the next packet.
    first_id: u64,
    next_id: u64,
    received: Batch,
    queue: Batch,
    drops: Drops,
    /// Why it dropped them, of a UDP socket.
    reasons: Option<SocketDrops>,
}

impl UnconnectedSocket {
    /// A raw socket, or where that is not allowed a ping socket, for IPv4 (`v4`) or IPv6. Its
    /// departures are stamped where `stamp_departures` asks for it, which costs about as much as
    /// receiving as many packets.
    ///
    /// # Errors
    /// When neither is allowed, or the outlet does not exist.
    pub fn open(
        v4: bool,
        outlet: &Outlet,
        stamp_departures: bool,
    ) -> Result<(Self, IcmpAccess), IcmpError> {
        let stamped = match stamp_departures {
            true => Stamped::Both,
            false => Stamped::Received,
        };
        let raw = match Self::raw(v4, outlet, stamped) {
            Ok(socket) => return Ok((socket, IcmpAccess::Raw)),
            Err(error) => error,
        };
        Self::ping(v4, outlet, stamped).map_err(|ping| IcmpError { raw, ping })
    }

    /// A UDP socket of a port of its own, for IPv4 (`v4`) or IPv6.
    ///
    /// # Errors
    /// Errors of the kernel, such as that the outlet does not exist.
    pub fn udp(v4: bool, outlet: &Outlet, stamp_departures: bool) -> io::Result<Self> {
        let stamped = match stamp_departures {
            true => Stamped::Both,
            false => Stamped::Received,
        };
        let (domain, _) = icmp_of(v4);
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        let mut this = Self::prepare(socket, v4, false, outlet, stamped)?;
        this.reasons = Some(SocketDrops::begin());
        Ok(this)
    }

    fn raw(v4: bool, outlet: &Outlet, stamped: Stamped) -> io::Result<Self> {
        let (domain, protocol) = icmp_of(v4);
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        only_echo_replies(&socket, v4)?;
        Self::prepare(socket, v4, v4, outlet, stamped)
    }

    fn ping(v4: bool, outlet: &Outlet, stamped: Stamped) -> io::Result<(Self, IcmpAccess)> {
        let (domain, protocol) = icmp_of(v4);
        let socket = Socket::new(domain, Type::DGRAM, Some(protocol))?;
        let this = Self::prepare(socket, v4, false, outlet, stamped)?;
        if outlet.source.is_none() {
            // The identifier takes the place of a port; binding chooses one.
            this.socket
                .bind(&SocketAddr::new(unspecified(v4), 0).into())?;
        }
        let identifier = local_address(&this.socket)?.port();
        Ok((this, IcmpAccess::Ping { identifier }))
    }

    fn prepare(
        socket: Socket,
        v4: bool,
        ip_header: bool,
        outlet: &Outlet,
        stamped: Stamped,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        tell_errors_and_hops(&socket, v4)?;
        tell_drops(&socket)?;
        // With less, drops are counted all the same.
        set_receive_buffer(&socket, RECEIVE_BUFFER_BYTES)?;
        outlet.apply(&socket, SocketAddr::new(unspecified(v4), 0))?;
        timestamp::enable(&socket, stamped)?;
        timestamp::await_receive_stamps();
        Ok(Self {
            socket,
            ip_header,
            stamped,
            first_id: 0,
            next_id: 0,
            received: Batch::new(MESSAGES, 2048),
            queue: Batch::new(MESSAGES, QUOTED_BYTES),
            drops: Drops::default(),
            reasons: None,
        })
    }

    /// Marks the packets sent from now on with a DSCP (RFC 2474).
    ///
    /// # Errors
    /// Errors of setsockopt(2).
    pub fn set_dscp(&self, dscp: u8) -> io::Result<()> {
        crate::tcp::options::set_dscp(&self.socket, dscp)
    }

    /// Lets the packets sent from now on live for so many hops.
    ///
    /// # Errors
    /// Errors of setsockopt(2).
    pub fn set_hop_limit(&self, hops: u8) -> io::Result<()> {
        let v4 = self.socket.domain()? == Domain::IPV4;
        socket_options::set_hop_limit(&self.socket, v4, hops)
    }

    /// Says what becomes of packets sent from now on that are larger than the path carries whole.
    ///
    /// # Errors
    /// Errors of setsockopt(2).
    pub fn set_path_mtu_discovery(&self, mode: PathMtuDiscovery) -> io::Result<()> {
        mode.apply(&self.socket, self.socket.domain()? == Domain::IPV4)
    }

    /// Number of the next packet that is sent, to which its departure refers.
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Sends the first of the packets, as many as the kernel takes; at least one.
    ///
    /// # Errors
    /// Why the first packet was not sent, and with it none.
    pub fn send(&mut self, packets: &[(SocketAddr, Vec<u8>)]) -> io::Result<usize> {
        let addresses: Vec<SockAddr> = packets.iter().map(|(to, _)| SockAddr::from(*to)).collect();
        let slices: Vec<IoSlice<'_>> = packets
            .iter()
            .map(|(_, bytes)| IoSlice::new(bytes))
            .collect();
        let mut headers: Vec<libc::mmsghdr> = addresses
            .iter()
            .zip(&slices)
            .map(|(address, slice)| {
                // SAFETY: mmsghdr is plain data, for which all zeroes (null pointers, no lengths)
                // is valid.
                let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
                header.msg_hdr.msg_name = address.as_ptr().cast_mut().cast();
                header.msg_hdr.msg_namelen = address.len();
                // An IoSlice is laid out as an iovec on Unix, by its documentation.
                header.msg_hdr.msg_iov = std::ptr::from_ref(slice).cast_mut().cast();
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        // An ICMP error about an earlier packet is reported by whichever call comes next. This call clears it; the
        // error queue still has the message.
        let _ = self.socket.take_error();
        let mut sent = self.send_headers(&mut headers);
        if sent.as_ref().is_err_and(is_icmp_errno) {
            sent = self.send_headers(&mut headers);
        }
        match sent {
            Ok(sent) => {
                self.next_id += sent as u64;
                Ok(sent)
            }
            Err(error) => {
                // After a send that failed it is unknown whether that took a number.
                if self.stamped == Stamped::Both && error.kind() != ErrorKind::WouldBlock {
                    self.first_id = self.next_id;
                    timestamp::enable(&self.socket, self.stamped)?;
                }
                Err(error)
            }
        }
    }

    fn send_headers(&self, headers: &mut [libc::mmsghdr]) -> io::Result<usize> {
        // SAFETY: each header describes memory that outlives the call, with its true lengths: an
        // address and, through a slice, the bytes of a packet, both of which the kernel only reads.
        // There are `headers.len()` of them. musl's sendmmsg(3) is a loop of sendmsg(2), so the kernel is called: what
        // musl's structures have narrower than the kernel's is followed by padding, which is zero.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_sendmmsg,
                self.socket.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as libc::c_uint,
                0,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Calls `each` with every waiting message, at most 64; returns how many there were.
    ///
    /// # Errors
    /// Errors of the kernel. An ICMP error is no error here; it is among the kernel's reports about packets sent.
    pub fn receive(&mut self, mut each: impl FnMut(Heard<'_>)) -> io::Result<usize> {
        let count = match self.received.fill(&self.socket, 0) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock || is_icmp_errno(&error) => 0,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        let latest = self.received.messages().filter_map(|m| m.drops).last();
        self.drops = self.drops.after(self.reasons.as_mut(), latest);
        for message in self.received.messages() {
            let start = match self.ip_header {
                true => ip_header_bytes(message.payload),
                false => 0,
            };
            let (Some(from), Some(bytes)) = (message.from, message.payload.get(start..)) else {
                continue;
            };
            each(Heard {
                message: bytes,
                from,
                kernel_ns: message.kernel_ns,
                hop_limit: message.hop_limit,
                drops: self.drops,
            });
        }
        Ok(count)
    }

    /// Calls `each` with every report of the kernel about packets sent, at most 64; returns how many there were.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn told(&mut self, mut each: impl FnMut(Told<'_>)) -> io::Result<usize> {
        let count = match self.queue.fill(&self.socket, libc::MSG_ERRQUEUE) {
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                0
            }
            Err(error) => return Err(error),
        };
        for (message, control) in self.queue.messages().zip(self.queue.controls()) {
            let (why, by) = match QueueEntry::parse(control) {
                QueueEntry::Departed { id, ns } => {
                    let id = self.first_id + u64::from(id);
                    each(Told::Departed { id, ns });
                    continue;
                }
                QueueEntry::Unreachable { why, by } => (why, by),
                QueueEntry::Expired { by, .. } => (Unreachable::HopLimit, Some(by)),
                QueueEntry::Other => continue,
            };
            if let Some(to) = message.from {
                each(Told::Failed {
                    to: to.ip(),
                    kernel_ns: message.kernel_ns,
                    quoted: message.payload,
                    failure: Failure::about(to.ip(), why, by),
                });
            }
        }
        Ok(count)
    }
}

impl AsFd for UnconnectedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn unspecified(v4: bool) -> IpAddr {
    if v4 {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::clock::{monotonic_ns, realtime_ns};
    use crate::datagram::Reporter;

    /// An ICMP echo request, its checksum included: type 8, code 0. A raw socket hears the answers to all others, so each
    /// test has an identifier of its own.
    fn request(identifier: u8, number: u8) -> Vec<u8> {
        let mut bytes = vec![8, 0, 0, 0, 0x70, identifier, 0, number, b'p', b'l'];
        let sum: u32 = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
            .sum();
        let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
        bytes.splice(2..4, folded.to_be_bytes());
        bytes
    }

    #[test]
    fn many_are_asked_at_once_and_each_answers() {
        let (mut socket, access) = UnconnectedSocket::open(true, &Outlet::default(), true).unwrap();
        assert_eq!(access, IcmpAccess::Raw, "these tests need root");
        let packets: Vec<_> = (1..=40)
            .map(|n| (SocketAddr::from(([127, 0, 1, n], 0)), request(b'm', n)))
            .collect();
        let before = realtime_ns();
        assert_eq!(socket.send(&packets).unwrap(), 40);
        let (mut answered, mut departed) = (vec![], vec![]);
        let deadline = monotonic_ns() + 1_000_000_000;
        while (answered.len() < 40 || departed.len() < 40) && monotonic_ns() < deadline {
            socket
                .receive(|heard| {
                    if let [0, 0, _, _, 0x70, b'm', _, number, b'p', b'l'] = heard.message {
                        assert_eq!(heard.from.ip(), IpAddr::from([127, 0, 1, *number]));
                        assert!(heard.kernel_ns.unwrap() >= before);
                        assert_eq!(heard.hop_limit, Some(64));
                        answered.push(*number);
                    }
                })
                .unwrap();
            socket
                .told(|told| {
                    if let Told::Departed { id, ns } = told {
                        assert!(ns >= before);
                        departed.push(id);
                    }
                })
                .unwrap();
        }
        assert_eq!(answered, (1..=40).collect::<Vec<u8>>());
        assert_eq!(departed, (0..40).collect::<Vec<u64>>());
    }

    #[test]
    fn a_closed_port_says_so_by_whom_it_was_asked() {
        let mut socket = UnconnectedSocket::udp(true, &Outlet::default(), true).unwrap();
        // Bound, so that no other program has the port, and connected elsewhere, so that it refuses.
        let here = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        here.connect("127.0.0.1:9").unwrap();
        let to = here.local_addr().unwrap();
        assert_eq!(socket.send(&[(to, b"probe".to_vec())]).unwrap(), 1);
        let mut refused = None;
        let deadline = monotonic_ns() + 1_000_000_000;
        while refused.is_none() && monotonic_ns() < deadline {
            socket
                .told(|told| {
                    if let Told::Failed {
                        to,
                        quoted,
                        failure,
                        ..
                    } = told
                    {
                        refused = Some((to, quoted.to_vec(), failure));
                    }
                })
                .unwrap();
        }
        let (asked, quoted, failure) = refused.unwrap();
        let told = Failure {
            why: Unreachable::Port,
            by: Reporter::Host(to.ip()),
        };
        assert_eq!((asked, failure), (to.ip(), told));
        assert_eq!(quoted, b"probe");
    }

    #[test]
    fn a_packet_that_may_not_be_sent_is_told_alone() {
        let (mut socket, _) = UnconnectedSocket::open(true, &Outlet::default(), true).unwrap();
        let to = |last| SocketAddr::from(([127, 255, 255, last], 0));
        // The last address of the loopback's network is its broadcast address.
        let packets = [
            (to(254), request(b'o', 1)),
            (to(255), request(b'o', 2)),
            (to(253), request(b'o', 3)),
        ];
        assert_eq!(socket.send(&packets).unwrap(), 1);
        assert!(socket.send(packets.get(1..).unwrap()).is_err());
        assert_eq!(socket.send(packets.get(2..).unwrap()).unwrap(), 1);
        assert_eq!(socket.next_id(), 2);
    }
}
