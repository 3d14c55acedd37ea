//! Sockets that any user may open and that receive ICMP errors about what they sent through their error queue (ip(7),
//! IP_RECVERR). They explore a path without CAP_NET_RAW, as tracepath(8) does. They never block.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};

use crate::datagram::control::{Beside, ExtendedError};
use crate::datagram::{PathMtuDiscovery, receive_message};
use crate::egress::Outlet;
use crate::socket_options::{
    TRAFFIC_CLASS, icmp_of, local_address, set_hop_limit, set_of, tell_errors_and_hops,
};
use crate::timestamp::{self, Stamped};

/// A report of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// A packet entered the packet scheduler.
    Departed {
        /// Number of the packet, as [`ErrorQueueSocket::send`] returned it.
        id: u64,
        /// When, ns of CLOCK_REALTIME.
        ns: u64,
    },
    /// An ICMP error about a packet of this socket.
    Error(ErrorTold),
    /// An answer from the far end.
    Packet {
        from: SocketAddr,
        /// When the kernel received it, ns of CLOCK_REALTIME.
        kernel_ns: Option<u64>,
        /// Its time to live, or hop limit, as it came in.
        hop_limit: Option<u8>,
        payload: Vec<u8>,
    },
}

/// An ICMP error from the error queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorTold {
    pub by: IpAddr,
    pub kind: u8,
    pub code: u8,
    /// The MTU that it reports, if any; otherwise zero.
    pub mtu_bytes: u32,
    /// The port that the packet was sent to; zero for echoes.
    pub port: u16,
    /// What was quoted of the packet: of UDP its payload, of an echo from its header on.
    pub quoted: Vec<u8>,
    /// When the kernel received it, ns of CLOCK_REALTIME.
    pub kernel_ns: Option<u64>,
    /// Its time to live, or hop limit, as it came in.
    pub hop_limit: Option<u8>,
}

/// A socket of an unprivileged user that receives ICMP errors.
#[derive(Debug)]
pub struct ErrorQueueSocket {
    socket: Socket,
    v4: bool,
    /// Our number of the packet that the kernel calls 0. `next_id` is the number of the next packet.
    first_id: u64,
    next_id: u64,
    /// Read from the queue, and not returned yet.
    pending: VecDeque<Told>,
}

impl ErrorQueueSocket {
    /// A UDP socket towards `target`, whose port each packet may change.
    ///
    /// # Errors
    /// Errors of the kernel, such as no route to `target`, or no such outlet.
    pub fn udp(target: SocketAddr, outlet: &Outlet) -> io::Result<Self> {
        Self::open(target, Protocol::UDP, outlet)
    }

    /// A ping socket (icmp(7)) towards `target`, and the identifier of its echoes.
    ///
    /// # Errors
    /// Where net.ipv4.ping_group_range does not allow it: `EACCES`.
    pub fn ping(target: SocketAddr, outlet: &Outlet) -> io::Result<(Self, u16)> {
        let (_, protocol) = icmp_of(target.is_ipv4());
        let this = Self::open(target, protocol, outlet)?;
        let mut unspecified = target;
        unspecified.set_ip(if target.is_ipv4() {
            std::net::Ipv4Addr::UNSPECIFIED.into()
        } else {
            std::net::Ipv6Addr::UNSPECIFIED.into()
        });
        unspecified.set_port(0);
        if outlet.source.is_none() {
            // The identifier takes the place of a port; binding chooses one.
            this.socket.bind(&unspecified.into())?;
        }
        let identifier = local_address(&this.socket)?.port();
        Ok((this, identifier))
    }

    fn open(target: SocketAddr, protocol: Protocol, outlet: &Outlet) -> io::Result<Self> {
        let v4 = target.is_ipv4();
        let socket = Socket::new(Domain::for_address(target), Type::DGRAM, Some(protocol))?;
        socket.set_nonblocking(true)?;
        tell_errors_and_hops(&socket, v4)?;
        outlet.apply(&socket, target)?;
        timestamp::enable(&socket, Stamped::Both)?;
        timestamp::await_receive_stamps();
        Ok(Self {
            socket,
            v4,
            first_id: 0,
            next_id: 0,
            pending: VecDeque::new(),
        })
    }

    /// Marks the packets sent from now on with a traffic class, of which the ECN bits may be the
    /// kernel's to set.
    ///
    /// # Errors
    /// Errors of setsockopt(2).
    pub fn set_traffic_class(&self, class: u8) -> io::Result<()> {
        set_of(&self.socket, self.v4, TRAFFIC_CLASS, class.into())
    }

    /// Whether packets sent from now on must not be cut, and are sent whatever the kernel knows of
    /// the path's MTU (IP_PMTUDISC_PROBE).
    ///
    /// # Errors
    /// Errors of setsockopt(2).
    pub fn set_dont_fragment(&self, dont: bool) -> io::Result<()> {
        let mode = match dont {
            true => PathMtuDiscovery::Probe,
            false => PathMtuDiscovery::Dont,
        };
        mode.apply(&self.socket, self.v4)
    }

