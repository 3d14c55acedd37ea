//! Datagram sockets whose packets the kernel stamps: UDP, and ICMP echo through a raw socket
//! or, where that is not allowed, a ping socket (icmp(7)). None of them ever blocks: waiting
//! is [`DatagramSocket::wait_until`].

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, MsgHdr, Protocol, SockAddr, Socket, Type};

use crate::egress::Outlet;
use crate::privilege::{ALLOW_PING_SOCKETS, allow_raw_sockets};
use crate::socket_options::{
    self, HOPS, MARKS, icmp_of, ip_header_bytes, local_address, set, set_of, set_receive_buffer,
    tell_drops, tell_errors_and_hops,
};
use crate::timestamp::{self, Stamped};
use crate::udp_counters::{Drops, SocketDrops};

pub(crate) mod control;
mod fragmenting;
mod notice;
mod system;
pub use control::LocalAddress;
use control::{Beside, QueueEntry, dscp_control};
pub use fragmenting::PathMtuDiscovery;
pub use notice::{Expired, Failure, Notice, QUOTED_BYTES, Reporter, SendId, Unreachable};
pub(crate) use system::{only_echo_replies, only_icmp_types, receive_message};

#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Bytes of payload in the buffer; an IP header is already gone.
    pub len: usize,
    /// When the kernel received it, ns of CLOCK_REALTIME; absent where it took no stamp.
    pub kernel_ns: Option<u64>,
    pub from: SocketAddr,
    /// Which of our addresses it was sent to; only known on [`DatagramSocket::bound`] sockets.
    pub to: Option<LocalAddress>,
    /// The DSCP that it bore (RFC 2474); only reported on [`DatagramSocket::bound`] sockets and after
    /// [`DatagramSocket::report_marks`].
    pub dscp: Option<u8>,
    /// The ECN codepoint that it bore (RFC 3168); reported where the DSCP is.
    pub ecn: Option<u8>,
    /// The hop limit (TTL in IPv4) that it bore.
    pub hop_limit: Option<u8>,
    /// Packets that this socket dropped until then, since it was opened.
    pub drops: Drops,
}

/// How ICMP echo is allowed to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpAccess {
    /// A raw socket: identifier and checksum (ICMP only) are ours to write, and replies to
    /// other programs arrive too.
    Raw,
    /// A ping socket: the kernel writes this identifier and the checksum.
    Ping { identifier: u16 },
}

/// Why no socket for ICMP echo could be had.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot open a socket for ICMP echo: raw socket: {raw}; ping socket: {ping}. Allow raw sockets \
     ({}) or ping sockets ({ALLOW_PING_SOCKETS}), or run as root",
    allow_raw_sockets()
)]
pub struct IcmpError {
    /// What the raw socket said.
    pub raw: io::Error,
    /// What the ping socket said.
    pub ping: io::Error,
}

impl IcmpError {
    /// The error, where it is another than missing privileges: no route, or no such interface or address.
    pub fn beyond_privileges(&self) -> Option<&io::Error> {
        [&self.raw, &self.ping].into_iter().find(|error| {
            // A kernel without ping sockets has no such protocol.
            error.kind() != ErrorKind::PermissionDenied
                && error.raw_os_error() != Some(libc::EPROTONOSUPPORT)
        })
    }
}

/// A datagram socket with kernel stamps.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: Socket,
    /// A raw ICMP socket is given the IP header too (raw(7)); a raw ICMPv6 socket is not.
    ip_header: bool,
    /// Where packets go of a socket that is not connected.
    towards: Option<SockAddr>,
    /// Our number of the packet that the kernel calls 0. `next_id` is the number of the next packet.
    first_id: u64,
    next_id: u64,
    notices: VecDeque<Notice>,
    drops: Drops,
    /// Why it dropped them, of a UDP socket that talks to one far end.
    reasons: Option<SocketDrops>,
}

impl DatagramSocket {
    /// A UDP socket that talks to `target` alone, its packets timestamped in both directions.
    ///
    /// # Errors
    /// Errors of the kernel, such as no route to `target`.
    pub fn udp(target: SocketAddr) -> io::Result<Self> {
        Self::udp_through(target, &Outlet::default())
    }

