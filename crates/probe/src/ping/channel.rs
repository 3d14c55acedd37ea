//! What ICMP and UDP probes have in common: a socket whose stamps find their probes, and the
//! clocks read as one.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use plumb_net::clock::{monotonic_ns, realtime_ns};
use plumb_net::datagram::{
    DatagramSocket, Expired, Failure, Notice, Received, Reporter, SendId, Unreachable,
};
use plumb_net::egress::Outlet;

use crate::ping::plan::{Plan, ProbeError};
use crate::ping::sample::{Answer, Moment};
use crate::ping::socket::{local, not_sent, prepare};
use crate::ping::strategy::Event;

/// Large enough for any packet, its IP header included.
const BUFFER_BYTES: usize = 65_536;

/// Packets whose stamps may be outstanding; they come at once unless an address is still to be
/// resolved, and those that never come must not pile up.
const MAX_STAMPS_AWAITED: usize = 1024;

/// A pair of readings this close together is good enough.
const GOOD_READING_NS: u64 = 1_000;

impl Moment {
    /// Reads both clocks; again when something came in between.
    pub(crate) fn now() -> Self {
        let read = || {
            let before = monotonic_ns();
            let realtime_ns = realtime_ns();
            let after = monotonic_ns();
            Self {
                monotonic_ns: before,
                realtime_ns,
                uncertainty_ns: after.saturating_sub(before),
            }
        };
        let first = read();
        if first.uncertainty_ns <= GOOD_READING_NS {
            return first;
        }
        let second = read();
        if second.uncertainty_ns < first.uncertainty_ns {
            second
        } else {
            first
        }
    }
}

/// What came in, and may be an answer.
pub(crate) enum Incoming<'a> {
    Packet(&'a [u8], &'a Received),
    /// What a router said about a packet whose hop limit ended at it.
    Expired(&'a Expired),
}

/// What came of one of our probes.
pub(crate) enum Told {
    Answered(Answer),
    /// It ended on the way, at this router, where it was to go further.
    Expired(IpAddr),
}

impl From<Told> for Event {
    fn from(told: Told) -> Self {
        match told {
            Told::Answered(answer) => Self::Answered(answer),
            Told::Expired(by) => Self::Failed(Failure {
                why: Unreachable::HopLimit,
                by: Reporter::Host(by),
            }),
        }
    }
}

/// A socket to one far end.
pub(crate) struct Channel {
    socket: DatagramSocket,
    target: IpAddr,
    outlet: Outlet,
    /// Probes whose departure has not been stamped yet.
    awaited: BTreeMap<SendId, u32>,
    buffer: Vec<u8>,
}

impl Channel {
    pub(crate) fn new(socket: DatagramSocket, plan: &Plan) -> Self {
        Self {
            socket,
            target: plan.target.ip(),
            outlet: plan.outlet.clone(),
            awaited: BTreeMap::new(),
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    /// Over a UDP socket whose packets are as the plan wants them.
    pub(crate) fn udp(plan: &Plan) -> Result<Self, ProbeError> {
        let socket = DatagramSocket::udp_through(plan.target, &plan.outlet)
            .map_err(local(plan, "opening a UDP socket"))?;
        prepare(&socket, plan)?;
        Ok(Self::new(socket, plan))
    }

    /// Sends a probe of that number, or something else whose departure does not matter.
    pub(crate) fn send(&mut self, sequence: Option<u32>, bytes: &[u8]) -> io::Result<()> {
        let sent = self.socket.send(bytes);
        let id = sent.map_err(|error| not_sent(error, self.target, &self.outlet))?;
        if let Some(sequence) = sequence {
            self.awaited.insert(id, sequence);
            if self.awaited.len() > MAX_STAMPS_AWAITED {
                self.awaited.pop_first();
            }
        }
        Ok(())
    }

    /// The next event until `until_ns` of CLOCK_MONOTONIC. `read` returns the probe to which a packet belongs and what
    /// it means; `None` comes early after a packet that belongs to no probe. A raw socket receives the error for every
    /// echo request that expires on its way to the far end, whichever host sent it.
    pub(crate) fn receive(
        &mut self,
        until_ns: u64,
        mut read: impl FnMut(Incoming<'_>, Moment) -> Option<Told>,
    ) -> io::Result<Option<Event>> {
        loop {
            // The stamp of a departure is queued before the answer can come, so look for it first.
            match self.socket.take_notice()? {
                Some(Notice::Departed { id, ns }) => match self.awaited.remove(&id) {
                    Some(sequence) => return Ok(Some(Event::Departed { sequence, ns })),
                    None => continue,
                },
                Some(Notice::Expired(expired)) => {
                    match read(Incoming::Expired(&expired), Moment::now()) {
                        Some(told) => return Ok(Some(told.into())),
                        None => continue,
                    }
                }
                Some(Notice::Failed(failure)) => return Ok(Some(Event::Failed(failure))),
                None => {}
            }
            if let Some(received) = self.socket.recv(&mut self.buffer)? {
                let at = Moment::now();
                let packet = self.buffer.get(..received.len).unwrap_or_default();
                let incoming = Incoming::Packet(packet, &received);
                return Ok(read(incoming, at).map(Event::from));
            }
            if monotonic_ns() >= until_ns {
                return Ok(None);
            }
            self.socket.wait_until(until_ns)?;
        }
    }

    /// The same over UDP: `read` returns the answer that a datagram is, to which what the kernel knows of
    /// the datagram is added.
    pub(crate) fn receive_datagram(
        &mut self,
        until_ns: u64,
        mut read: impl FnMut(&[u8], Moment) -> Option<Answer>,
    ) -> io::Result<Option<Event>> {
        self.receive(until_ns, |incoming, at| match incoming {
            Incoming::Packet(packet, received) => Some(Told::Answered(Answer {
                kernel_ns: received.kernel_ns,
                hop_limit: received.hop_limit,
                drops: received.drops,
                ..read(packet, at)?
            })),
            // A UDP socket receives errors for its own packets only.
            Incoming::Expired(expired) => Some(Told::Expired(expired.by)),
        })
    }
}