    /// Sends to `to` with a hop limit, and returns the number of the packet. An error about an earlier packet, which
    /// the kernel reports at the next call, does not stop this one.
    ///
    /// # Errors
    /// When our own machine does not send it.
    pub fn send(
        &mut self,
        payload: &[u8],
        hop_limit: u8,
        to: SocketAddr,
        buffer: &mut [u8],
    ) -> io::Result<u64> {
        set_hop_limit(&self.socket, self.v4, hop_limit)?;
        let to = to.into();
        // Clears the pending error. The ICMP message itself stays in the error queue.
        let _ = self.socket.take_error();
        let mut sent = self.socket.send_to(payload, &to);
        if sent.is_err() {
            // Another came in between, or we may not send at all.
            self.restart_ids(buffer)?;
            sent = self.socket.send_to(payload, &to);
        }
        if let Err(error) = sent {
            self.restart_ids(buffer)?;
            return Err(error);
        }
        self.next_id += 1;
        Ok(self.next_id - 1)
    }

    /// Makes the kernel number packets from 0 again: after a send that failed it is unknown whether that took a number.
    /// Departures that are in the queue are discarded.
    fn restart_ids(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        while let Some(told) = self.queued(buffer)? {
            if !matches!(told, Told::Departed { .. }) {
                self.pending.push_back(told);
            }
        }
        self.first_id = self.next_id;
        timestamp::enable(&self.socket, Stamped::Both)
    }

    /// The next report of the kernel, or `None` when there is none.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<Told>> {
        if let Some(told) = self.pending.pop_front() {
            return Ok(Some(told));
        }
        if let Some(told) = self.queued(buffer)? {
            return Ok(Some(told));
        }
        // This call also returns and clears the pending error of an ICMP message. The message itself is in the error
        // queue.
        let Ok(Some(message)) = receive_message(&self.socket, buffer, 0) else {
            return Ok(None);
        };
        let beside = Beside::parse(message.control());
        Ok(message.from.map(|from| Told::Packet {
            from,
            kernel_ns: beside.kernel_ns,
            hop_limit: beside.hop_limit,
            payload: buffer.get(..message.len).unwrap_or_default().to_vec(),
        }))
    }

    /// The next entry of the error queue.
    fn queued(&self, buffer: &mut [u8]) -> io::Result<Option<Told>> {
        // The address of an entry of the queue is that which the packet was sent to.
        while let Some(entry) = receive_message(&self.socket, buffer, libc::MSG_ERRQUEUE)? {
            let payload = buffer.get(..entry.len).unwrap_or_default();
            let port = entry.from.map_or(0, |to| to.port());
            match queue_entry(entry.control(), port, payload) {
                Some(Told::Departed { id, ns }) => {
                    let id = self.first_id + id;
                    return Ok(Some(Told::Departed { id, ns }));
                }
                Some(told) => return Ok(Some(told)),
                None => {}
            }
        }
        Ok(None)
    }
}

impl AsFd for ErrorQueueSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The report in an entry of the error queue.
fn queue_entry(control: &[u8], port: u16, payload: &[u8]) -> Option<Told> {
    let error = ExtendedError::find(control)?;
    let beside = Beside::parse(control);
    match error.origin {
        libc::SO_EE_ORIGIN_TIMESTAMPING => Some(Told::Departed {
            id: error.data.into(),
            ns: beside.kernel_ns?,
        }),
        libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6 => Some(Told::Error(ErrorTold {
            by: error.offender?,
            kind: error.kind,
            code: error.code,
            mtu_bytes: error.info,
            port,
            quoted: payload.to_vec(),
            kernel_ns: beside.kernel_ns,
            hop_limit: beside.hop_limit,
        })),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_closed_port_is_told_with_its_number() -> io::Result<()> {
        // Bound and closed again: nothing listens there.
        let port = std::net::UdpSocket::bind(("127.0.0.1", 0))?
            .local_addr()?
            .port();
        let to = SocketAddr::from(([127, 0, 0, 1], port));
        let mut socket = ErrorQueueSocket::udp(to, &Outlet::default())?;
        let mut buffer = [0; 100];
        assert_eq!(socket.send(b"probe", 5, to, &mut buffer)?, 0);
        let mut seen = (false, false);
        let until = crate::clock::monotonic_ns() + 5_000_000_000;
        while seen != (true, true) && crate::clock::monotonic_ns() < until {
            match socket.recv(&mut buffer)? {
                Some(Told::Departed { id: 0, .. }) => seen.0 = true,
                Some(Told::Error(error)) => {
                    assert_eq!((error.kind, error.code, error.port), (3, 3, port));
                    assert_eq!((error.by, error.quoted), (to.ip(), b"probe".to_vec()));
                    seen.1 = true;
                }
                Some(_) => {}
                None => crate::wait::until(&[socket.as_fd()], until)?,
            }
        }
        assert_eq!(seen, (true, true));
        Ok(())
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200), length in 0usize..210) {
            let framed = [length.to_ne_bytes().as_slice(), &bytes].concat();
            let _ = (queue_entry(&bytes, 0, &[]), queue_entry(&framed, 1, &bytes));
        }
    }
}