    /// The same through an outlet of this host that the caller chooses.
    ///
    /// # Errors
    /// As [`DatagramSocket::udp`], and when there is no such interface or address.
    pub fn udp_through(target: SocketAddr, outlet: &Outlet) -> io::Result<Self> {
        let socket = Socket::new(
            Domain::for_address(target),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        let mut this = Self::talking_to(target, socket, false, outlet)?;
        this.reasons = Some(SocketDrops::begin());
        Ok(this)
    }

    /// Asks for a receive buffer, as [`BulkSocket`](crate::bulk::BulkSocket::set_receive_buffer) does.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_receive_buffer(&self, bytes: u32) -> io::Result<()> {
        set_receive_buffer(&self.socket, bytes)
    }

    /// A UDP socket that is already bound and answers any host. It timestamps each packet it receives, and reports the
    /// packet's destination address, DSCP, ECN and hop limit.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn bound(socket: UdpSocket) -> io::Result<Self> {
        let v4 = socket.local_addr()?.is_ipv4();
        let socket = Socket::from(socket);
        // A socket for IPv6 may receive IPv4 too, whose fields only the options for IPv4 report.
        let ([hops, hops_v6], [marks, marks_v6]) = (HOPS, MARKS);
        let options = match v4 {
            true => &[(libc::SOL_IP, libc::IP_PKTINFO), marks, hops][..],
            false => &[
                (libc::SOL_IPV6, libc::IPV6_RECVPKTINFO),
                marks_v6,
                hops_v6,
                marks,
                hops,
            ],
        };
        for option in options {
            set(&socket, *option, 1)?;
        }
        Self::prepare(socket, false, Stamped::Received)
    }

    /// A socket that sends echo requests to `target` and receives echo replies from it alone.
    /// The port is not looked at.
    ///
    /// # Errors
    /// When neither a raw nor a ping socket is allowed, or `target` cannot be reached.
    pub fn icmp(target: SocketAddr) -> Result<(Self, IcmpAccess), IcmpError> {
        Self::icmp_through(target, &Outlet::default())
    }

    /// The same through an outlet of this host that the caller chooses.
    ///
    /// # Errors
    /// As [`DatagramSocket::icmp`], and when there is no such interface or address.
    pub fn icmp_through(
        mut target: SocketAddr,
        outlet: &Outlet,
    ) -> Result<(Self, IcmpAccess), IcmpError> {
        target.set_port(0);
        let raw = match Self::raw_icmp(target, outlet) {
            Ok(socket) => return Ok((socket, IcmpAccess::Raw)),
            Err(error) => error,
        };
        Self::ping(target, outlet).map_err(|ping| IcmpError { raw, ping })
    }

    /// A raw socket that sends whole IP packets to `target` (raw(7), IP_HDRINCL), stamped as they
    /// leave, and receives nothing. Packets longer than the interface's MTU are refused
    /// (`EMSGSIZE`); what the kernel knows of the path's MTU is not looked at.
    ///
    /// # Errors
    /// Without CAP_NET_RAW: `EPERM`; when there is no such interface or address.
    pub fn whole_packets(mut target: SocketAddr, outlet: &Outlet) -> io::Result<Self> {
        target.set_port(0);
        let protocol = Protocol::from(libc::IPPROTO_RAW);
        let socket = Socket::new(Domain::for_address(target), Type::RAW, Some(protocol))?;
        // Packets are routed by the target's address here; the addresses in their headers come from the caller.
        outlet.apply(&socket, target)?;
        // Not connected: a connected socket lends its packets one hash (sk_txhash), by which routers in
        // namespaces of this host would take them for one flow whatever their ports are.
        let mut this = Self::prepare(socket, false, Stamped::Both)?;
        this.towards = Some(target.into());
        // Otherwise the kernel itself answers with the ICMP error of a router that once reported a smaller MTU.
        this.set_path_mtu_discovery(PathMtuDiscovery::Probe)?;
        Ok(this)
    }

    fn raw_icmp(target: SocketAddr, outlet: &Outlet) -> io::Result<Self> {
        let (domain, protocol) = icmp_of(target.is_ipv4());
        let socket = Socket::new(domain, Type::RAW, Some(protocol))?;
        only_echo_replies(&socket, target.is_ipv4())?;
        Self::talking_to(target, socket, target.is_ipv4(), outlet)
    }

    fn ping(target: SocketAddr, outlet: &Outlet) -> io::Result<(Self, IcmpAccess)> {
        let (domain, protocol) = icmp_of(target.is_ipv4());
        let socket = Socket::new(domain, Type::DGRAM, Some(protocol))?;
        let this = Self::talking_to(target, socket, false, outlet)?;
        // The identifier takes the place of a port; connecting chose one.
        let identifier = this.local_addr()?.port();
        Ok((this, IcmpAccess::Ping { identifier }))
    }

    fn talking_to(
        target: SocketAddr,
        socket: Socket,
        ip_header: bool,
        outlet: &Outlet,
    ) -> io::Result<Self> {
        // The errors are also what makes the kernel say ENOBUFS when our own queue drops a packet.
        tell_errors_and_hops(&socket, target.is_ipv4())?;
        outlet.apply(&socket, target)?;
        socket.connect(&target.into())?;
        Self::prepare(socket, ip_header, Stamped::Both)
    }

    fn prepare(socket: Socket, ip_header: bool, stamped: Stamped) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        tell_drops(&socket)?;
        timestamp::enable(&socket, stamped)?;
        timestamp::await_receive_stamps();
        Ok(Self {
            socket,
            ip_header,
            towards: None,
            first_id: 0,
            next_id: 0,
            notices: VecDeque::new(),
            drops: Drops::default(),
            reasons: None,
        })
    }

    /// The address that this end is known by.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        local_address(&self.socket)
    }

    /// Marks the packets sent from now on with a DSCP (RFC 2474).
    ///
    /// # Errors
    /// Errors of setsockopt(2).
    pub fn set_dscp(&self, dscp: u8) -> io::Result<()> {
        crate::tcp::options::set_dscp(&self.socket, dscp)
    }

    /// Marks the packets sent from now on with a DSCP and an ECN field (RFC 3168).
    ///
    /// # Errors
    /// Errors of setsockopt(2).
    pub fn set_marks(&self, dscp: u8, ecn: u8) -> io::Result<()> {
        crate::tcp::options::set_traffic_class(&self.socket, dscp << 2 | ecn & 3)
    }

    /// Reports the DSCP and the ECN field of the packets received from now on.
    ///
    /// # Errors
    /// Errors of setsockopt(2).
    pub fn report_marks(&self) -> io::Result<()> {
        set_of(&self.socket, self.local_addr()?.is_ipv4(), MARKS, 1)
    }

    /// Lets the packets sent from now on live for so many hops.
    ///
    /// # Errors
    /// Errors of setsockopt(2).
    pub fn set_hop_limit(&self, hops: u8) -> io::Result<()> {
        let v4 = self.local_addr()?.is_ipv4();
        socket_options::set_hop_limit(&self.socket, v4, hops)
    }

    /// Says what becomes of packets sent from now on that are larger than the path carries whole.
    ///
    /// # Errors
    /// Errors of setsockopt(2).
    pub fn set_path_mtu_discovery(&self, mode: PathMtuDiscovery) -> io::Result<()> {
        mode.apply(&self.socket, self.local_addr()?.is_ipv4())
    }

    /// Sends to the target. The stamp of its departure comes as a [`Notice`].
    ///
    /// # Errors
    /// When our own machine does not send it: no buffer, our own queue full, no route.
    pub fn send(&mut self, datagram: &[u8]) -> io::Result<SendId> {
        let outcome = self.hand_over(datagram).or_else(|error| {
            // An ICMP error about an earlier packet is reported by whichever call comes next,
            // and that call does nothing else. The notice has the error, and this packet is still sent.
            self.restart_ids()?;
            if is_icmp_errno(&error) {
                self.hand_over(datagram)
            } else {
                Err(error)
            }
        });
        if let Err(error) = outcome {
            self.restart_ids()?;
            return Err(error);
        }
        self.next_id += 1;
        Ok(SendId(self.next_id - 1))
    }

    fn hand_over(&self, datagram: &[u8]) -> io::Result<usize> {
        match &self.towards {
            Some(to) => self.socket.send_to(datagram, to),
            None => self.socket.send(datagram),
        }
    }

    /// Answers `to` from the address `from` that was asked, with a DSCP where one is given.
    ///
    /// # Errors
    /// When our own machine does not send it.
    pub fn send_from(
        &self,
        datagram: &[u8],
        from: Option<LocalAddress>,
        dscp: Option<u8>,
        to: SocketAddr,
    ) -> io::Result<()> {
        let address = SockAddr::from(to);
        let buffers = [IoSlice::new(datagram)];
        let mut control = from.map(LocalAddress::control).unwrap_or_default();
        control.extend(dscp.map(|dscp| dscp_control(dscp, to)).unwrap_or_default());
        let message = MsgHdr::new()
            .with_addr(&address)
            .with_buffers(&buffers)
            .with_control(&control);
        self.socket.sendmsg(&message, 0).map(|_| ())
    }

    /// The next packet received, or `None` when none is waiting.
    ///
    /// # Errors
    /// Errors of the kernel; ICMP errors are no errors here but [`Notice`]s.
    pub fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        loop {
            let message = match receive_message(&self.socket, buffer, 0) {
                Ok(Some(message)) => message,
                Ok(None) => return Ok(None),
                Err(error) if is_icmp_errno(&error) => {
                    self.read_error_queue()?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let beside = Beside::parse(message.control());
            self.drops = self.drops.after(self.reasons.as_mut(), beside.drops);
            let header = if self.ip_header {
                ip_header_bytes(buffer)
            } else {
                0
            };
            let (Some(from), Some(len)) = (message.from, message.len.checked_sub(header)) else {
                continue;
            };
            if header > 0 {
                buffer.copy_within(header..header + len, 0);
            }
            return Ok(Some(Received {
                len,
                kernel_ns: beside.kernel_ns,
                from,
                to: beside.to,
                dscp: beside.dscp(),
                ecn: beside.ecn(),
                hop_limit: beside.hop_limit,
                drops: self.drops,
            }));
        }
    }

    /// The next notice of the kernel about packets sent, or `None`.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn take_notice(&mut self) -> io::Result<Option<Notice>> {
        if self.notices.is_empty() {
            self.read_error_queue()?;
        }
        Ok(self.notices.pop_front())
    }

    /// Waits until there may be a packet or a notice, or CLOCK_MONOTONIC reaches `deadline_ns`.
    /// Returns early when a signal was handled.
    ///
    /// # Errors
    /// Errors of ppoll(2).
    pub fn wait_until(&self, deadline_ns: u64) -> io::Result<()> {
        crate::wait::until(&[self.socket.as_fd()], deadline_ns)
    }

    /// Moves what is in the error queue to the notices.
    fn read_error_queue(&mut self) -> io::Result<()> {
        // As many as are read at once; far more than a probing socket has outstanding.
        while self.notices.len() < 1024 {
            let mut quoted = [0; QUOTED_BYTES];
            let Some(message) = receive_message(&self.socket, &mut quoted, libc::MSG_ERRQUEUE)?
            else {
                break;
            };
            match QueueEntry::parse(message.control()) {
                QueueEntry::Departed { id, ns } => {
                    self.notices.push_back(Notice::Departed {
                        id: SendId(self.first_id + u64::from(id)),
                        ns,
                    });
                }
                QueueEntry::Expired { by, kernel_ns } => {
                    // A router that quotes less does not show which packet it means.
                    if message.len == QUOTED_BYTES {
                        self.notices.push_back(Notice::Expired(Expired {
                            by,
                            kernel_ns,
                            quoted,
                            drops: self.drops,
                        }));
                    }
                }
                QueueEntry::Unreachable { why, by } => {
                    let failure = match message.from {
                        Some(to) => Failure::about(to.ip(), why, by),
                        None => Failure {
                            why,
                            by: by.map_or(Reporter::Unknown, Reporter::Host),
                        },
                    };
                    self.notices.push_back(Notice::Failed(failure));
                }
                QueueEntry::Other => {}
            }
        }
        Ok(())
    }

    /// Makes the kernel number packets from 0 again: after a send that failed it is unknown whether that took a number.
    fn restart_ids(&mut self) -> io::Result<()> {
        self.read_error_queue()?;
        // The packet that failed may already have left a stamp under the next number.
        let next = SendId(self.next_id);
        self.notices
            .retain(|notice| !matches!(notice, Notice::Departed { id, .. } if *id >= next));
        self.first_id = self.next_id;
        timestamp::enable(&self.socket, Stamped::Both)
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Makes the timers of the calling thread exact: by default they may fire 50 µs late (prctl(2),
/// PR_SET_TIMERSLACK).
///
/// # Errors
/// Errors of the kernel.
pub fn set_exact_timers() -> io::Result<()> {
    // Zero would mean the default.
    Ok(nix::sys::prctl::set_timerslack(1)?)
}

/// The errors that the kernel makes of ICMP errors (net/ipv4/icmp.c, icmp_err_convert;
/// net/ipv6/icmp.c, tab_unreach).
pub(crate) fn is_icmp_errno(error: &io::Error) -> bool {
    const ERRNOS: [i32; 8] = [
        libc::ECONNREFUSED,
        libc::EHOSTUNREACH,
        libc::ENETUNREACH,
        libc::EHOSTDOWN,
        libc::ENONET,
        libc::ENOPROTOOPT,
        libc::EACCES,
        libc::EPROTO,
    ];
    error
        .raw_os_error()
        .is_some_and(|errno| ERRNOS.contains(&errno))
}

#[cfg(test)]
mod tests;
