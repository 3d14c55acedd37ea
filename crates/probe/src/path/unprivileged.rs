//! Probing without privileges, by sockets whose error queue names the host that answered: ping sockets where they are
//! allowed, and UDP everywhere.
//!
//! What UDP errors show of the probe is its port and what was quoted of its payload, so each hop
//! has a port of its own: where routers share traffic by flow, hops may be of different ways.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use plumb_net::clock::monotonic_ns;
use plumb_net::error_queue::{ErrorQueueSocket, ErrorTold, Told};
use plumb_net::wait;
use plumb_wire::icmp::{Echo, HEADER_BYTES, Kind, MARK_BYTES, Mark, Version};
use plumb_wire::icmp_report::Report;

use super::in_flight::Known;
use super::probe::{Answer, AnswerKind, Answered, HopNetwork, Probe, ProbeId};
use super::target::{ProtocolAndPort, Target};
use crate::ping::sample::Moment;

/// Larger than what is looked at.
const BUFFER_BYTES: usize = 4096;
/// Departures that may be waited for; they come at once unless a neighbour is still to be found.
const MAX_STAMPS_AWAITED: usize = 4096;
/// Bytes of the header of ICMP echo and of UDP.
const SHORT_HEADER_BYTES: u16 = 8;

/// Probing of one target by sockets that any user may open.
#[derive(Debug)]
pub struct UnprivilegedHops {
    target: SocketAddr,
    version: Version,
    socket: ErrorQueueSocket,
    session: u32,
    /// The identifier of the echoes; `None` for UDP.
    identifier: Option<u16>,
    known: Known,
    /// Probes whose departure has not been stamped yet, by the number of their packet.
    departures: BTreeMap<u64, u16>,
    latest_to: [u16; 256],
    traffic_class: u8,
    dont_fragment: bool,
    buffer: Vec<u8>,
}

