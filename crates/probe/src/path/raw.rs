//! Probing by raw sockets: whole packets out, everything that comes back in.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use plumb_net::clock::monotonic_ns;
use plumb_net::datagram::{DatagramSocket, Notice, SendId};
use plumb_net::egress::source_towards;
use plumb_net::raw_listener::{AnswerSocket, Heard, ReservedPort};
use plumb_net::wait;
use plumb_wire::icmp::Version;
use plumb_wire::icmp_report::IcmpReport;
use plumb_wire::ip::{self, ICMP, ICMPV6, TCP, UDP};
use plumb_wire::path_probe::{FLOWS, Named, Numbered, ProbeSet, Transport};

use super::in_flight::Known;
use super::probe::{Answer, AnswerKind, Answered, HopNetwork, Probe, ProbeId};
use super::target::{ProtocolAndPort, Target};
use crate::ping::sample::Moment;

/// Large enough for any packet.
const BUFFER_BYTES: usize = 65_536;
/// Departures that may be waited for; they come at once unless a neighbour is still to be found.
const MAX_STAMPS_AWAITED: usize = 4096;
/// ICMP types that matter: echo reply, unreachable, time exceeded, parameter problem; and the same of ICMPv6, with
/// packet too big.
const TYPES_V4: [u8; 4] = [0, 3, 11, 12];
const TYPES_V6: [u8; 5] = [1, 2, 3, 4, 129];

/// Keeps the first of our ports from other programs of this host for as long as we probe.
#[derive(Debug)]
enum Reserved {
    Nothing,
    Udp { _socket: UdpSocket },
    Tcp { _socket: ReservedPort },
}

/// Probing of one target by raw sockets.
#[derive(Debug)]
pub struct RawHops {
    set: ProbeSet,
    target: IpAddr,
    sender: DatagramSocket,
    icmp: AnswerSocket,
    /// What the target answers by the probes' own protocol.
    direct: Option<AnswerSocket>,
    known: Known,
    awaited: BTreeMap<SendId, u16>,
    buffer: Vec<u8>,
    /// The furthest hop at which the time of a probe ended.
    furthest: u8,
    _reserved: Reserved,
}

impl RawHops {
    /// Opens the sockets.
    ///
    /// # Errors
    /// Without CAP_NET_RAW (`EPERM`), and when there is no route to the target.
    pub fn open(target: &Target, protocol: ProtocolAndPort, session: u32) -> io::Result<Self> {
        let address = target.address;
        let v4 = address.is_ipv4();
        let sender = DatagramSocket::whole_packets(address, &target.outlet)?;
        let icmp = if v4 {
            AnswerSocket::icmp(true, &TYPES_V4)?
        } else {
            AnswerSocket::icmp(false, &TYPES_V6)?
        };
        let source = source_towards(address, &target.outlet)?;
        let any = SocketAddr::new(source, 0);
        let (transport, reserved, number) = match protocol {
            ProtocolAndPort::Icmp => (
                Transport::Icmp {
                    // Flow after flow without running over.
                    identifier: (session >> 16) as u16 & 0x7fff | 0x4000,
                },
                Reserved::Nothing,
                None,
            ),
            ProtocolAndPort::Udp { port } => {
                let socket = bind_low(any, UdpSocket::bind, UdpSocket::local_addr)?;
                let transport = Transport::Udp {
                    source_port: socket.local_addr()?.port(),
                    destination_port: port,
                };
                (transport, Reserved::Udp { _socket: socket }, Some(UDP))
            }
            ProtocolAndPort::Tcp { port } => {
                let socket = bind_low(any, ReservedPort::tcp, ReservedPort::address)?;
                let transport = Transport::Tcp {
                    source_port: socket.address()?.port(),
                    destination_port: port,
                };
                (transport, Reserved::Tcp { _socket: socket }, Some(TCP))
            }
        };
        let set = ProbeSet {
            source,
            destination: address.ip(),
            transport,
            session,
        };
        let (first, _) = set.sent_ports(0);
        let ports = first..=first.saturating_add(FLOWS);
        let direct = number
            .map(|number| AnswerSocket::ports(v4, number.into(), &ports))
            .transpose()?;
        Ok(Self {
            set,
            target: address.ip(),
            sender,
            icmp,
            direct,
            known: Known::default(),
            awaited: BTreeMap::new(),
            buffer: vec![0; BUFFER_BYTES],
            furthest: 0,
            _reserved: reserved,
        })
    }

    fn packet(&self, number: u16, probe: &Probe) -> Vec<u8> {
        self.set.write(&Numbered {
            number,
            hop_limit: probe.hops,
            flow: probe.flow,
            traffic_class: probe.traffic_class,
            size_bytes: probe.size_bytes,
            dont_fragment: probe.dont_fragment,
            ask_ecn: probe.ask_ecn,
            fill: probe.fill,
        })
    }

    fn take_departures(&mut self) -> io::Result<()> {
        while let Some(notice) = self.sender.take_notice()? {
            if let Notice::Departed { id, ns } = notice
                && let Some(number) = self.awaited.remove(&id)
            {
                self.known.departed(number, ns);
            }
        }
        Ok(())
    }

