//! Probes by ICMP or ICMPv6 echo.

use std::io;

use plumb_net::datagram::{DatagramSocket, IcmpAccess};
use plumb_wire::icmp::{Echo, Kind, Mark, Version};

use crate::channel::Channel;
use crate::plan::{Plan, ProbeError};
use crate::probing::{local, random_u32};
use crate::sample::{Answer, Moment};
use crate::strategy::{Event, Network};

/// The network of ICMP probes to one far end.
pub(crate) struct IcmpEcho {
    channel: Channel,
    version: Version,
    session: u32,
    identifier: u16,
    size_bytes: usize,
}

impl IcmpEcho {
    pub(crate) fn open(plan: &Plan) -> Result<Self, ProbeError> {
        let (socket, access) =
            DatagramSocket::icmp(plan.target).map_err(|source| ProbeError::Icmp {
                name: plan.name.clone(),
                source,
            })?;
        if let Some(dscp) = plan.dscp {
            socket
                .set_dscp(dscp)
                .map_err(local(plan, "marking its packets with a DSCP"))?;
        }
        let session = random_u32(&plan.far_end())?;
        let identifier = match access {
            IcmpAccess::Raw => (session >> 16) as u16,
            IcmpAccess::Ping { identifier } => identifier,
        };
        let version = if plan.target.is_ipv4() {
            Version::V4
        } else {
            Version::V6
        };
        Ok(Self {
            channel: Channel::new(socket),
            version,
            session,
            identifier,
            size_bytes: plan.size_bytes,
        })
    }
}

impl Network for IcmpEcho {
    fn id(&self) -> u32 {
        self.identifier.into()
    }

    fn now(&mut self) -> Moment {
        Moment::now()
    }

    fn send(&mut self, sequence: u32) -> io::Result<()> {
        let payload = Mark {
            session: self.session,
            sequence,
        }
        .payload(self.size_bytes);
        let request = Echo {
            kind: Kind::Request,
            identifier: self.identifier,
            sequence: sequence as u16,
            payload: &payload,
        };
        self.channel
            .send(Some(sequence), &request.write(self.version))
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Event>> {
        let (version, session, identifier) = (self.version, self.session, self.identifier);
        self.channel.receive(until_ns, |packet, at, received| {
            let reply = Echo::parse(version, packet)?;
            let mark = Mark::parse(reply.payload)?;
            let ours = reply.kind == Kind::Reply
                && reply.identifier == identifier
                && mark.session == session
                && reply.sequence == mark.sequence as u16;
            ours.then_some(Answer {
                sequence: mark.sequence,
                at,
                kernel_ns: received.kernel_ns,
                far_end: None,
                drops: received.drops,
            })
        })
    }
}