impl UnprivilegedHops {
    /// Opens the socket.
    ///
    /// # Errors
    /// When ping sockets are not allowed (`EACCES`), for TCP (`Unsupported`), and when there is no
    /// route to the target.
    pub fn open(target: &Target, protocol: ProtocolAndPort, session: u32) -> io::Result<Self> {
        let mut address = target.address;
        let (socket, identifier) = match protocol {
            ProtocolAndPort::Icmp => {
                address.set_port(0);
                let (socket, identifier) = ErrorQueueSocket::ping(address, &target.outlet)?;
                (socket, Some(identifier))
            }
            ProtocolAndPort::Udp { port } => {
                address.set_port(port);
                (ErrorQueueSocket::udp(address, &target.outlet)?, None)
            }
            ProtocolAndPort::Tcp { .. } => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Self {
            target: address,
            version: if address.is_ipv4() {
                Version::V4
            } else {
                Version::V6
            },
            socket,
            session,
            identifier,
            known: Known::default(),
            departures: BTreeMap::new(),
            latest_to: [0; 256],
            traffic_class: 0,
            dont_fragment: false,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    fn ip_header_bytes(&self) -> u16 {
        match self.version {
            Version::V4 => 20,
            Version::V6 => 40,
        }
    }

    fn packet(&self, probe: &Probe, number: u16) -> Vec<u8> {
        let above = self.ip_header_bytes() + SHORT_HEADER_BYTES;
        let bytes = usize::from(probe.size_bytes.saturating_sub(above));
        let payload = Mark {
            session: self.session,
            sequence: number.into(),
        }
        .payload_filled(bytes.max(MARK_BYTES), &[probe.fill]);
        match self.identifier {
            None => payload,
            Some(identifier) => Echo {
                kind: Kind::Request,
                identifier,
                sequence: number,
                payload: &payload,
            }
            .write(self.version),
        }
    }

    /// The address to which a UDP probe is sent: each hop has its port, and the first hop has the port of the target.
    fn address(&self, probe: &Probe) -> SocketAddr {
        let mut to = self.target;
        if self.identifier.is_none() {
            let hop = u16::from(probe.hops.saturating_sub(1));
            to.set_port(to.port().wrapping_add(hop).max(1));
        }
        to
    }

    fn take(&mut self, told: Told) -> Option<Answered> {
        let at = Moment::now();
        match told {
            Told::Departed { id, ns } => {
                let number = self.departures.remove(&id)?;
                self.known.departed(number, ns);
                None
            }
            Told::Error(error) => {
                let number = self.number_of(&error)?;
                let report = Report::of(self.version, error.kind, error.code, error.mtu_bytes)?;
                let answer = Answer::plain(error.by, AnswerKind::Icmp(report), error.hop_limit);
                self.known.answered(number, at, error.kernel_ns, answer)
            }
            Told::Packet {
                from,
                kernel_ns,
                hop_limit,
                payload,
            } => {
                if from.ip() != self.target.ip() {
                    return None;
                }
                let (kind, number) = match self.identifier {
                    Some(_) => {
                        let reply = Echo::parse(self.version, &payload)?;
                        let mark = Mark::parse(reply.payload)?;
                        let ours = reply.kind == Kind::Reply && mark.session == self.session;
                        (AnswerKind::EchoReply, ours.then_some(reply.sequence)?)
                    }
                    None => (AnswerKind::Datagram, self.number_to(from.port())?),
                };
                let answer = Answer::plain(from.ip(), kind, hop_limit);
                self.known.answered(number, at, kernel_ns, answer)
            }
        }
    }

    /// The probe that an error is about: by what was quoted of it, or by its port.
    fn number_of(&self, error: &ErrorTold) -> Option<u16> {
        if self.identifier.is_some() {
            let [_, _, _, _, _, _, high, low] = *error.quoted.first_chunk::<HEADER_BYTES>()?;
            return Some(u16::from_be_bytes([high, low]));
        }
        match Mark::parse(&error.quoted) {
            Some(mark) if mark.session == self.session => u16::try_from(mark.sequence).ok(),
            _ => self.number_to(error.port),
        }
    }

    /// The latest probe to a port.
    fn number_to(&self, port: u16) -> Option<u16> {
        let hop = port.wrapping_sub(self.target.port());
        self.latest_to
            .get(usize::from(hop))
            .copied()
            .filter(|number| *number != 0)
    }
}

impl HopNetwork for UnprivilegedHops {
    fn now_ns(&mut self) -> u64 {
        monotonic_ns()
    }

    fn send(&mut self, probe: &Probe) -> io::Result<ProbeId> {
        if probe.traffic_class != self.traffic_class {
            self.socket.set_traffic_class(probe.traffic_class)?;
            self.traffic_class = probe.traffic_class;
        }
        if probe.dont_fragment != self.dont_fragment {
            self.socket.set_dont_fragment(probe.dont_fragment)?;
            self.dont_fragment = probe.dont_fragment;
        }
        let (_, number) = self.known.next();
        let packet = self.packet(probe, number);
        let at = Moment::now();
        let to = self.address(probe);
        let sent = self
            .socket
            .send(&packet, probe.hops, to, &mut self.buffer)?;
        self.departures.insert(sent, number);
        if self.departures.len() > MAX_STAMPS_AWAITED {
            self.departures.pop_first();
        }
        let hop = usize::from(probe.hops.saturating_sub(1));
        if let Some(latest) = self.latest_to.get_mut(hop) {
            *latest = number;
        }
        Ok(self.known.sent(probe, at))
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Answered>> {
        loop {
            while let Some(told) = self.socket.recv(&mut self.buffer)? {
                if let Some(answered) = self.take(told) {
                    return Ok(Some(answered));
                }
            }
            if monotonic_ns() >= until_ns {
                return Ok(None);
            }
            wait::until(&[self.socket.as_fd()], until_ns)?;
        }
    }
}
