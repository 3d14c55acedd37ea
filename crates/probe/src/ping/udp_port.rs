//! Probes that are plain datagrams to a UDP port: an echo service there sends them back (RFC 862), and a
//! host that has nothing there says so by ICMP, which counts as an answer too.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use plumb_net::clock::monotonic_ns;
use plumb_net::datagram::{Failure, Unreachable};
use plumb_net::error_queue::{ErrorQueueSocket, ErrorTold, Told};
use plumb_net::wait;
use plumb_wire::icmp::Mark;

use crate::ping::pattern::Pattern;
use crate::ping::plan::{Plan, ProbeError, Sizes};
use crate::ping::sample::{Answer, Moment, Said};
use crate::ping::socket::{local, random_u32};
use crate::ping::strategy::{Event, Network};

/// Large enough for any datagram.
const BUFFER_BYTES: usize = 65_536;

/// Packets whose stamps may be outstanding.
const MAX_STAMPS_AWAITED: usize = 1024;

/// Hop limit where none is asked for (IANA's default).
const HOPS: u8 = 64;

/// Destination unreachable, and of its codes port unreachable: RFC 792, and RFC 4443, section 3.1.
const PORT_UNREACHABLE_V4: (u8, u8) = (3, 3);
const PORT_UNREACHABLE_V6: (u8, u8) = (1, 4);

/// The network of plain datagrams to one port.
pub(crate) struct UdpPort {
    socket: ErrorQueueSocket,
    target: SocketAddr,
    hops: u8,
    session: u32,
    sizes: Sizes,
    pattern: Pattern,
    awaited: BTreeMap<u64, u32>,
    buffer: Vec<u8>,
}

impl UdpPort {
    pub(crate) fn open(plan: &Plan) -> Result<Self, ProbeError> {
        let socket = ErrorQueueSocket::udp(plan.target, &plan.outlet)
            .map_err(local(plan, "opening a UDP socket"))?;
        if let Some(dscp) = plan.dscp {
            socket
                .set_traffic_class(dscp << 2)
                .map_err(local(plan, "marking its packets with a DSCP"))?;
        }
        Ok(Self {
            socket,
            target: plan.target,
            hops: plan.hop_limit.unwrap_or(HOPS),
            session: random_u32(&plan.far_end())?,
            sizes: plan.sizes,
            pattern: plan.pattern,
            awaited: BTreeMap::new(),
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// The probe of ours that these bytes are, or begin with.
    fn sequence(&self, payload: &[u8]) -> Option<u32> {
        let mark = Mark::parse(payload)?;
        (mark.session == self.session).then_some(mark.sequence)
    }

    fn event(&self, told: Told, at: Moment) -> Option<Event> {
        let answer = |sequence, kernel_ns, hop_limit, said| {
            Event::Answered(Answer {
                kernel_ns,
                said: Some(said),
                hop_limit,
                ..Answer::at(at, sequence)
            })
        };
        match told {
            Told::Departed { id, ns } => {
                let sequence = *self.awaited.get(&id)?;
                Some(Event::Departed { sequence, ns })
            }
            Told::Packet {
                from,
                kernel_ns,
                hop_limit,
                payload,
            } => {
                let sequence = self
                    .sequence(&payload)
                    .filter(|_| from.ip() == self.target.ip())?;
                Some(answer(sequence, kernel_ns, hop_limit, Said::Echo))
            }
            Told::Error(ErrorTold {
                by,
                kind,
                code,
                quoted,
                kernel_ns,
                hop_limit,
                ..
            }) => {
                let closed = match by.is_ipv4() {
                    true => (kind, code) == PORT_UNREACHABLE_V4,
                    false => (kind, code) == PORT_UNREACHABLE_V6,
                };
                match self.sequence(&quoted) {
                    Some(sequence) if closed && by == self.target.ip() => Some(answer(
                        sequence,
                        kernel_ns,
                        hop_limit,
                        Said::PortUnreachable,
                    )),
                    _ if closed => Some(Event::Failed(Failure::about(
                        self.target.ip(),
                        Unreachable::Port,
                        Some(by),
                    ))),
                    _ => Some(Event::Told(format!(
                        "an ICMP error came back from {by} (type {kind}, code {code})"
                    ))),
                }
            }
        }
    }
}

impl Network for UdpPort {
    fn id(&self) -> u32 {
        self.session
    }

    fn send(&mut self, sequence: u32) -> io::Result<()> {
        let mark = Mark {
            session: self.session,
            sequence,
        };
        let payload = mark.payload_filled(self.sizes.of(sequence), self.pattern.bytes());
        let id = self
            .socket
            .send(&payload, self.hops, self.target, &mut self.buffer)?;
        self.awaited.insert(id, sequence);
        if self.awaited.len() > MAX_STAMPS_AWAITED {
            self.awaited.pop_first();
        }
        Ok(())
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Event>> {
        loop {
            if let Some(told) = self.socket.recv(&mut self.buffer)? {
                let at = Moment::now();
                match self.event(told, at) {
                    Some(event) => return Ok(Some(event)),
                    None => continue,
                }
            }
            if monotonic_ns() >= until_ns {
                return Ok(None);
            }
            wait::until(&[self.socket.as_fd()], until_ns)?;
        }
    }
}