    /// The next answer that is already here.
    fn look(&mut self) -> io::Result<Option<Answered>> {
        // The stamp of a departure is queued before the answer can come, so look for it first.
        self.take_departures()?;
        while let Some(heard) = self.icmp.recv(&mut self.buffer)? {
            let at = Moment::now();
            self.take_departures()?;
            let message = self.buffer.get(heard.start..heard.end).unwrap_or_default();
            if let Some((number, answer)) = icmp_answer(&self.set, &self.known, &heard, message)
                && let Some(answered) = self.known.answered(number, at, heard.kernel_ns, answer)
            {
                if !answered.answer.is_arrival(self.target) {
                    self.furthest = self.furthest.max(answered.probe.hops);
                }
                return Ok(Some(answered));
            }
        }
        let Some(direct) = &mut self.direct else {
            return Ok(None);
        };
        while let Some(heard) = direct.recv(&mut self.buffer)? {
            let at = Moment::now();
            let message = self.buffer.get(heard.start..heard.end).unwrap_or_default();
            if heard.from.ip() != self.target {
                continue;
            }
            let Some((named, answer)) = direct_answer(&self.set, &heard, message) else {
                continue;
            };
            // A program that answers by UDP repeats nothing that would name the probe: it is the
            // nearest that can have arrived.
            let number = match named.number {
                0 => self.known.first_beyond(self.furthest),
                _ => of_its_flow(&self.known, named),
            };
            let Some(number) = number else { continue };
            if answer.kind == AnswerKind::SynAck
                && let Some(probe) = self.known.probe(number)
                && let Some(reset) = self.set.reset(number, probe.flow)
            {
                // Our kernel, which knows of no such connection, does it too unless a firewall
                // keeps it; whichever comes second is ignored. It has no number of its own.
                let _ = self.sender.send(&reset);
            }
            if let Some(answered) = self.known.answered(number, at, heard.kernel_ns, answer) {
                return Ok(Some(answered));
            }
        }
        Ok(None)
    }
}

impl HopNetwork for RawHops {
    fn now_ns(&mut self) -> u64 {
        monotonic_ns()
    }

    fn send(&mut self, probe: &Probe) -> io::Result<ProbeId> {
        let (_, number) = self.known.next();
        let packet = self.packet(number, probe);
        let at = Moment::now();
        let sent = self
            .sender
            .send(&packet)
            .inspect_err(|_| self.known.refused())?;
        self.awaited.insert(sent, number);
        if self.awaited.len() > MAX_STAMPS_AWAITED {
            self.awaited.pop_first();
        }
        Ok(self.known.sent(probe, at))
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Answered>> {
        loop {
            if let Some(answered) = self.look()? {
                return Ok(Some(answered));
            }
            if monotonic_ns() >= until_ns {
                return Ok(None);
            }
            let mut sockets = vec![self.sender.as_fd(), self.icmp.as_fd()];
            sockets.extend(self.direct.as_ref().map(AsFd::as_fd));
            wait::until(&sockets, until_ns)?;
        }
    }

    fn dropped_here(&self) -> u64 {
        let sockets = std::iter::once(&self.icmp).chain(&self.direct);
        sockets
            .map(|socket| u64::from(socket.dropped().unwrap_or(0)))
            .sum()
    }

    fn as_sent(&self, id: ProbeId, probe: &Probe) -> Vec<u8> {
        self.packet(Known::number(id), probe)
    }
}

/// The number of the probe that an answer names, where it came back to that probe's own identifier or port.
fn of_its_flow(known: &Known, named: Named) -> Option<u16> {
    let probe = known.probe(named.number)?;
    (probe.flow == named.flow).then_some(named.number)
}

/// An ICMP message that is an answer, and the number of the probe.
fn icmp_answer(
    set: &ProbeSet,
    known: &Known,
    heard: &Heard,
    message: &[u8],
) -> Option<(u16, Answer)> {
    let (version, protocol) = if heard.from.is_ipv4() {
        (Version::V4, ICMP)
    } else {
        (Version::V6, ICMPV6)
    };
    if let Some(named) = set.answered(protocol, message) {
        let number = of_its_flow(known, named)?;
        return Some((number, plain(heard, AnswerKind::EchoReply)));
    }
    let report = IcmpReport::parse(version, message)?;
    let number = set.quoted(report.quote)?;
    Some((
        number,
        Answer {
            quote: report.quote.to_vec(),
            labels: report.labels,
            ..plain(heard, AnswerKind::Icmp(report.report))
        },
    ))
}

/// What the target answered by the probes' own protocol, and which probe that is to.
fn direct_answer(set: &ProbeSet, heard: &Heard, message: &[u8]) -> Option<(Named, Answer)> {
    let named = set.answered(set.protocol(), message)?;
    if set.protocol() == UDP {
        return Some((named, plain(heard, AnswerKind::Datagram)));
    }
    let flags = *message.get(13)?;
    let kind = if flags & ip::RST != 0 {
        AnswerKind::Reset
    } else if flags & (ip::SYN | ip::ACK) == ip::SYN | ip::ACK {
        AnswerKind::SynAck
    } else {
        return None;
    };
    Some((
        named,
        Answer {
            segment: message.to_vec(),
            ..plain(heard, kind)
        },
    ))
}

fn plain(heard: &Heard, kind: AnswerKind) -> Answer {
    Answer::plain(heard.from.ip(), kind, heard.hop_limit)
}

/// Binds a socket to a port of the kernel's choice that leaves room for all flows above it.
fn bind_low<S>(
    any: SocketAddr,
    bind: impl Fn(SocketAddr) -> io::Result<S>,
    address: impl Fn(&S) -> io::Result<SocketAddr>,
) -> io::Result<S> {
    // Chosen anew at random each time, and nearly always low enough; dropped between.
    for _ in 0..64 {
        let socket = bind(any)?;
        if address(&socket)?.port() <= u16::MAX - FLOWS {
            return Ok(socket);
        }
    }
    Err(io::ErrorKind::AddrNotAvailable.into())
}
